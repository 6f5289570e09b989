"""What was read, as a person tells it, as the engine takes it, and as the ledger keeps it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from argus_bed.errors import UnknownName, ValueRejected
from argus_bed.frame import Cell, Condition, Frame
from argus_bed.probe import Sample
from argus_bed.quantity import parse, quantity
from argus_bed.records import ReadingRecord, Run, RunState
from argus_bed.report.describe import value as value_in_words
from argus_bed.study.readings import Read


def samples_told(
    frame: Frame,
    values: Mapping[str, Sequence[str | float]],
    condition: str,
    stage: str | None,
) -> list[Sample]:
    """What a person read, by quantity, as samples.

    Raises
    ------
    UnknownName : a quantity, condition or stage that is not known here.
    UnitError, ValueRejected : a value that cannot be meant.
    """
    frame.condition(condition)
    if stage is not None and stage not in frame.stage_index:
        raise UnknownName("stage", stage, frame.stage_index)
    if not values:
        raise ValueRejected("nothing was told; write for example step_time=12.3ms")
    samples = []
    for name, given in values.items():
        quantity(name)
        read = tuple(parse(str(v), name) for v in given)
        if not read:
            raise ValueRejected(f"{name}: no value was given; write for example {name}=12.3")
        samples.append(Sample(Cell(name, condition, stage), read))
    return samples


def told_run(
    samples: Sequence[Sample], *, number: int, seconds: float, perturbation: float, harm: float
) -> Run:
    """A measurement made by hand, before anything is concluded from it.

    Raises
    ------
    ValueRejected : a duration or share that is not finite, or negative.
    """
    for label, given in (("seconds", seconds), ("perturbation", perturbation)):
        if not (math.isfinite(given) and given >= 0):
            raise ValueRejected(f"{label} = {given}: a finite number, zero or more")
    return Run(
        number=number,
        state=RunState.DONE,
        proposal=None,
        samples=samples_of(samples),
        price_s=seconds * (1.0 + harm * perturbation),
        seconds=seconds,
        overhead=perturbation or None,
        source="told",
    )


def record_of(read: Read) -> ReadingRecord:
    """A reading as the ledger and the report keep it."""
    planned = read.measurement if read.reading is None else read.reading.measurement
    value = 0.0 if read.reading is None else read.reading.value
    contrast = planned.against is not None
    words = value_in_words(value, planned.cell.quantity, contrast=contrast)
    return ReadingRecord(
        text=str(planned),
        quantity=planned.cell.quantity,
        condition=planned.cell.condition,
        against=planned.against.condition if planned.against else None,
        stage=planned.cell.stage,
        value=value,
        noise=planned.noise,
        shown="" if read.reading is None else words,
        used=read.reading is not None,
        why_not=read.why_not,
        benign=planned.benign,
        coincidence=planned.coincidence,
        dof=planned.dof,
        family=planned.family,
    )


def in_words(condition: Condition) -> str:
    """What a condition is, for a person."""
    if condition.is_arm:
        return "an arm as it is"
    text = f"{condition.of} with {condition.knob}={condition.value}"
    for verb, names in (("removes", condition.removes), ("adds", condition.adds)):
        if names:
            text += f", which {verb} {', '.join(sorted(names))}"
    return text + (f", on another set-up ({condition.system})" if condition.system else "")


def samples_of(samples: Iterable[Sample]) -> tuple[Mapping[str, Any], ...]:
    """Samples as plain data."""
    return tuple(
        {
            "quantity": s.cell.quantity,
            "condition": s.cell.condition,
            "stage": s.cell.stage,
            "values": list(s.values),
            "paired": s.paired,
            **({"doubt": s.doubt} if s.doubt else {}),
        }
        for s in samples
    )


def to_samples(plain: Iterable[Mapping[str, Any]]) -> list[Sample]:
    """The inverse of `samples_of`."""
    return [
        Sample(
            Cell(p["quantity"], p["condition"], p["stage"]),
            tuple(p["values"]),
            bool(p["paired"]),
            float(p.get("doubt", 0.0)),
        )
        for p in plain
    ]
