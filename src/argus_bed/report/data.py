"""A study as one versioned JSON object."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from numbers import Integral, Real
from typing import Any

from argus_bed.report.view import StudyView
from argus_bed.report.worth import worth_of

SCHEMA = "argus-bed/study/1"


def as_json(view: StudyView) -> dict[str, Any]:
    """The study as JSON data: strings, numbers, booleans, null, lists and objects.

    What is not a finite number becomes null. Keys are only ever added under one schema
    number; removing or changing one raises it.
    """
    plain = nulled(view)
    plain.pop("runs")
    return {
        "schema": SCHEMA,
        **plain,
        "probabilities": nulled(view.now),
        "ranking": [[name, nulled(view.now.get(name))] for name in view.ranked],
        "probes": nulled(view.probes),
        "runs": [{**nulled(run), "worth": nulled(worth_of(run))} for run in view.runs],
    }


def nulled(value: Any) -> Any:
    """Records to JSON data; NaN, infinities and what JSON has no word for become null or text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return nulled(value.value)
    if isinstance(value, str):
        # a lone surrogate, from a file name say, cannot be encoded on the way out
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: nulled(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {nulled(str(k)): nulled(v) for k, v in value.items()}
    if isinstance(value, Set):
        return [nulled(v) for v in sorted(value, key=str)]
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [nulled(v) for v in value]
    return str(value)
