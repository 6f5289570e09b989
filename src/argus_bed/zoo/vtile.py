"""A decode kernel that normalises its keys and computes its gates again for every tile.

The state of each head is updated tile by tile along its value dimension. The baseline
normalises and gates once per step, the candidate once per tile. A tile as wide as the whole
dimension removes the repetition too, and far more: small tiles are slow by themselves. What
the repetition costs shows only at an equal tile.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argus_bed.workload import Knob, Stage, Workload, stage

Array = NDArray[Any]  # of float32

BATCH = 512
KEYS, VALUES = 64, 64
TILE = 16


@dataclass
class State:
    """Projections of the current token and the states of all heads."""

    per: str
    tile: int
    query: Array  # batch x keys
    key: Array  # batch x keys
    gate: Array  # batch x keys
    value: Array  # batch x values
    memory: Array  # batch x values x keys
    out: Array  # batch x values
    issued: int = 0
    steps: int = 0


def _prepare(state: State) -> tuple[Array, Array, Array]:
    """Query and key of length one, and how much of the memory is kept."""
    state.issued += 3
    query = state.query / np.sqrt(np.square(state.query).sum(-1, keepdims=True) + 1e-6)
    key = state.key / np.sqrt(np.square(state.key).sum(-1, keepdims=True) + 1e-6)
    return query, key, np.exp(-np.log1p(np.exp(state.gate)))


def _update(state: State, begin: int, query: Array, key: Array, keep: Array) -> None:
    """One tile of the memory, and of the output."""
    state.issued += 3
    end = begin + state.tile
    memory = state.memory[:, begin:end]
    memory *= keep[:, None, :]
    memory += state.value[:, begin:end, None] * key[:, None, :]
    state.out[:, begin:end] = np.matmul(memory, query[:, :, None])[:, :, 0]


def setup(per: str, tile: int = TILE, batch: int = BATCH, collector: bool = True) -> State:
    """``per`` picks how often keys and gates are prepared; ``tile`` is its width in values."""
    if not collector:
        gc.disable()
    draw = np.random.default_rng(1)

    def normal(*shape: int) -> Array:
        return draw.standard_normal(shape, dtype=np.float32)

    return State(
        per,
        tile,
        normal(batch, KEYS),
        normal(batch, KEYS),
        normal(batch, KEYS),
        normal(batch, VALUES),
        normal(batch, VALUES, KEYS),
        np.zeros((batch, VALUES), dtype=np.float32),
    )


def step(state: State) -> None:
    """One token of every sequence of the batch."""
    with stage("decode"):
        if state.per == "first":
            prepared = _prepare(state)
        for begin in range(0, VALUES, state.tile):
            if state.per == "second":
                prepared = _prepare(state)
            _update(state, begin, *prepared)
    state.steps += 1


def report(state: State) -> Mapping[str, float]:
    """Operations issued per step, as the kernel counts them."""
    issued = state.issued / max(state.steps, 1)
    state.issued = state.steps = 0
    return {"launch_count": issued}


workload = Workload(
    name="decode-kernel",
    question=(
        "The rewritten decode kernel gives the same tokens and takes longer for each. One wide "
        "tile is much faster, they say because less is done twice. Is it?"
    ),
    setup=setup,
    step=step,
    arms={"baseline": {"per": "first"}, "candidate": {"per": "second"}},
    stages=(Stage("decode", "compute", changed=True, what="the kernel that was rewritten"),),
    knobs=(
        Knob("per", "first", {"per": "first"}, removes=frozenset({"redundant_work"})),
        Knob("tile", "64", {"tile": VALUES}, of="both", removes=frozenset({"redundant_work"})),
        # the size of the effect depends on the batch: it is reported for each
        Knob("batch", "32", {"batch": 32}, of="both"),
        Knob("batch", "128", {"batch": 128}, of="both"),
        Knob("collector", "off", {"collector": False}, removes=frozenset({"gc_pause"})),
    ),
    intent="same",
    report=report,
    reports=(("launch_count", None),),
)

twin = replace(workload, arms={"baseline": {"per": "first"}, "candidate": {"per": "first"}})
