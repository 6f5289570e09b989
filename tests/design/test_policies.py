"""Policies against orders and prices that are worked out by hand.

Fixtures are enumerated: every outcome is counted, nothing is simulated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from argus_bed.design.gain import Gain, gains, predictive
from argus_bed.design.optimal import FiniteProbe, optimum, outlook
from argus_bed.design.policies import (
    POLICIES,
    Option,
    Predictive,
    at_random,
    edge_cutting,
    edges_cut,
    edges_cut_noisy,
    gain_per_price,
    policy,
)
from argus_bed.design.price import order
from argus_bed.errors import UnknownName, ValueRejected
from argus_bed.inference.belief import Belief
from argus_bed.study.scoring import score_plans
from tests.inference.small import Plain
from tests.study.small import CONFOUNDED, opened

SURE = ((1.0, 0.0), (0.0, 1.0))


def option(key: str, bits: float, price: float, kind: str = "", disturbs: float = 0.0) -> Option:
    return Option(key, Gain(bits, 0.0, "quadrature"), price, disturbs, kind)


OFFERED = (
    option("trace", 1.2, 900.0, "full_trace", 1.0),
    option("arms", 0.6, 60.0, "end_to_end"),
    option("free", 0.1, 1.0, "bound_check"),
    option("counters", 0.3, 5.0, "framework_counters"),
    option("knob", 1.0, 300.0, "controlled_variant"),
    option("delay", 0.5, 200.0, "delay_injection", 0.05),
)
EXPECTED = {
    "gain_per_price": ["free", "counters", "arms", "knob", "delay", "trace"],
    "gain_alone": ["trace", "knob", "arms", "delay", "counters", "free"],
    "cheapest_first": ["free", "counters", "arms", "delay", "knob", "trace"],
    "full_trace_first": ["trace", "free", "counters", "arms", "delay", "knob"],
    "rule_list": ["free", "counters", "arms", "delay", "knob", "trace"],
    "delay_every_stage": ["delay", "free", "counters", "arms", "knob", "trace"],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_orders_by_hand(name: str) -> None:
    assert [o.key for o in policy(name)(OFFERED)] == EXPECTED[name]


@pytest.mark.parametrize("name", [*POLICIES, "random"])
def test_a_policy_is_a_pure_reordering(name: str) -> None:
    choose = policy(name, seed=3)
    found = choose(OFFERED)
    assert sorted(o.key for o in found) == sorted(o.key for o in OFFERED)
    assert choose(OFFERED[::-1]) == found
    assert choose([]) == []


def test_random_orders_differ_by_seed_and_are_even() -> None:
    first = [at_random(seed)(OFFERED)[0].key for seed in range(600)]
    counts = [first.count(o.key) for o in OFFERED]
    # chi-squared of 5 degrees of freedom: above 20.5 in one of a thousand correct programs
    assert sum((c - 100) ** 2 / 100 for c in counts) < 20.5, counts


def test_an_unknown_policy_is_named() -> None:
    with pytest.raises(UnknownName, match="gain_per_prise"):
        policy("gain_per_prise")


# -- edge cutting ----------------------------------------------------------------------


def test_edges_cut_by_a_test_without_noise() -> None:
    """Classes of 1/2, 1/4, 1/4; the test parts the first from the others. Edges: 1/2 x 1/4
    twice and 1/16. Outcome 1 leaves none; outcome 0 leaves the last.
    """
    table = Predictive.of((0.5, 0.25, 0.25), ((1, 0, 0), (0, 1, 1)))
    assert edges_cut(table) == pytest.approx(0.25 + 0.0625 - 0.5 * 0.0625)
    assert edges_cut_noisy(table) == pytest.approx(0.5 + 0.5 * 0.5 - (0.25 + 2 * 0.0625))


def test_edges_cut_by_a_noisy_flag() -> None:
    """Two equal classes, a flag that is right nine times in ten. Edge: 1/4. Either outcome
    has probability 1/2 and leaves 0.45 x 0.05.
    """
    table = Predictive.of((0.5, 0.5), ((0.9, 0.1), (0.1, 0.9)))
    assert edges_cut(table) == pytest.approx(0.25 - 0.45 * 0.05)
    assert edges_cut_noisy(table) == pytest.approx(0.82 - 0.5)


def test_noise_alone_cuts_nothing_in_the_form_for_noisy_tests() -> None:
    coin = Predictive.of((0.5, 0.5), ((0.5, 0.5), (0.5, 0.5)))
    assert edges_cut_noisy(coin) == pytest.approx(0.0)
    assert edges_cut(coin) > 0.1  # which is why the other form is not used on readings


def test_edge_cutting_goes_by_edges_per_price() -> None:
    half = Predictive.of((0.5, 0.5), SURE)
    weak = Predictive.of((0.5, 0.5), ((0.9, 0.1), (0.1, 0.9)))
    found = edge_cutting(
        [
            Option("sure", Gain(1.0, 0.0, "enumeration"), 10.0, predictive=lambda: half),
            Option("weak", Gain(0.5, 0.0, "enumeration"), 5.0, predictive=lambda: weak),
            option("dark", 1.0, 0.1),
        ]
    )
    # 0.5 / 10 against 0.32 / 5; what nobody can predict comes last
    assert [o.key for o in found] == ["weak", "sure", "dark"]


def test_a_table_that_is_no_distribution_is_refused() -> None:
    with pytest.raises(ValueRejected, match=r"0\.7"):
        Predictive.of((0.5, 0.5), ((0.7, 0.1), (0.1, 0.9)))
    with pytest.raises(ValueRejected, match="3 hypotheses"):
        Predictive.of((0.5, 0.2, 0.3), SURE)


def test_predictive_of_a_belief_has_the_gain_of_the_belief(frame, plain, contrast) -> None:
    rivals: list[Plain] = [plain("one", 0.0, 0.05), plain("two", 0.4, 0.05)]
    belief = Belief(rivals, frame, seed=0, particles=256)
    for plan in ([contrast()], [contrast(), contrast("sm_clock")], []):
        found = predictive(belief, plan)
        assert found.weight.sum() == pytest.approx(1.0)
        assert found.posterior.sum(1) == pytest.approx(np.ones(len(found.weight)))
        assert found.weight @ found.posterior == pytest.approx(found.prior, abs=0.02)
        p = np.clip(found.posterior, 1e-12, 1.0)
        bits = float(found.weight @ (p * np.log2(p / found.prior)).sum(1))
        assert bits == pytest.approx(gains(belief, [plan])[0].bits, abs=0.02)


# -- the optimum -----------------------------------------------------------------------


def flag(key: str, price: float, ones: Sequence[float]) -> FiniteProbe:
    """A probe that reads 1 with these probabilities, one a hypothesis."""
    return FiniteProbe(key, price, (tuple(ones), tuple(1 - p for p in ones)))


def test_the_optimum_of_two_sure_tests_by_hand() -> None:
    """Three equal hypotheses; A names the first, B the second. After either there is a third
    of a decision; else the other decides. A first: 3 + 2/3 x 2; B first: 2 + 2/3 x 3 = 4.
    """
    probes = [flag("A", 3.0, (1, 0, 0)), flag("B", 2.0, (0, 1, 0))]
    found = optimum((1, 1, 1), probes)
    assert found.price_s == pytest.approx(4.0)
    assert found.decided == pytest.approx(1.0)
    assert found.right == pytest.approx(1.0)
    assert outlook((1, 1, 1), probes, policy("gain_alone")).price_s == pytest.approx(4.0)


def test_what_decides_nothing_costs_nothing() -> None:
    blind = [flag("blind", 1.0, (0.5, 0.5))]
    found = optimum((0.5, 0.5), blind)
    assert (found.price_s, found.decided) == (0.0, 0.0)
    assert optimum((0.97, 0.03), blind).decided == 1.0


def test_the_optimum_sees_what_two_flags_do_together() -> None:
    """Neither of two cheap flags settles it, both do, at 1 + 1 against 3 for the dear one.

    Four equal hypotheses are numbered by two bits; each cheap flag reads one of them.
    """
    probes = [
        flag("low", 1.0, (0, 1, 0, 1)),
        flag("high", 1.0, (0, 0, 1, 1)),
        FiniteProbe("all", 3.0, tuple(tuple(float(i == j) for j in range(4)) for i in range(4))),
    ]
    assert optimum((1, 1, 1, 1), probes).price_s == pytest.approx(2.0)
    assert outlook((1, 1, 1, 1), probes, gain_per_price).price_s == pytest.approx(2.0)
    assert outlook((1, 1, 1, 1), probes, policy("gain_alone")).price_s == pytest.approx(3.0)


def test_too_many_states_are_refused() -> None:
    with pytest.raises(ValueRejected, match="531441 states of 12 probes"):
        optimum((0.5, 0.5), [flag(str(i), 1.0, (0.9, 0.1)) for i in range(12)])


def fixture(seed: int) -> tuple[list[float], list[FiniteProbe]]:
    """Four hypotheses and six flags: most of them sharp, some blunt, prices over a decade."""
    rng = np.random.default_rng(seed)
    probes = []
    for i in range(6):
        sharp = 0.97 if rng.random() < 0.7 else 0.8
        ones = np.where(rng.random(4) < 0.5, sharp, 1 - sharp)
        probes.append(flag(f"p{i}", float(np.exp(rng.normal(2.0, 1.0))), ones.tolist()))
    return rng.dirichlet(np.full(4, 3.0)).tolist(), probes


def test_gain_per_price_is_near_the_optimum() -> None:
    """Over fixtures that can be decided at all: in total and in nine of ten within 1.25,
    and below every policy that does not look at both gain and price.
    """
    total: dict[str, float] = dict.fromkeys(("optimum", *EXPECTED, "random"), 0.0)
    ratios = []
    for seed in range(24):
        prior, probes = fixture(seed)
        best = optimum(prior, probes)
        if best.decided < 0.5:
            continue
        total["optimum"] += best.price_s
        for name in (*EXPECTED, "random"):
            found = outlook(prior, probes, policy(name, seed))
            assert found.price_s >= best.price_s - 1e-9
            total[name] += found.price_s
            if name == "gain_per_price":
                ratios.append(found.price_s / best.price_s)
    assert len(ratios) >= 15
    assert total["gain_per_price"] <= 1.25 * total["optimum"]
    assert float(np.quantile(ratios, 0.9)) <= 1.25, sorted(ratios)
    for name in ("gain_alone", "cheapest_first", "rule_list", "random"):
        assert total["gain_per_price"] < total[name], total


# -- in the loop -------------------------------------------------------------------------


def test_the_study_chooses_as_before_by_default() -> None:
    """`score_plans` puts plans in the order of `price.order`, and a study asks for the first."""
    with opened(CONFOUNDED) as study:
        scored = study.score()
        again = [s._scored() for s in scored]
        assert [o.key for o in order(again)] == [s.key for s in again]
        assert study.ask()[0].plan == scored[0].plan.key


def test_a_study_follows_another_policy() -> None:
    with opened(CONFOUNDED) as study:
        default = study.score()
        other = score_plans(
            study.system,
            study._knows,
            (),
            study._means(),
            choose=policy("gain_alone"),
        )
        assert {s.plan.key for s in other} == {s.plan.key for s in default}
        assert other[0].gain.bits == max(s.gain.bits for s in other)
        edges = score_plans(study.system, study._knows, (), study._means(), choose=edge_cutting)
        assert {s.plan.key for s in edges} == {s.plan.key for s in default}
        study.choose = policy("gain_alone")
        assert study.ask()[0].plan == other[0].plan.key
        assert {s.option(study._knows.belief).kind for s in default} >= {"end_to_end"}
        assert math.isfinite(sum(s.price_s for s in default))
