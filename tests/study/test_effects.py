"""Two causes at once get effect shares with intervals, or it says that they are confounded."""

from __future__ import annotations

import math

import pytest

from argus_bed.contrast import planned_readings
from argus_bed.frame import BASELINE, CANDIDATE, Cell, Condition, Frame
from argus_bed.hypothesis import catalogue, prior_probabilities, select
from argus_bed.inference.belief import Belief
from argus_bed.probe import Reading
from argus_bed.study.effects import effect_in_words, effects_of

PAIR = "data_starvation+gc_pause"
ARMS = (Condition(BASELINE), Condition(CANDIDATE))
QUANTITIES = ("step_time", "data_wait", "gc_pause")
FRAME = Frame(
    "step_time",
    ARMS,
    (),
    tuple(Cell(q, c.name) for q in QUANTITIES for c in ARMS),
    "same",
)


def belief(**tenths: float) -> Belief:
    """Beliefs after the step got longer by 35 % and so many tenths of it were lost as said."""
    known = select(("data_starvation", "gc_pause"), catalogue(), max_causes=2)
    found = Belief(
        [h for h in known if len(h.causes) == 1],
        FRAME,
        seed=7,
        prior=prior_probabilities(known),
        asleep=[h for h in known if len(h.causes) == 2],
    ).wake([PAIR])
    values = {"step_time": math.log(1.35), **tenths}
    readings = []
    for quantity, value in values.items():
        here = {Cell(quantity, c.name): 30 for c in ARMS}
        (planned,) = planned_readings(FRAME, here, {})
        readings.append(Reading(planned, value))
    return found.update(readings)


@pytest.mark.promise("A13")
def test_two_causes_share_the_effect():
    after = belief(data_wait=1.5, gc_pause=0.75)
    starved, paused = effects_of(after, ("data_starvation", "gc_pause"))
    assert not starved.confounded
    # together about what the step lost: 0.35 of 1.35
    assert starved.median + paused.median == pytest.approx(0.35 / 1.35, abs=0.06)
    assert starved.median > paused.median
    for share in (starved, paused):
        assert 0 < share.low < share.median < share.high < 0.35
    words = effect_in_words((starved, paused))
    assert "without data_starvation" in words
    assert "without gc_pause" in words


@pytest.mark.promise("A13")
def test_where_only_the_sum_is_known_it_says_confounded():
    shares = effects_of(belief(), ("data_starvation", "gc_pause"))
    assert all(s.confounded for s in shares)
    assert "confounded" in effect_in_words(shares)


def test_one_cause_takes_what_the_step_lost():
    (share,) = effects_of(belief(data_wait=2.0), ("data_starvation",))
    assert share.median == pytest.approx(0.35 / 1.35, abs=0.05)
    assert not share.confounded


def test_the_share_is_of_the_candidate_as_it_is():
    """Faster by a local change and slower by a cause: what the cause takes is of that step."""
    known = catalogue()
    frame = Frame("step_time", ARMS, (), FRAME.cells, "faster")
    begun = Belief([known["gc_pause"], known["data_starvation"]], frame, seed=7)
    here = {Cell("step_time", c.name): 30 for c in ARMS}
    (planned,) = planned_readings(frame, here, {})
    after = begun.update([Reading(planned, math.log(0.8))])
    values, weights = after.parts("gc_pause")
    shorter = float(weights @ values[:, 0])
    extra = after.samples("gc_pause")[0]["gc_pause_extra"]
    # 0.8 of the baseline step remains, with the extra time in it
    assert shorter == pytest.approx(float(weights @ extra) / 0.8, rel=0.1)
