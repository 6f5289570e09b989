"""A layout that makes every consumer copy its input first.

Both arms compute the same channels. The candidate hands them on transposed, which costs
nothing by itself; the operations after it ask for contiguous memory and copy. Needs torch.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from argus_bed.workload import Knob, Stage, Workload, stage

ROWS, COLUMNS = 1536, 1024
CONSUMERS = 4


@dataclass
class State:
    """Activations, and how they are handed on."""

    hand_on: Callable[[torch.Tensor], torch.Tensor]
    x: torch.Tensor


def _rows(x: torch.Tensor) -> torch.Tensor:
    return x * 1.5


def _columns(x: torch.Tensor) -> torch.Tensor:
    return (x * 1.5).t()


_FORMS = {"first": _rows, "second": _columns}


def setup(form: str, collector: bool = True) -> State:
    """``form`` picks how activations are handed on."""
    if not collector:
        gc.disable()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    return State(_FORMS[form], torch.rand(ROWS, COLUMNS))


def step(state: State) -> None:
    """Activations, then the operations that read them row by row."""
    with torch.inference_mode():
        with stage("activations"):
            handed = state.hand_on(state.x)
        for _ in range(CONSUMERS):
            with stage("consumers"):
                torch.nn.functional.layer_norm(handed.contiguous(), (handed.shape[1],))


workload = Workload(
    name="activations",
    question="The activations come in another form now, and the step got slower.",
    setup=setup,
    step=step,
    arms={"baseline": {"form": "first"}, "candidate": {"form": "second"}},
    stages=(Stage("activations", "compute", changed=True, what="what was rewritten"),),
    knobs=(
        Knob("form", "first", {"form": "first"}, removes=frozenset({"layout_copies"})),
        Knob("collector", "off", {"collector": False}, removes=frozenset({"gc_pause"})),
    ),
    intent="same",
)

twin = replace(workload, arms={"baseline": {"form": "first"}, "candidate": {"form": "first"}})
