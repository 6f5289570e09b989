"""One frame in which every mechanism of the library has marks."""

from __future__ import annotations

from collections.abc import Iterable

from argus_bed.frame import Cell, Condition, Frame, Stage
from argus_bed.quantity import QUANTITIES

STAGES = (
    Stage("part", "compute", changed=True),
    Stage("neighbour", "compute", changed=False),
    Stage("send", "communication", changed=False),
    Stage("move", "copy"),
    Stage("input", "wait"),
    Stage("prepare", "host"),
)
OF_A_STAGE = ("stage_time", "stage_share", "delay_slope")


def library_frame(causes: Iterable[str]) -> Frame:
    """Everything that a mechanism can mark, in both arms and with all ``causes`` turned off
    in the candidate and turned on in the baseline.

    So that every mechanism has a rest that its removal leaves, and, because nobody says
    what the change was meant to do, a side on which it may be.
    """
    names = frozenset(causes)
    conditions = (
        Condition("baseline"),
        Condition("candidate"),
        Condition("candidate:without", "candidate", "cause", "without", removes=names),
        Condition("baseline:with", "baseline", "cause", "with", adds=names),
    )
    arms = conditions[:2]
    whole = [q for q in QUANTITIES if q not in (*OF_A_STAGE, "env_flag")]
    cells = [Cell(q, c.name) for q in whole for c in conditions]
    cells += [Cell("stage_time", c.name, s.name) for s in STAGES for c in arms]
    cells += [Cell("isolated_time", c.name, "part") for c in arms]
    cells += [Cell("stage_share", "baseline", "part"), Cell("delay_slope", "candidate", "part")]
    return Frame("step_time", conditions, STAGES, tuple(cells), "unknown")
