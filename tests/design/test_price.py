from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_bed.design.gain import Gain
from argus_bed.design.price import (
    RATIO_SD,
    SPREAD_SD,
    PriceBelief,
    Scored,
    admissible,
    order,
    price_of,
    score,
    tied,
)
from argus_bed.errors import ValueRejected
from argus_bed.probe import Plan, Price


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
    plan = Plan("tracer", {}, ("baseline",), (), Price(1.0, 9.0, 0.5))
    assert admissible(plan, budget_s=15.0, max_perturbation=0.5) == ""
    assert "cap of 40%" in admissible(plan, max_perturbation=0.4)
    assert "15 s" in admissible(plan, budget_s=14.0)


def test_price_belief_is_conjugate() -> None:
    belief = PriceBelief()
    assert belief.ratio("a")[0] == 0.0
    for _ in range(3):
        belief = belief.observe("a", expected_s=10.0, actual_s=20.0)
    mean, sd = belief.ratio("a")
    precision = 1 / RATIO_SD**2 + 3 / SPREAD_SD**2
    assert mean == pytest.approx(3 * math.log(2) / SPREAD_SD**2 / precision)
    assert sd == pytest.approx(math.sqrt(1 / precision + SPREAD_SD**2))
    assert belief.ratio("b")[0] == 0.0
    assert belief.expect("a", Price(0.0, 10.0)).run_s == pytest.approx(10 * math.exp(mean))


def test_measured_disturbance_moves_the_price() -> None:
    belief = PriceBelief().observe("a", 1.0, 1.0, overhead=0.3)
    assert belief.expect("a", Price(1.0, 0.0, 0.1)).perturbation == pytest.approx(0.2)


@given(st.permutations([0.5, 1.0, 2.0, 3.0]))
def test_price_belief_does_not_depend_on_the_order(actual: list[float]) -> None:
    belief = PriceBelief()
    for a in actual:
        belief = belief.observe("a", 1.0, a)
    exact = math.log(3.0) / SPREAD_SD**2 / (1 / RATIO_SD**2 + 4 / SPREAD_SD**2)
    assert belief.ratio("a")[0] == pytest.approx(exact)
