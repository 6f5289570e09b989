"""Bayesian experiment design for performance questions.

::

    from argus_bed import open_study

    with open_study("why-slow", workload="workload.py") as study:
        verdict = study.run(max_price=120)
        print(verdict.status, verdict.causes, verdict.next_action)

Names are loaded at first use: ``import argus_bed`` is cheap, and the ``stage`` markers in
a production program pull in neither torch nor PyMC.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argus_bed import errors as errors
    from argus_bed.hypothesis import Hypothesis as Hypothesis
    from argus_bed.hypothesis import hypothesis as hypothesis
    from argus_bed.probe import Observation as Observation
    from argus_bed.probe import Probe as Probe
    from argus_bed.quantity import Quantity as Quantity
    from argus_bed.records import Proposal as Proposal
    from argus_bed.records import Run as Run
    from argus_bed.records import RunState as RunState
    from argus_bed.records import Verdict as Verdict
    from argus_bed.study import Study as Study
    from argus_bed.study import open_study as open_study
    from argus_bed.study.policy import Policy as Policy
    from argus_bed.workload import Workload as Workload
    from argus_bed.workload import stage as stage

__version__ = "0.1.0"

_HOME = {
    "Hypothesis": "argus_bed.hypothesis",
    "Observation": "argus_bed.probe",
    "Policy": "argus_bed.study.policy",
    "Probe": "argus_bed.probe",
    "Proposal": "argus_bed.records",
    "Quantity": "argus_bed.quantity",
    "Run": "argus_bed.records",
    "RunState": "argus_bed.records",
    "Study": "argus_bed.study",
    "Verdict": "argus_bed.records",
    "Workload": "argus_bed.workload",
    "hypothesis": "argus_bed.hypothesis",
    "open_study": "argus_bed.study",
    "stage": "argus_bed.workload",
}

__all__ = [
    "Hypothesis",
    "Observation",
    "Policy",
    "Probe",
    "Proposal",
    "Quantity",
    "Run",
    "RunState",
    "Study",
    "Verdict",
    "Workload",
    "__version__",
    "errors",
    "hypothesis",
    "open_study",
    "stage",
]


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("argus_bed.errors")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    setattr(sys.modules[__name__], name, value)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


class _Surface(ModuleType):
    """The decorator `hypothesis` bears the name of its own file.

    Importing the file would put the module in the decorator's place, depending on what
    was imported first; here it is always the decorator. ``from argus_bed.hypothesis import
    catalogue`` reaches the module as ever.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "hypothesis" and isinstance(value, ModuleType):
            value = value.hypothesis
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Surface
