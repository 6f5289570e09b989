"""A small frame, conjugate models whose posterior is known, and readings.

The fixtures are imported by the `conftest` of the folders that use them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pymc as pm
import pytest

from argus_bed.anatomy import Anatomy
from argus_bed.frame import Cell, Condition, Frame
from argus_bed.hypothesis import Hypothesis
from argus_bed.probe import Measurement

__all__ = ["Plain", "contrast", "frame", "nothing", "plain"]

CONDITIONS = (Condition("baseline"), Condition("candidate"))
QUANTITIES = ("step_time", "exposed_comm", "sm_clock", "overlap_fraction")


def nothing(_: Anatomy) -> None:
    """A mechanism that changes nothing."""


@dataclass(frozen=True, eq=False, repr=False)
class Plain(Hypothesis):
    """A hypothesis that writes its own model: step time Normal(mean, sd) in the candidate."""

    mean: float = 0.0
    sd: float = 1.0
    said: dict[str, float] = field(default_factory=dict)

    def model(self, frame: Frame) -> pm.Model:
        with pm.Model() as model:
            mu = pm.Normal("mu", self.mean, self.sd) if self.sd > 0 else self.mean
            known = {**self.said, "step_time": mu}
            values = [
                known.get(c.quantity, 0.0) if c.condition == "candidate" else 0.0
                for c in frame.cells
            ]
            pm.Deterministic("cells", pm.math.stack(values))
            pm.Deterministic("free", pm.math.stack([0.0] * len(frame.cells)))
        return model


@pytest.fixture
def frame() -> Frame:
    cells = tuple(Cell(q, c.name) for q in QUANTITIES for c in CONDITIONS)
    return Frame("step_time", CONDITIONS, (), cells, "faster")


@pytest.fixture
def plain() -> Callable[..., Plain]:
    def make(name: str = "normal", mean: float = 0.0, sd: float = 1.0, **said: float) -> Plain:
        return Plain(name, f"{name} is true.", nothing, "none", mean=mean, sd=sd, said=said)

    return make


@pytest.fixture
def contrast() -> Callable[..., Measurement]:
    def make(quantity: str = "step_time", **settings: object) -> Measurement:
        fields = {"noise": 0.1, "family": "normal", **settings}
        return Measurement(Cell(quantity, "candidate"), Cell(quantity, "baseline"), **fields)  # type: ignore[arg-type]

    return make
