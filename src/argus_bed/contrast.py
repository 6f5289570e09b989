"""Which comparisons a set of readings allows.

Absolute levels say little about a cause; what differs by one thing says much. A cell is
therefore compared with the same quantity in the other arm under the same knob setting,
or in the arm that its condition derives from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from argus_bed.frame import BASELINE, CANDIDATE, Cell, Frame, benign, is_metric
from argus_bed.probe import Measurement, Sample
from argus_bed.quantity import Family, quantity

# Sd of one recorded reading in link space (assumption: sources seldom state a spread).
SINGLE_READING: dict[Family, float] = {
    Family.DURATION: 0.03,
    Family.LOST_TIME: 0.10,
    Family.RATE: 0.03,
    Family.COUNT: 0.05,
    Family.FRACTION: 0.30,
    Family.RATIO: 0.05,
    Family.STATE: 0.02,
    Family.FLAG: 0.0,
}
BLOCK_READING = SINGLE_READING | {Family.DURATION: 0.01, Family.RATE: 0.01}
"""The same for a block of a tenth of a second, run side by side with others (assumption, until
the study has seen its own blocks)."""
# Quantities that mean something without a comparison.
ABSOLUTE = {"bandwidth_ratio", "neighbour_slowdown", "kernel_name_changed", "delay_slope"}


def planned_readings(
    frame: Frame, here: Mapping[Cell, int], known: Mapping[Cell, Sample]
) -> Iterable[Measurement]:
    """What a run that reads the cells ``here`` (with so many values each) tells.

    Each cell gives one reading: by itself where that means something, else the contrast
    with the same quantity in a condition that differs by one thing, if that is read in
    the same run or was read before. Earlier cells gain a contrast when their partner
    arrives.
    """
    reach = {**{c: len(s.values) for c, s in known.items()}, **here}
    for cell in reach:
        stage = frame.stage(cell.stage)
        if cell.quantity == "env_flag" or (stage is not None and stage.kind in ("setting", "rank")):
            continue
        about = quantity(cell.quantity)
        single = SINGLE_READING[about.family]
        alone = cell.quantity in ABSOLUTE
        # an arm shows such a quantity by itself, a derived condition what its knob changed
        arm = frame.condition(cell.condition).is_arm
        against = None if alone and arm else partner(frame, cell, reach)
        if against is None and not alone:
            continue
        if cell not in here and against not in here:
            continue
        n = max(min(reach[cell], reach[against]) if against else reach[cell], 1)
        spread, coincidence = benign(frame, cell, against)
        earlier = [known[c] for c in (cell, against) if c is not None and c not in here]
        for sample in earlier:  # this run's own instrument is the study's to judge
            coincidence = 1.0 - (1.0 - coincidence) * (1.0 - sample.doubt)
        noise = single * (2**0.5 if against else 1.0) / n**0.5
        family: Literal["student", "bernoulli"] = (
            "bernoulli" if about.family is Family.FLAG else "student"
        )
        yield Measurement(cell, against, max(noise, 1e-6), spread, coincidence, 4.0, family, n)


def partner(frame: Frame, cell: Cell, reach: Mapping[Cell, int]) -> Cell | None:
    """The cell to compare with: the other arm under the same knob, else the arm without it."""
    condition = frame.condition(cell.condition)

    def at(name: str) -> Cell | None:
        other = Cell(cell.quantity, name, cell.stage)
        return other if other in reach else None

    if condition.name == BASELINE:
        return None
    if condition.name == CANDIDATE:
        return at(BASELINE)
    if frame.root(condition.name) == CANDIDATE:
        for other in frame.conditions:
            same = (other.knob, other.value, other.system) == (
                condition.knob,
                condition.value,
                condition.system,
            )
            if same and not other.is_arm and frame.root(other.name) == BASELINE and at(other.name):
                return at(other.name)
    if condition.system is None:
        return at(str(condition.of))
    for other in frame.conditions:  # another set-up: only conditions within it compare
        if other.name == condition.name:
            return None
        if other.system == condition.system and at(other.name):
            return at(other.name)
    return None


def shows_metric(frame: Frame, measurement: Measurement) -> bool:
    """Whether a reading is a controlled comparison in the metric of the question: of the
    two arms, or of two conditions that differ by one knob.
    """
    return measurement.against is not None and is_metric(frame, measurement.cell)
