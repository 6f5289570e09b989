"""What is measured: a callable in Python, a command, or a recorded case.

`stage` loads nothing but itself; the rest is loaded at first use, so that markers in a
production program are cheap to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from argus_bed.workload.stages import stage as stage

if TYPE_CHECKING:
    from argus_bed.frame import Stage as Stage
    from argus_bed.workload.command import command as command
    from argus_bed.workload.loading import load as load
    from argus_bed.workload.model import Check as Check
    from argus_bed.workload.model import Claim as Claim
    from argus_bed.workload.model import Knob as Knob
    from argus_bed.workload.model import Workload as Workload

_HOME = {
    "Check": "argus_bed.workload.model",
    "Claim": "argus_bed.workload.model",
    "Knob": "argus_bed.workload.model",
    "Stage": "argus_bed.frame",
    "Workload": "argus_bed.workload.model",
    "command": "argus_bed.workload.command",
    "load": "argus_bed.workload.loading",
}

__all__ = ["Check", "Claim", "Knob", "Stage", "Workload", "command", "load", "stage"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value
