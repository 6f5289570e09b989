from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from argus_bed.design.gain import CHEAP, contenders, gains, race, separation, separations
from argus_bed.errors import UsageError, ValueRejected
from argus_bed.frame import Frame, benign
from argus_bed.hypothesis import Hypothesis, catalogue
from argus_bed.inference.belief import Belief
from argus_bed.probe import Measurement, Reading

Make = Callable[..., Measurement]
NAMES = ("gil_held", "no_effect", "none_of_these", "overlap_lost", "power_cap")


@pytest.fixture(scope="module")
def shared() -> dict[str, Belief]:
    return {}


@pytest.fixture
def belief(shared: dict[str, Belief], frame: Frame) -> Belief:
    if not shared:
        shared["library"] = Belief([catalogue()[n] for n in NAMES], frame, seed=5)
    return shared["library"]


@pytest.fixture
def plan(frame: Frame, contrast: Make) -> Callable[..., list[Measurement]]:
    def make(*names: str) -> list[Measurement]:
        found = []
        for name in names:
            m = contrast(name)
            spread, chance = benign(frame, m.cell, m.against)
            found.append(
                contrast(name, family="student", noise=0.05, benign=spread, coincidence=chance)
            )
        return found

    return make


def test_a_probe_that_parts_hypotheses_tells_more(
    belief: Belief, plan: Callable[..., list[Measurement]]
) -> None:
    comm, clock, both, none = gains(
        belief,
        [plan("exposed_comm"), plan("sm_clock"), plan("exposed_comm", "sm_clock"), []],
    )
    assert comm.bits > 0.1
    assert clock.bits > 0.1
    assert both.bits > max(comm.bits, clock.bits)
    assert (none.bits, none.method) == (0.0, "nothing")


def test_repeats_within_a_plan_count_once(
    belief: Belief, plan: Callable[..., list[Measurement]]
) -> None:
    one, twice = gains(belief, [plan("exposed_comm"), plan("exposed_comm", "exposed_comm")])
    assert one.bits <= twice.bits < 1.1 * one.bits


def test_a_settled_cause_leaves_no_gain(
    frame: Frame, plain: Callable[..., Hypothesis], contrast: Make
) -> None:
    start = Belief([plain("null", 0.0, 0.0), plain("shift", 5.0, 0.0)], frame, seed=0)
    after = start.update([Reading(contrast(noise=0.3), 5.0)])
    assert gains(after, [[contrast("sm_clock")]])[0].bits == 0.0


def test_race_finds_the_same_winner(belief: Belief, plan: Callable[..., list[Measurement]]) -> None:
    plans = [plan("exposed_comm"), plan("sm_clock"), plan("step_time", "overlap_fraction")]
    prices = [10.0, 40.0, 25.0]
    raced = race(belief, plans, prices)
    full = gains(belief, plans)
    best = max(range(3), key=lambda i: full[i].bits / prices[i])
    assert max(range(3), key=lambda i: raced[i].bits / prices[i]) == best
    assert best in contenders(gains(belief, plans, effort=CHEAP), prices)
    with pytest.raises(ValueRejected, match="prices"):
        race(belief, plans, [1.0])


@pytest.mark.promise("A05")
def test_every_pair_has_its_separation(
    belief: Belief, plan: Callable[..., list[Measurement]]
) -> None:
    found = separations(belief, plan("exposed_comm"))
    assert set(found) == {(a, b) for i, a in enumerate(NAMES) for b in NAMES[i + 1 :]}
    assert all(0 <= bits <= 1 for bits in found.values())
    assert found["no_effect", "overlap_lost"] > 0.3
    assert found["gil_held", "power_cap"] < 0.01
    alone = separation(belief, plan("exposed_comm"), "no_effect", "overlap_lost")
    assert alone == pytest.approx(found["no_effect", "overlap_lost"], abs=0.01)


def test_targets(belief: Belief, plan: Callable[..., list[Measurement]]) -> None:
    plans = [plan("step_time")]
    cause, parameters, joint = (
        gains(belief, plans, target=t)[0].bits for t in ("cause", "parameters", "joint")
    )
    assert joint == pytest.approx(cause + parameters, abs=1e-9)
    with pytest.raises(UsageError, match="whatever"):
        gains(belief, plans, target="whatever")  # type: ignore[arg-type]


def test_asking_is_fast(belief: Belief, plan: Callable[..., list[Measurement]]) -> None:
    """Processor time, so that a busy machine does not fail it."""
    names = ("step_time", "exposed_comm", "sm_clock", "overlap_fraction")
    plans = [plan(*names[: 1 + i % 4]) for i in range(12)]
    gains(belief, plans)
    started = time.process_time()
    gains(belief, plans)
    assert time.process_time() - started < 2.0
