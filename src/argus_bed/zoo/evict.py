"""A kernel that takes its neighbour's place in the cache.

The baseline computes its values; the candidate looks them up in a large table, in about the
same time, and thereby sweeps out what the neighbouring stage reads next.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from argus_bed.workload import Knob, Stage, Workload, stage

Array = NDArray[np.float64]

TABLE = 2**26 // 8  # words: more than the last cache
NEAR = 2**14 // 8  # words that fit the first cache
WORKING_SET = 2**23 // 8  # words that the neighbour reads: fit the last cache
LINE = 8  # words of a cache line
ROUNDS = 1200


@dataclass
class State:
    """Operands of both stages."""

    update: Callable[[State], float]
    table: Array
    near: Array
    scratch: Array
    working_set: Array
    order: NDArray[np.int64]
    taken: Array


def _compute(state: State) -> float:
    for _ in range(ROUNDS):
        np.multiply(state.near, 1.0000001, out=state.scratch)
        np.add(state.scratch, 0.5, out=state.scratch)
    return float(state.scratch[0])


def _look_up(state: State) -> float:
    return float(state.table.sum())


_UPDATES: dict[str, Callable[[State], float]] = {"first": _compute, "second": _look_up}


def setup(update: str, collector: bool = True, table: int = TABLE) -> State:
    """``update`` picks how values come about; ``table`` is the number of words looked up."""
    if not collector:
        gc.disable()
    draw = np.random.default_rng(1)
    return State(
        _UPDATES[update],
        np.ones(table),
        np.ones(NEAR),
        np.zeros(NEAR),
        np.ones(WORKING_SET),
        draw.permutation(WORKING_SET // LINE) * LINE,
        np.empty(WORKING_SET // LINE),
    )


def step(state: State) -> None:
    """Update, then let the neighbour read its working set in random order."""
    with stage("update"):
        state.update(state)
    with stage("gather"):
        state.working_set.take(state.order, out=state.taken, mode="clip")


workload = Workload(
    name="update-and-gather",
    question="The new update takes no longer than the old one, yet the whole step does.",
    setup=setup,
    step=step,
    arms={"baseline": {"update": "first"}, "candidate": {"update": "second"}},
    stages=(
        Stage("update", "compute", changed=True, what="the stage that was rewritten"),
        Stage("gather", "compute", changed=False, what="reads a table in random order"),
    ),
    knobs=(Knob("collector", "off", {"collector": False}, removes=frozenset({"gc_pause"})),),
    intent="same",
)

twin = replace(workload, arms={"baseline": {"update": "first"}, "candidate": {"update": "first"}})
