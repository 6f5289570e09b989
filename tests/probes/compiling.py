"""Steps of PyTorch on the CPU that compile again and again, once, or never."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argus_bed.frame import Stage
from argus_bed.workload import Workload


def setup(how: str = "never") -> Callable[[], Any]:
    import torch

    x = torch.ones(8)
    if how == "never":
        return lambda: x + 1
    import torch._dynamo as dynamo

    def broken(y: Any) -> Any:
        y = y + 1
        dynamo.graph_break()
        return y * 2

    def whole(y: Any) -> Any:
        return (y + 1) * 2

    if how == "once":
        compiled = torch.compile(whole, backend="eager")
        return lambda: compiled(x)

    def again() -> Any:
        dynamo.reset()
        return torch.compile(broken, backend="eager")(x)

    return again


def step(run: Callable[[], Any]) -> None:
    run()


def make(baseline: str, candidate: str) -> Workload:
    arms = {"baseline": {"how": baseline}, "candidate": {"how": candidate}}
    stages = (Stage("work", "compute", changed=True),)
    return Workload("compiling", "Why is it slow?", setup, step, arms, stages=stages, steps=3)
