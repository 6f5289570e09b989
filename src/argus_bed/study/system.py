"""What a study asks questions of: a workload that runs here, or a recorded case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from argus_bed.frame import Cell, Frame
from argus_bed.probe import Observation, Plan, Sample, SideEffect


class System(Protocol):
    """One contract for live and recorded systems.

    ``plans`` depends only on what has been read (``known``) and on which plans are
    ``done``; it never looks at an outcome that was not paid for.
    """

    question: str
    frame: Frame
    exact_prices: bool
    """Whether plans cost what they announce; otherwise prices are learned from the runs."""

    def plans(self, known: Mapping[Cell, Sample], done: Iterable[str]) -> list[Plan]: ...

    def side_effects(self, plan: Plan) -> tuple[SideEffect, ...]: ...

    def describe(self, plan: Plan) -> str:
        """The question that a plan answers, as a person would put it."""
        ...

    def signal(self, plan: Plan) -> Mapping[str, str]:
        """What the plan's probe says of itself: question, level, establishes, leaves_open,
        locality, objective_check, disturbance.
        """
        ...

    def execute(self, plan: Plan, seed: int) -> Observation: ...

    def close(self) -> None: ...
