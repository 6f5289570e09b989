"""Ask, tell, run, stop: one question from its first probe to its verdict.

`engine` holds the study, `knowledge` what it knows, `scoring` what is worth measuring,
`measuring` from a proposal to a run, `readings` how samples become evidence, `telling` words
and records, `showing` what a report reads, `verdict` when to stop, `policy` what people
allow; `live` and `workload.recorded` are the two kinds of system that a study asks.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argus_bed.study.engine import Study as Study
    from argus_bed.study.opening import open_study as open_study

_HOME = {"Study": "argus_bed.study.engine", "open_study": "argus_bed.study.opening"}

__all__ = ["Study", "open_study"]


def __getattr__(name: str) -> Any:
    """Load at first use: the engine imports torch and PyMC, the records beside it do not."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
