"""Verdicts accept causes, each by the probability that it plays a part."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from argus_bed.contrast import planned_readings
from argus_bed.frame import BASELINE, CANDIDATE, Cell, Condition, Frame
from argus_bed.hypothesis import SECOND_CAUSE, catalogue, prior_probabilities, select
from argus_bed.inference.belief import Belief
from argus_bed.probe import Measurement, Reading
from argus_bed.records import Status
from argus_bed.study.policy import Policy
from argus_bed.study.verdict import Standing, judge, lacks_comparison, playing_a_part, unconsidered

NAMES = ("gc_pause", "gil_held", "overlap_lost")
ARMS = (Condition(BASELINE), Condition(CANDIDATE))
QUANTITIES = ("step_time", "gil_wait", "gc_pause")
FRAME = Frame("step_time", ARMS, (), tuple(Cell(q, c.name) for q in QUANTITIES for c in ARMS))
EXPLANATIONS = select(NAMES, catalogue(), max_causes=2)
PAIR = "gc_pause+gil_held"


def contrast(quantity: str) -> Measurement:
    here = {Cell(quantity, c.name): 9 for c in ARMS}
    (found,) = planned_readings(FRAME, here, {})
    return found


def standing(probabilities: dict[str, float], *, compared: bool = True) -> Standing:
    rest = {h.name: 0.0 for h in EXPLANATIONS}
    return Standing(
        frame=FRAME,
        hypotheses={h.name: h for h in EXPLANATIONS},
        probabilities=rest | probabilities,
        runs=(),
        readings=(contrast("step_time"),) if compared else (),
        policy=Policy(),
        spent_s=0.0,
    )


def belief() -> Belief:
    single = [h for h in EXPLANATIONS if len(h.causes) == 1]
    pairs = [h for h in EXPLANATIONS if len(h.causes) > 1]
    return Belief(single, FRAME, seed=3, prior=prior_probabilities(EXPLANATIONS), asleep=pairs)


@pytest.mark.parametrize(
    ("probabilities", "status", "causes"),
    [
        ({"gil_held": 0.97, "gc_pause": 0.03}, Status.DECIDED, ("gil_held",)),
        ({PAIR: 0.96, "gil_held": 0.04}, Status.DECIDED, ("gil_held", "gc_pause")),
        # whichever second cause: the first one is at work
        (
            {"gil_held": 0.88, PAIR: 0.06, "gil_held+overlap_lost": 0.06},
            Status.DECIDED,
            ("gil_held",),
        ),
        # whether the second one is at work is worth asking
        ({"gil_held": 0.6, PAIR: 0.4}, Status.OPEN, ()),
        ({"gil_held": 0.9, "gc_pause": 0.1}, Status.OPEN, ()),
        ({"no_effect": 0.96, "gil_held": 0.04}, Status.NO_EFFECT, ()),
        ({"none_of_these": 0.85, "gil_held": 0.15}, Status.MODEL_INADEQUATE, ()),
    ],
)
def test_a_cause_is_accepted_by_the_part_it_plays(probabilities, status, causes):
    found = judge(standing(probabilities))
    assert (found.status, found.causes) == (status, causes)
    if causes:
        part = playing_a_part(probabilities, standing({}).hypotheses)
        assert found.probability == pytest.approx(min(part[c] for c in causes))


def test_where_nothing_more_can_be_asked_the_known_cause_is_still_named():
    doubtful = standing({"gil_held": 0.6, PAIR: 0.4})
    found = judge(replace(doubtful, exhausted="no probe is expected to tell 0.02 bits or more"))
    assert (found.status, found.causes) == (Status.DECIDED, ("gil_held",))
    assert any("gc_pause (40.0%)" in line for line in found.leaves_open)


def test_no_cause_is_accepted_without_a_comparison_in_the_metric():
    settled = standing({"gil_held": 0.97, "gc_pause": 0.03}, compared=False)
    assert judge(settled).status is Status.OPEN
    assert lacks_comparison(settled)
    assert judge(replace(settled, exhausted="nothing is left")).status is Status.UNDETERMINED


def test_pairs_have_the_odds_of_a_second_cause():
    """All pairs together: the sum over i < j of 2 w_i w_j / W, times `SECOND_CAUSE`."""
    prior = prior_probabilities(EXPLANATIONS)
    single = math.fsum(prior[n] for n in NAMES)
    pairs = math.fsum(p for n, p in prior.items() if "+" in n)
    assert pairs / single == pytest.approx(SECOND_CAUSE * (1 - 1 / len(NAMES)))


def test_causes_known_to_need_each_other_are_expected_together():
    known = catalogue()
    wanted = ("probe_effect", "queue_serialization", "overlap_lost")
    prior = prior_probabilities(select(wanted, known, max_causes=2))
    odds = known["queue_serialization"].together_with["probe_effect"]
    ratio = prior["probe_effect+queue_serialization"] / prior["probe_effect"]
    assert ratio == pytest.approx(odds)
    assert prior["overlap_lost+probe_effect"] / prior["probe_effect"] < SECOND_CAUSE


def test_a_composite_asleep_counts_towards_the_cause_that_stands_in_for_it():
    asleep = belief()
    assert math.fsum(asleep.probabilities().values()) == pytest.approx(1.0)
    assert not any("+" in n for n in asleep.probabilities())
    apart = asleep.probabilities(apart=[PAIR])
    prior = prior_probabilities(EXPLANATIONS)
    assert apart[PAIR] == pytest.approx(prior[PAIR])
    assert math.fsum(apart.values()) == pytest.approx(1.0)


def test_waking_late_or_early_gives_one_belief():
    """Log evidence within 0.3 nat: two Monte Carlo estimates, as for the order of readings."""
    first = [Reading(contrast("gil_wait"), 2.0), Reading(contrast("gc_pause"), 1.0)]
    second = [Reading(contrast("step_time"), 0.25)]
    early = belief().wake([PAIR]).update(first).update(second)
    late = belief().update(first).update(second).wake([PAIR])
    assert late.log_evidence[PAIR] == pytest.approx(early.log_evidence[PAIR], abs=0.3)
    assert math.fsum(late.probabilities().values()) == pytest.approx(1.0)
    # two marks of two causes: together is likelier than beforehand, against either alone
    together = late.probabilities()[PAIR] / late.probabilities()["gil_held"]
    prior = prior_probabilities(EXPLANATIONS)
    assert together > 5 * prior[PAIR] / prior["gil_held"]


def test_pairs_of_a_cause_are_looked_at_before_it_is_accepted():
    decide_at = 0.8
    start = belief()
    assert unconsidered(start, decide_at) == ()
    held = start.update([Reading(contrast("gc_pause"), 1.8), Reading(contrast("step_time"), 0.2)])
    assert held.probabilities()["gc_pause"] >= decide_at
    names = unconsidered(held, decide_at)
    assert set(names) == {PAIR, "gc_pause+overlap_lost"}
    assert unconsidered(held.wake(names), decide_at) == ()


def test_only_what_sleeps_can_be_woken():
    from argus_bed.errors import UnknownName

    with pytest.raises(UnknownName, match="gil_held"):
        belief().wake(["gil_held"])
