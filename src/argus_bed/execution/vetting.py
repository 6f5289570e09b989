"""Keeps a probe that goes wrong from taking the study with it.

A probe is one file that anybody may write. Whatever it raises becomes a `ProbeError`, and
what it returns is looked at before the study believes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from argus_bed.errors import SAID, ArgusBedError, ConfigError, ProbeError, ProbeFailed, in_a_line
from argus_bed.frame import Cell, Frame
from argus_bed.probe import Bench, Observation, Plan, Probe, Sample, Target
from argus_bed.quantity import quantity


def planned(probe: Probe, target: Target) -> list[Plan]:
    """The probe's plans for ``target``.

    Raises
    ------
    ConfigError : planning raises, or a plan is about something that does not exist.
    """
    try:
        plans = list(probe.plans(target))
        for plan in plans:
            for cell in announced(plan):
                _exists(cell, target.frame)
    except ArgusBedError as error:
        raise ConfigError(f"probe {probe.name!r} makes a wrong plan: {_line(error)}") from error
    except Exception as error:
        raise ConfigError(f"probe {probe.name!r} cannot plan: {in_a_line(error)}") from error
    return plans


def measured(probe: Probe, plan: Plan, bench: Bench, seed: int) -> Observation:
    """What the probe read.

    Raises
    ------
    ProbeError : it could not measure, raised something else, or returned nonsense.
    """
    try:
        found: Any = probe.run(plan, bench, seed)
    except ProbeError:
        raise
    except (Exception, SystemExit) as error:
        raise ProbeFailed(f"probe {probe.name!r} raised {in_a_line(error)}") from error
    if not isinstance(found, Observation):
        raise ProbeFailed(
            f"probe {probe.name!r} returned {_short(found)}; an Observation is wanted"
        )
    try:
        return _sound(found, plan)
    except (TypeError, ValueError, AttributeError, ArgusBedError) as error:
        raise ProbeFailed(f"probe {probe.name!r} read nonsense: {_line(error)}") from error


def announced(plan: Plan) -> Iterable[Cell]:
    """Every cell that a plan is about."""
    yield from plan.reads
    for measurement in plan.measurements:
        yield measurement.cell
        if measurement.against is not None:
            yield measurement.against


def _exists(cell: Cell, frame: Frame) -> None:
    quantity(cell.quantity)
    frame.condition(cell.condition)
    if cell.stage is not None and cell.stage not in frame.stage_index:
        raise ConfigError(f"{cell}: there is no stage {cell.stage!r}")


def _sound(found: Observation, plan: Plan) -> Observation:
    """``found`` as plain numbers. Raises whatever a wrong value raises."""
    known = set(announced(plan))
    samples = []
    for sample in found.samples:
        if not isinstance(sample, Sample):
            raise TypeError(f"{_short(sample)} among its samples; a Sample is wanted")
        if sample.cell not in known:
            raise ValueError(f"{sample.cell} was not announced by plan {plan.key}")
        check = quantity(sample.cell.quantity).check
        values = tuple(check(_number(v, sample.cell)) for v in sample.values)
        samples.append(replace(sample, values=values))
    if not any(s.values for s in samples):
        raise ValueError("no value of anything")
    overhead = found.overhead
    if overhead is not None and not math.isfinite(overhead):
        overhead = None
    facts = {k: v for k, v in found.environment.items() if _plain(v)}
    kept = tuple(s for s in samples if s.values)
    return replace(found, samples=kept, overhead=overhead, environment=facts)


def _number(value: Any, cell: Cell) -> float:
    if isinstance(value, str | bytes):
        raise TypeError(f"{cell} = {_short(value)}: a number is wanted")
    return float(value)


def _plain(value: Any) -> bool:
    """Whether the ledger can keep it."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return not isinstance(value, Mapping) or all(isinstance(k, str) for k in value)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:SAID]


def _short(value: Any) -> str:
    try:
        return repr(value)[:80]
    except Exception:  # repr runs code of the probe's own
        return f"a {type(value).__name__}"
