from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_bed.design.gain import Gain
from argus_bed.design.price import (
    FAILS,
    RATIO_MEAN,
    RATIO_SD,
    SPREAD_SD,
    PriceBelief,
    Scored,
    as_announced,
    expected_price,
    learned_prices,
    order,
    over_a_cap,
    price_of,
    score,
    tied,
)
from argus_bed.errors import ValueRejected
from argus_bed.probe import Price
from argus_bed.records import PriceBasis, Proposal, Run, RunState


def scored(
    key: str, bits: float, price: float, disturbs: float = 0.0, error: float = 0.0
) -> Scored:
    return Scored(key, Gain(bits, error, "quadrature"), price, disturbs)


def test_price_by_hand() -> None:
    price = Price(setup_s=2.0, run_s=8.0, perturbation=0.5)
    assert price_of(price) == 15.0
    assert price_of(price, harm=0.0) == 10.0
    assert price_of(price, harm=2.0) == 20.0
    assert price_of(Price(1.0, 0.0, 50.0)) == 4.0  # the disturbance counts up to 3


@pytest.mark.parametrize("price", [Price(-1.0), Price(1.0, math.nan), Price(1.0, 0.0, -0.1)])
def test_prices_are_checked(price: Price) -> None:
    with pytest.raises(ValueRejected, match="zero or more"):
        price_of(price)


def test_score_is_defined_everywhere() -> None:
    assert score(0.5, 10.0) == 0.05
    assert score(0.5, 0.0) == math.inf
    assert score(0.0, 0.0) == score(-0.01, 0.0) == score(-0.01, 5.0) == 0.0
    with pytest.raises(ValueRejected):
        score(math.nan, 1.0)
    with pytest.raises(ValueRejected):
        score(1.0, -1.0)


def test_free_probes_go_first_by_gain() -> None:
    plans = [scored("dear", 1.0, 1.0), scored("free", 0.1, 0.0), scored("better", 0.3, 0.0)]
    assert [p.key for p in order(plans)] == ["better", "free", "dear"]


@pytest.mark.promise("A07")
def test_doubling_a_price_moves_the_ranking() -> None:
    """By hand: 0.6/20 = 0.030, 0.2/10 = 0.020, 0.9/60 = 0.015; then 0.6/40 = 0.015."""
    plans = {"a": (0.6, 20.0), "b": (0.2, 10.0), "c": (0.9, 59.0)}
    first = order(scored(k, *v) for k, v in plans.items())
    assert [p.key for p in first] == ["a", "b", "c"]
    plans["a"] = (0.6, 40.0)
    second = order(scored(k, *v) for k, v in plans.items())
    assert [p.key for p in second] == ["b", "c", "a"]


@pytest.mark.promise("A08")
def test_of_equals_the_least_disturbing_is_chosen() -> None:
    """Equal price and gains that the estimates cannot tell apart; and never over a real lead."""
    loud = scored("loud", 0.51, 10.0, disturbs=1.0, error=0.02)
    quiet = scored("quiet", 0.50, 10.0, disturbs=0.1, error=0.02)
    assert tied(loud, quiet)
    assert [p.key for p in order([loud, quiet])] == ["quiet", "loud"]
    sure = scored("sure", 0.9, 10.0, disturbs=1.0, error=0.02)
    assert order([sure, quiet])[0].key == "sure"


def test_caps_are_constraints() -> None:
    assert over_a_cap(15.0, 0.5, budget_s=15.0, max_perturbation=0.5) == ""
    assert "cap of 40%" in over_a_cap(15.0, 0.5, max_perturbation=0.4)
    assert "15 s" in over_a_cap(15.0, 0.5, budget_s=14.0)


# -- what runs teach ---------------------------------------------------------------------


def test_the_first_price_is_the_announced_one_with_the_failures_that_are_assumed() -> None:
    announced = Price(2.0, 8.0, 0.5, "catalogue")
    basis = PriceBelief().expect("a", announced)
    assert basis == PriceBasis(10.0, 10.0, 0.5, 0.5, FAILS, 10.0, 0, 0, "catalogue")
    assert expected_price(basis) == pytest.approx(15.0 / (1 - FAILS))
    assert expected_price(as_announced(announced)) == price_of(announced)


def test_price_belief_is_conjugate() -> None:
    belief = PriceBelief()
    assert belief.ratio("a") == 1.0
    # the closed form agrees with the shortcut: an announced price is right on average
    mean, sd = belief.log_ratio("a")
    assert math.exp(mean + sd**2 / 2) == pytest.approx(1.0)
    for _ in range(3):
        belief = belief.observe("a", announced_s=10.0, actual_s=20.0)
    mean, sd = belief.log_ratio("a")
    precision = 1 / RATIO_SD**2 + 3 / SPREAD_SD**2
    by_hand = (RATIO_MEAN / RATIO_SD**2 + 3 * math.log(2) / SPREAD_SD**2) / precision
    assert mean == pytest.approx(by_hand)
    assert sd == pytest.approx(math.sqrt(1 / precision + SPREAD_SD**2))
    assert belief.ratio("a") == pytest.approx(math.exp(mean + sd**2 / 2))
    assert 1.8 < belief.ratio("a") < 2.1
    assert belief.ratio("b") == 1.0
    assert belief.expect("a", Price(0.0, 10.0)).expected_s == 10 * belief.ratio("a")


def test_measured_disturbance_moves_the_price() -> None:
    belief = PriceBelief().observe("a", 1.0, 1.0, overhead=0.3)
    assert belief.expect("a", Price(1.0, 0.0, 0.1)).perturbation == pytest.approx(0.2)


@pytest.mark.promise("A59")
def test_failures_are_counted_and_paid_for() -> None:
    """Beta(0.1, 1.9) before; one failure of 30 s and one success of 10 s after."""
    belief = PriceBelief().observe("a", 10.0, 30.0, failed=True)
    assert belief.fails("a") == pytest.approx(1.1 / 3)
    assert belief.ratio("a") == 1.0  # a failure does not say how long success takes
    assert belief.ratio("a", failed=True) > 2
    first = expected_price(PriceBelief().expect("a", Price(0.0, 10.0)))
    second = expected_price(belief.expect("a", Price(0.0, 10.0)))
    odds = 1.1 / 1.9
    assert second == pytest.approx(10 + odds * 10 * belief.ratio("a", failed=True))
    assert second > 2 * first
    belief = belief.observe("a", 10.0, 10.0)
    assert belief.fails("a") == pytest.approx(1.1 / 4)
    assert expected_price(belief.expect("a", Price(0.0, 10.0))) < second


@given(
    st.floats(0.01, 5.0),
    st.lists(st.tuples(st.floats(0.1, 100.0), st.booleans()), max_size=6),
)
def test_gain_over_price_is_a_ratio_of_expectations(
    gain: float, ends: list[tuple[float, bool]]
) -> None:
    belief = PriceBelief()
    for actual, failed in ends:
        belief = belief.observe("a", 10.0, actual, failed=failed)
    basis = belief.expect("a", Price(0.0, 10.0))
    q = basis.fails
    expected_bits = (1 - q) * gain
    expected_seconds = (1 - q) * basis.expected_s + q * basis.failing_s
    assert score(gain, expected_price(basis)) == pytest.approx(expected_bits / expected_seconds)


def test_a_failure_at_once_costs_next_to_nothing() -> None:
    belief = PriceBelief().observe("a", 10.0, 1e-5, failed=True)
    assert expected_price(belief.expect("a", Price(0.0, 10.0))) == pytest.approx(10.0, rel=0.02)


@given(st.permutations([0.5, 1.0, 2.0, 3.0]))
def test_price_belief_does_not_depend_on_the_order(actual: list[float]) -> None:
    belief = PriceBelief()
    for a in actual:
        belief = belief.observe("a", 1.0, a)
    precision = 1 / RATIO_SD**2 + 4 / SPREAD_SD**2
    exact = (RATIO_MEAN / RATIO_SD**2 + math.log(3.0) / SPREAD_SD**2) / precision
    assert belief.log_ratio("a")[0] == pytest.approx(exact)


def ended(number: int, state: RunState, seconds: float, **more) -> Run:
    basis = PriceBasis(10.0, 12.0, fails=0.1)
    chosen = Proposal(
        number, "a(x=1)", "a", {}, ("baseline",), "?", 1.0, 0.0, 13.0, 0.0, 0.1, "", basis=basis
    )
    return Run(number, state, chosen, price_s=seconds, seconds=seconds, **more)


@pytest.mark.promise("A59")
def test_prices_are_learned_from_the_ledger_s_runs_alone() -> None:
    runs = [
        ended(1, RunState.DONE, 20.0, overhead=0.3),
        ended(2, RunState.FAILED, 100.0),
        ended(3, RunState.FAILED, 0.0),  # never began
        ended(4, RunState.DONE, 99.0, source="told"),  # somebody else's time
        Run(5, RunState.DONE, None, seconds=7.0, source="told"),
        ended(6, RunState.STALE, 0.0),
        replace(ended(7, RunState.FAILED, 3.0), proposal=old_proposal(7)),
    ]
    belief = learned_prices(reversed(runs))
    by_hand = PriceBelief().observe("a", 10.0, 20.0, 0.3)
    by_hand = by_hand.observe("a", 10.0, 100.0, failed=True).observe("a", 0.0, 3.0, failed=True)
    assert belief == by_hand
    assert belief.expect("a", Price(0.0, 10.0)).failures == 2


def old_proposal(number: int) -> Proposal:
    """As ledgers of before prices were learned hold it."""
    return Proposal(number, "a", "a", {}, ("baseline",), "?", 1.0, 0.0, 13.0, 0.0, 0.1, "")
