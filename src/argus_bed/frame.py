"""What a study can talk about: arms, conditions, stages, and cells that can be read.

Plain vocabulary: no model, no outcome. Also says how far a cell moves for reasons that have
nothing to do with the question.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from argus_bed.errors import ConfigError, UnknownName
from argus_bed.quantity import Family, quantity

BASELINE = "baseline"
CANDIDATE = "candidate"

Intent = Literal["faster", "same", "unknown"]
StageKind = Literal["compute", "communication", "copy", "host", "wait", "setting", "rank", "other"]


@dataclass(frozen=True, order=True)
class Cell:
    """One thing that can be read: a quantity in a condition, of a stage or of the step."""

    quantity: str
    condition: str
    stage: str | None = None

    def __str__(self) -> str:
        where = f"{self.stage}@{self.condition}" if self.stage else self.condition
        return f"{self.quantity}[{where}]"


@dataclass(frozen=True)
class Stage:
    """A named part of a step. ``changed``: by the candidate, on purpose (None: unknown)."""

    name: str
    kind: StageKind = "compute"
    changed: bool | None = None
    what: str = ""


@dataclass(frozen=True)
class Condition:
    """An arm, or an arm with one knob turned.

    ``removes`` and ``adds`` name mechanisms and are declared before any outcome. Both
    empty: merely another setting, in which the size of any effect is free. ``system``
    marks a set-up other than that of the arms.
    """

    name: str
    of: str | None = None
    knob: str = ""
    value: str = ""
    removes: frozenset[str] = frozenset()
    adds: frozenset[str] = frozenset()
    system: str | None = None

    @property
    def is_arm(self) -> bool:
        return self.of is None

    @property
    def is_setting(self) -> bool:
        """Merely another setting: nothing follows about mechanisms."""
        return self.of is not None and not self.removes and not self.adds


@dataclass(frozen=True)
class Frame:
    """What a study can talk about.

    Parameters
    ----------
    metric : quantity in which the question is asked.
    conditions : the two arms first, then every derived condition after its parent.
    stages : the named parts of a step.
    cells : everything that some probe of the study can read.
    intent : what the candidate's change was meant to do to its own part.

    Raises
    ------
    ConfigError : an arm is missing or a condition derives from an unknown one.
    UnknownName : a cell names an unknown quantity, condition or stage.
    """

    metric: str
    conditions: tuple[Condition, ...]
    stages: tuple[Stage, ...] = ()
    cells: tuple[Cell, ...] = ()
    intent: Intent = "unknown"

    def __post_init__(self) -> None:
        names = [c.name for c in self.conditions]
        if names[:2] != [BASELINE, CANDIDATE]:
            raise ConfigError(
                f"the first two conditions are {names[:2]}; they must be the arms "
                f"{BASELINE!r} and {CANDIDATE!r}"
            )
        for i, condition in enumerate(self.conditions):
            if condition.of is not None and condition.of not in names[:i]:
                raise UnknownName(
                    f"parent of condition {condition.name!r}:", condition.of, names[:i]
                )
        quantity(self.metric)
        stages = {s.name for s in self.stages}
        for cell in self.cells:
            quantity(cell.quantity)
            if cell.condition not in names:
                raise UnknownName("condition", cell.condition, names)
            if cell.stage is not None and cell.stage not in stages:
                raise UnknownName("stage", cell.stage, stages)

    @cached_property
    def condition_index(self) -> dict[str, int]:
        return {c.name: i for i, c in enumerate(self.conditions)}

    @cached_property
    def cell_index(self) -> dict[Cell, int]:
        return {c: i for i, c in enumerate(self.cells)}

    @cached_property
    def stage_index(self) -> dict[str, Stage]:
        return {s.name: s for s in self.stages}

    def condition(self, name: str) -> Condition:
        try:
            return self.conditions[self.condition_index[name]]
        except KeyError:
            raise UnknownName("condition", name, self.condition_index) from None

    def stage(self, name: str | None) -> Stage | None:
        return None if name is None else self.stage_index[name]

    def root(self, name: str) -> str:
        """The arm that a condition derives from."""
        condition = self.condition(name)
        while condition.of is not None:
            condition = self.condition(condition.of)
        return condition.name

    def with_cells(self, cells: Iterable[Cell]) -> Frame:
        """The same frame with ``cells`` added (order kept, no duplicates)."""
        merged = tuple(dict.fromkeys((*self.cells, *cells)))
        return Frame(self.metric, self.conditions, self.stages, merged, self.intent)


# How far a quantity moves between two conditions for reasons that have nothing to do
# with the question: (sd in link space, probability that it moves a lot). Assumptions.
_BENIGN: dict[Family, tuple[float, float]] = {
    Family.DURATION: (0.05, 0.10),
    Family.LOST_TIME: (0.10, 0.10),  # a hundredth of the step
    Family.RATE: (0.10, 0.10),
    Family.COUNT: (0.15, 0.15),
    Family.FRACTION: (0.30, 0.15),
    Family.RATIO: (0.10, 0.05),
    Family.STATE: (0.02, 0.10),
    Family.FLAG: (0.0, 0.02),  # misread; how often it changes by the way is the anatomy's
}
# Where code and data happen to lie moves a program by one to several per cent (Mytkowicz,
# Diwan, Hauswirth and Sweeney, Producing wrong data without doing anything obviously wrong,
# ASPLOS 2009); 4 % between two states of one unchanged binary (catalogue, zoo `bistable`).
_METRIC_BENIGN = (0.01, 0.02)
_TEMPERATURE_BENIGN = 5.0  # degrees
_INTERVENTION_BENIGN = (0.06, 0.10)  # turning a knob has effects of its own
_SETTING_BENIGN = 0.5  # merely another setting: levels are free
_UNKNOWN_STAGE_BENIGN = 0.15  # nobody said whether the candidate changes this stage
COINCIDENCE_SPREAD = 1.0
"""Sd in link space of a move that has nothing to do with the question."""


def is_metric(frame: Frame, cell: Cell) -> bool:
    """Whether a cell shows the end-to-end effect (whole steps carry no stage or kind ``other``)."""
    return cell.quantity in ("step_time", "throughput") or (
        cell.quantity == frame.metric and responds(frame.stage(cell.stage))
    )


def _matched(frame: Frame, one: str, other: str) -> bool:
    """Whether two conditions are the two arms under one and the same knob setting."""
    a, b = frame.condition(one), frame.condition(other)
    return (a.knob, a.value, a.system) == (b.knob, b.value, b.system) and (
        frame.root(one) != frame.root(other)
    )


def responds(stage: Stage | None) -> bool:
    return stage is None or stage.kind not in ("setting", "rank")


def benign(frame: Frame, cell: Cell, against: Cell | None) -> tuple[float, float]:
    """How far ``cell`` moves by itself: (sd in link space, probability of a large move).

    A reading by itself and a contrast between the arms have the family's spread; a
    contrast with a derived condition adds that of turning a knob.
    """
    spread, coincidence = _BENIGN[quantity(cell.quantity).family]
    stage = frame.stage(cell.stage)
    if cell.quantity == "temperature":
        spread = _TEMPERATURE_BENIGN
    if is_metric(frame, cell) and against is not None:
        spread, coincidence = _METRIC_BENIGN
    elif stage is not None and stage.changed is None and stage.kind not in ("setting", "other"):
        spread = max(spread, _UNKNOWN_STAGE_BENIGN)
    if against is not None and not _matched(frame, cell.condition, against.condition):
        for name in (cell.condition, against.condition):
            condition = frame.condition(name)
            if condition.is_setting or condition.system:
                spread = max(spread, _SETTING_BENIGN)
            elif not condition.is_arm:
                spread = max(spread, _INTERVENTION_BENIGN[0])
                coincidence = max(coincidence, _INTERVENTION_BENIGN[1])
    return spread, coincidence
