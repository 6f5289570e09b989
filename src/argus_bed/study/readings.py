"""From what a run read to what enters the likelihood.

Samples arrive in units; a `Reading` is one link-space number with its noise. Paired
samples are compared index by index. The centre is the median; how far single readings
scatter is known from the plan, from earlier runs and from their own deviation (`scatter`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from argus_bed.frame import Cell, Frame
from argus_bed.probe import Measurement, Reading, Sample, SideEffect
from argus_bed.quantity import TENTH, Family, Link, quantity
from argus_bed.study.scatter import UNSEEN, Scatter, Spread, noise_of_median, stated

UNPAIRED_DRIFT = 0.02  # sd between two readings of one arm apart in time (assumption)
SETTING_VOIDS = 0.9  # catalogue section 2: timing events with one hardware queue, P = 0.9
COUNT_CAP = math.log(50.0)
"""From nothing to fifty is as telling as from nothing to a million."""


@dataclass(frozen=True)
class Read:
    """A reading, or the reason why a planned one was not used."""

    measurement: Measurement
    reading: Reading | None
    raw: tuple[float, ...] = ()
    raw_against: tuple[float, ...] = ()
    why_not: str = ""


def void_probability(effect: SideEffect, known: Mapping[Cell, Sample]) -> float:
    """How probable it is that a side effect is at work, given the settings read so far."""
    if not effect.when:
        return 1.0
    words = effect.when.split()
    if len(words) >= 4 and words[0] == "setting" and words[2] == "is":
        flags = [
            s.values[-1]
            for c, s in known.items()
            if c.stage == words[1] and c.quantity == "env_flag"
        ]
        if not flags:
            return 0.5
        return SETTING_VOIDS if max(flags) == 1 else 0.0
    return effect.probability


def doubted(
    samples: Iterable[Sample], effects: Sequence[SideEffect], known: Mapping[Cell, Sample]
) -> list[Sample]:
    """The samples of a run, each with the probability that its instrument voided it."""
    return [replace(s, doubt=1.0 - _valid(s.cell.quantity, effects, known)) for s in samples]


def _valid(
    quantity_name: str, effects: Sequence[SideEffect], known: Mapping[Cell, Sample]
) -> float:
    return math.prod(1.0 - void_probability(e, known) for e in effects if quantity_name in e.voids)


def disturbed(
    measurements: Iterable[Measurement],
    effects: Sequence[SideEffect],
    known: Mapping[Cell, Sample],
) -> tuple[Measurement, ...]:
    """The measurements as the instrument leaves them.

    A quantity that is certainly void is dropped; one that may be void keeps its place
    with a correspondingly larger probability of being a coincidence.
    """
    kept = []
    for planned in measurements:
        valid = _valid(planned.cell.quantity, effects, known)
        if valid <= 1.0 - SETTING_VOIDS + 1e-9:
            continue
        coincidence = 1.0 - (1.0 - planned.coincidence) * valid
        kept.append(replace(planned, coincidence=coincidence))
    return tuple(kept)


def to_readings(
    frame: Frame,
    measurements: Iterable[Measurement],
    now: Sequence[Sample],
    before: Mapping[Cell, Sample],
    scatter: Scatter = UNSEEN,
) -> list[Read]:
    """Turn the samples of one run into readings of the planned measurements.

    Parameters
    ----------
    now : samples of this run. before : latest earlier sample of each cell.
    scatter : what earlier runs showed of it.
    """
    here = {s.cell: s for s in now}
    found = []
    for planned in measurements:
        sample = here.get(planned.cell) or before.get(planned.cell)
        if sample is None or not sample.values:
            found.append(Read(planned, None, why_not="the run gave no value for it"))
            continue
        if planned.against is None:
            found.append(_absolute(planned, sample, here, before))
            continue
        other = here.get(planned.against) or before.get(planned.against)
        if other is None or not other.values:
            found.append(Read(planned, None, sample.values, why_not="nothing to compare it with"))
            continue
        same_run = planned.cell in here and planned.against in here
        found.append(_contrast(planned, sample, other, same_run, here, before, scatter))
    return found


def _step_of(cell: Cell, *stores: Mapping[Cell, Sample]) -> float | None:
    """Median step time of the cell's condition, of this run or the latest one before it."""
    for store in stores:
        step = store.get(Cell("step_time", cell.condition))
        if step is not None and step.values:
            return median(step.values)
    return None


def _absolute(
    planned: Measurement,
    sample: Sample,
    here: Mapping[Cell, Sample],
    before: Mapping[Cell, Sample],
) -> Read:
    about = quantity(sample.cell.quantity)
    values = list(sample.values)
    if about.link is Link.BINARY:
        return Read(planned, Reading(planned, 1.0 if median(values) >= 0.5 else 0.0), sample.values)
    if about.family is Family.LOST_TIME:
        step = _step_of(planned.cell, here, before)
        if step is None:
            return Read(planned, None, sample.values, why_not="the step time is not known yet")
        values = [v / step for v in values]
    linked = [about.to_link(v) for v in values]
    return Read(planned, _summary(planned, linked, stated(planned)), sample.values)


def _contrast(
    planned: Measurement,
    sample: Sample,
    other: Sample,
    same_run: bool,
    here: Mapping[Cell, Sample],
    before: Mapping[Cell, Sample],
    scatter: Scatter,
) -> Read:
    about = quantity(sample.cell.quantity)
    mine, theirs = list(sample.values), list(other.values)
    if about.family is Family.LOST_TIME:
        # with no step to relate it to, the larger one counts as a tenth of the step
        whole = max(*mine, *theirs) / TENTH or 1.0
        my_step, their_step = (_step_of(c, here, before) for c in (sample.cell, other.cell))
        if my_step is None or their_step is None:
            my_step = their_step = whole
        mine, theirs = [v / my_step for v in mine], [v / their_step for v in theirs]
    a = [about.to_link(v) for v in mine]
    b = [about.to_link(v) for v in theirs]
    cap = COUNT_CAP if about.family is Family.COUNT else math.inf
    paired = same_run and sample.paired and other.paired and len(a) == len(b)
    if paired:
        differences = [x - y for x, y in zip(a, b, strict=True)]
        found = _capped(_summary(planned, differences, scatter.of_one(planned)), cap)
        return Read(planned, found, sample.values, other.values)
    drift = 0.0 if same_run and sample.paired else UNPAIRED_DRIFT
    of_each = stated(planned, math.sqrt(0.5))
    one, two = _summary(planned, a, of_each), _summary(planned, b, of_each)
    noise = math.sqrt(one.measurement.noise**2 + two.measurement.noise**2 + drift**2)
    dof = min(one.measurement.dof, two.measurement.dof)
    reading = Reading(replace(one.measurement, noise=noise, dof=dof), one.value - two.value)
    reading = _capped(reading, cap)
    return Read(planned, reading, sample.values, other.values)


def _capped(reading: Reading, cap: float) -> Reading:
    return replace(reading, value=min(max(reading.value, -cap), cap))


def _summary(planned: Measurement, values: Sequence[float], one: Spread) -> Reading:
    """Median and its noise; ``one`` is what a single value was expected to scatter by."""
    if len(values) == 1:
        return Reading(replace(planned, noise=one.sd, n=1), values[0])
    noise, dof = noise_of_median(values, one)
    return Reading(replace(planned, noise=noise, dof=dof, n=1), median(values))
