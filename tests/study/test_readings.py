"""From samples in units to one link-space number with its noise."""

import numpy as np
import pytest

from argus_bed.contrast import partner, planned_readings, shows_metric
from argus_bed.frame import BASELINE, CANDIDATE, Cell, Condition, Frame, Stage
from argus_bed.probe import Measurement, Sample, SideEffect
from argus_bed.study.readings import disturbed, to_readings, void_probability

ARMS = (Condition(BASELINE), Condition(CANDIDATE))


def frame(*more, cells=()):
    stages = (Stage("flag", "setting"), Stage("work", "compute", False))
    return Frame("step_time", (*ARMS, *more), stages, cells)


def step(condition, values, paired=True):
    return Sample(Cell("step_time", condition), tuple(values), paired)


PLANNED = Measurement(Cell("step_time", CANDIDATE), Cell("step_time", BASELINE), noise=0.01)


def test_pairing_removes_what_both_arms_share():
    rng = np.random.default_rng(1)
    weather = rng.normal(0, 0.2, 30)
    a = np.exp(weather + rng.normal(0, 0.002, 30))
    b = np.exp(weather + 0.05 + rng.normal(0, 0.002, 30))
    (paired,) = to_readings(frame(), [PLANNED], [step(BASELINE, a), step(CANDIDATE, b)], {})
    (loose,) = to_readings(
        frame(), [PLANNED], [step(BASELINE, a, False), step(CANDIDATE, b, False)], {}
    )
    assert paired.reading.value == pytest.approx(0.05, abs=0.002)
    assert paired.reading.measurement.noise < 0.004
    assert loose.reading.measurement.noise > 10 * paired.reading.measurement.noise


def test_one_outlier_moves_nothing():
    values = [1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.01]
    spoilt = [*values[:-1], 50.0]
    clean = to_readings(frame(), [PLANNED], [step(BASELINE, values), step(CANDIDATE, values)], {})
    dirty = to_readings(frame(), [PLANNED], [step(BASELINE, values), step(CANDIDATE, spoilt)], {})
    assert abs(dirty[0].reading.value - clean[0].reading.value) < 0.02


def test_an_unpaired_comparison_never_resolves_a_small_effect():
    values = [1.0] * 1000
    (read,) = to_readings(
        frame(),
        [PLANNED],
        [step(CANDIDATE, values, False)],
        {step(BASELINE, values).cell: step(BASELINE, values)},
    )
    assert read.reading.measurement.noise >= 0.02


def test_lost_time_is_a_share_of_the_step_where_that_is_known():
    planned = Measurement(Cell("gil_wait", CANDIDATE), noise=0.1)
    wait = Sample(Cell("gil_wait", CANDIDATE), (0.02, 0.02))
    (read,) = to_readings(frame(), [planned], [wait, step(CANDIDATE, [0.1, 0.1])], {})
    assert read.reading.value == pytest.approx(2.0)  # tenths of the step
    (unknown,) = to_readings(frame(), [planned], [wait], {})
    assert unknown.reading is None
    assert "step time" in unknown.why_not


def test_lost_time_without_a_step_is_compared_softly():
    a, b = Cell("copy_time", CANDIDATE), Cell("copy_time", BASELINE)
    (read,) = to_readings(
        frame(), [Measurement(a, b, 0.1)], [Sample(a, (0.0,)), Sample(b, (0.057,))], {}
    )
    assert read.reading.value == pytest.approx(-1.0)


def test_a_void_quantity_is_dropped_and_a_doubtful_one_discounted():
    sure = SideEffect("serializes", "", 1.0, frozenset({"step_time"}))
    maybe = SideEffect("inflates_host", "busy host", 0.3, frozenset({"step_time"}))
    assert disturbed([PLANNED], [sure], {}) == ()
    (kept,) = disturbed([PLANNED], [maybe], {})
    assert kept.coincidence == pytest.approx(0.3)
    assert disturbed([PLANNED], [maybe, sure], {}) == ()


def test_a_setting_decides_whether_an_instrument_disturbs():
    effect = SideEffect("removes_overlap", "setting flag is 1: timed events", 0.5)
    cell = Cell("env_flag", BASELINE, "flag")
    assert void_probability(effect, {}) == 0.5
    assert void_probability(effect, {cell: Sample(cell, (1.0,))}) == 0.9
    assert void_probability(effect, {cell: Sample(cell, (0.0,))}) == 0.0


def test_contrasts_differ_by_one_thing():
    knob_b = Condition("b:k", BASELINE, "k", "1", frozenset({"gc_pause"}))
    knob_c = Condition("c:k", CANDIDATE, "k", "1", frozenset({"gc_pause"}))
    other = Condition("c:other", CANDIDATE, "j", "1", frozenset({"gil_held"}))
    f = frame(knob_b, knob_c, other)
    cells = {Cell("step_time", c.name): 1 for c in f.conditions}
    assert partner(f, Cell("step_time", BASELINE), cells) is None
    assert partner(f, Cell("step_time", CANDIDATE), cells).condition == BASELINE
    assert partner(f, Cell("step_time", "c:k"), cells).condition == "b:k"
    assert partner(f, Cell("step_time", "c:other"), cells).condition == CANDIDATE
    del cells[Cell("step_time", "b:k")]
    assert partner(f, Cell("step_time", "c:k"), cells).condition == CANDIDATE


def test_an_earlier_reading_gains_its_contrast_when_the_partner_arrives():
    known = {Cell("step_time", CANDIDATE): step(CANDIDATE, [1.0])}
    planned = list(planned_readings(frame(), {Cell("step_time", BASELINE): 1}, known))
    assert [m.cell.condition for m in planned] == [CANDIDATE]
    assert shows_metric(frame(), planned[0])
    assert list(planned_readings(frame(), {Cell("step_time", BASELINE): 1}, {})) == []
