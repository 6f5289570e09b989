"""A workload: what is run, in which arms, with which knobs, and what its stages are called."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from argus_bed.errors import ConfigError, UnknownName
from argus_bed.frame import BASELINE, CANDIDATE, Condition, Frame, Intent, Stage
from argus_bed.probe import Risk, Sweep
from argus_bed.quantity import quantity

Key = tuple[str, str | None]
"""A quantity, and the stage it belongs to or None for the step."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]*")


@dataclass(frozen=True)
class Knob:
    """Something that can be turned in one arm, or in both.

    Parameters
    ----------
    name, value : shown to people; with ``of`` they name the condition.
    of : ``baseline``, ``candidate`` or ``both``.
    settings : what is passed to ``setup`` in place of the arm's own.
    removes, adds : mechanisms, declared before any outcome. Both empty: merely another
        setting, from which nothing follows about mechanisms.
    risk : what turning it changes beyond time. All but ``none`` and ``rebuild`` wait for
        a person.
    """

    name: str
    value: str = "on"
    settings: Mapping[str, Any] = field(default_factory=dict)
    of: Literal["baseline", "candidate", "both"] = "candidate"
    removes: frozenset[str] = frozenset()
    adds: frozenset[str] = frozenset()
    risk: Risk = "none"

    def __post_init__(self) -> None:
        for what, text in (("name", self.name), ("value", self.value)):
            if not _NAME.fullmatch(str(text)):
                raise ConfigError(
                    f"knob {what} {text!r}: letters, digits, '_', '.' and '-' only, such as 'pool'"
                )
        if self.of not in (BASELINE, CANDIDATE, "both"):
            raise ConfigError(f"knob {self.name!r} of {self.of!r}: baseline, candidate or both")
        for what in ("removes", "adds"):
            names = getattr(self, what)
            if isinstance(names, str):
                raise ConfigError(f"knob {self.name!r}: {what}={names!r} must be a set of names")
            object.__setattr__(self, what, frozenset(names))

    def conditions(self) -> tuple[Condition, ...]:
        arms: tuple[str, ...] = (BASELINE, CANDIDATE) if self.of == "both" else (self.of,)
        return tuple(
            Condition(
                f"{arm}:{self.name}={self.value}",
                arm,
                self.name,
                str(self.value),
                self.removes,
                self.adds,
            )
            for arm in arms
        )


@dataclass(frozen=True)
class Claim:
    """What a benchmark said of one operation, to hold against physical bounds.

    Parameters
    ----------
    operation : its name; the stage of that name if there is one.
    moved_bytes : bytes that must cross the memory bus for one operation.
    seconds : per arm, the time of one operation as it was reported.
    """

    operation: str
    moved_bytes: float
    seconds: Mapping[str, float]

    def __post_init__(self) -> None:
        if not self.moved_bytes > 0:
            raise ConfigError(f"claim on {self.operation!r}: moved_bytes={self.moved_bytes!r}")
        for arm, value in self.seconds.items():
            if arm not in (BASELINE, CANDIDATE):
                raise UnknownName("arm", arm, (BASELINE, CANDIDATE))
            if not value > 0:
                raise ConfigError(f"claim on {self.operation!r}: {arm} took {value!r} s")


@dataclass(frozen=True)
class Check:
    """How far an operation's result is from a reference, and where to look.

    Parameters
    ----------
    sweep : the scales and partitionings at which it is looked at.
    error : ``error(state, scale, parts, seed)`` runs the operation as ``state`` is set up, on
        an input drawn with ``seed``, and returns the relative error of its result against
        one of higher precision. Never timed.
    """

    sweep: Sweep
    error: Callable[[Any, int, int, int], float]

    def __post_init__(self) -> None:
        for what in ("scales", "parts"):
            found = getattr(self.sweep, what)
            if not found or min(found) < 1 or list(found) != sorted(set(found)):
                raise ConfigError(
                    f"check of {self.sweep.operation!r}: {what}={found!r}; whole numbers from 1, "
                    "each once, the smallest first"
                )
        if not self.sweep.seconds > 0:
            raise ConfigError(
                f"check of {self.sweep.operation!r}: seconds={self.sweep.seconds!r}; above zero"
            )


@dataclass(frozen=True)
class Workload:
    """A workload in Python.

    Parameters
    ----------
    setup : ``setup(**settings) -> state``. Runs once per process, is not timed.
    step : ``step(state)``: one step, request or batch; the thing that is timed.
    arms : settings of ``baseline`` and ``candidate``.
    stages : the parts of a step that `stage` marks.
    intent : what the candidate's change was meant to do to its own part.
    operations : the changed operation alone: ``make(state)`` returns a callable without
        arguments that runs it once, on inputs of its own.
    report : called after a block of steps, not timed; returns what the workload itself
        has to say about it: ``{(quantity, stage): value}`` or ``{quantity: value}``, per
        step, in the quantity's own unit. ``step_time`` there replaces the clock's.
    reports : what ``report`` will return beside the step time.
    claims : what benchmarks said of operations.
    checks : operations whose results can be held against a reference.
    items : what one step counts in the throughput.
    steps : steps of a block; 0 lets the bench choose.
    warmup : steps after ``setup`` that nothing is concluded from.
    time_limit_s : seconds after which a set-up or a block counts as hung.
    source : where the other process finds this object; `load` sets it.

    Raises
    ------
    ConfigError, UnknownName : what is wrong, with its value.
    """

    name: str
    question: str
    setup: Callable[..., Any]
    step: Callable[[Any], Any]
    arms: Mapping[str, Mapping[str, Any]]
    stages: tuple[Stage, ...] = ()
    knobs: tuple[Knob, ...] = ()
    metric: str = "step_time"
    intent: Intent = "unknown"
    operations: Mapping[str, Callable[[Any], Callable[[], Any]]] = field(default_factory=dict)
    report: Callable[[Any], Mapping[Any, float]] | None = None
    reports: tuple[Key, ...] = ()
    claims: tuple[Claim, ...] = ()
    checks: tuple[Check, ...] = ()
    items: float = 1.0
    steps: int = 0
    warmup: int = 2
    time_limit_s: float = 60.0
    source: str = ""

    def __post_init__(self) -> None:
        if not self.name.strip() or not self.question.strip():
            raise ConfigError(
                f"name={self.name!r}, question={self.question!r}: a workload needs both; the "
                "question says what surprises you"
            )
        for what in ("setup", "step"):
            if not callable(getattr(self, what)):
                raise ConfigError(f"{what}={getattr(self, what)!r}: a function")
        for arm in (BASELINE, CANDIDATE):
            if arm not in self.arms:
                raise ConfigError(
                    f"arms = {sorted(self.arms)}: the two arms are called {BASELINE!r} and "
                    f"{CANDIDATE!r}"
                )
        for arm in self.arms:
            if arm not in (BASELINE, CANDIDATE):
                raise ConfigError(f"arm {arm!r}: further configurations are knobs, not arms")
        if self.intent not in ("faster", "same", "unknown"):
            raise ConfigError(f"intent={self.intent!r}: 'faster', 'same' or 'unknown'")
        self._check_numbers()
        self._check_names()

    def _check_numbers(self) -> None:
        if not self.time_limit_s > 0:
            raise ConfigError(f"time_limit_s={self.time_limit_s!r}: seconds, above zero")
        if self.steps < 0 or self.warmup < 0:
            raise ConfigError(f"steps={self.steps}, warmup={self.warmup}: not below zero")
        if not self.items > 0:
            raise ConfigError(f"items={self.items!r}: above zero")

    def _check_names(self) -> None:
        quantity(self.metric)
        stages = [s.name for s in self.stages]
        stages += [name for check in self.checks for name in check.sweep.points()]
        for twice in {s for s in stages if stages.count(s) > 1}:
            raise ConfigError(f"stage {twice!r} is declared twice")
        names = [c.name for knob in self.knobs for c in knob.conditions()]
        for twice in {n for n in names if names.count(n) > 1}:
            raise ConfigError(f"condition {twice!r} is declared twice; give its knob another value")
        for name, stage in self.reports:
            quantity(name)
            if stage is not None and stage not in stages:
                raise UnknownName("stage", stage, stages)
        if self.reports and self.report is None:
            raise ConfigError(f"reports={self.reports!r} without a `report` function")

    def frame(self) -> Frame:
        """The frame without cells: arms, conditions of the knobs, stages."""
        arms = (Condition(BASELINE), Condition(CANDIDATE))
        derived = tuple(c for knob in self.knobs for c in knob.conditions())
        points = tuple(
            Stage(name, "other", what=f"{check.sweep.operation} of {scale} in {parts} parts")
            for check in self.checks
            for name, (scale, parts) in check.sweep.points().items()
        )
        return Frame(self.metric, arms + derived, tuple(self.stages) + points, (), self.intent)

    def settings(self, condition: str) -> dict[str, Any]:
        """What ``setup`` is called with in ``condition``. Raises `UnknownName`."""
        if condition in self.arms:
            return dict(self.arms[condition])
        for knob in self.knobs:
            for derived in knob.conditions():
                if derived.name == condition:
                    return {**self.arms[str(derived.of)], **knob.settings}
        raise UnknownName("condition", condition, [c.name for c in self.frame().conditions])

    def risks(self) -> dict[str, Risk]:
        """What each derived condition changes beyond time."""
        return {c.name: knob.risk for knob in self.knobs for c in knob.conditions()}

    def at(self, source: str) -> Workload:
        """The same workload, found at ``source`` by other processes."""
        return replace(self, source=source)
