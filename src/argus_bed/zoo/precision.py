"""A chain of matrix products whose operands are rounded to the format of a tensor unit.

A sequence is cut into partitions. Each runs its recurrence ``S <- A S + U`` from nothing and
carries the product of its transitions along; the partitions' states are then merged in order.
The candidate rounds the operands of the products within a partition to the 10 stored bits
of TF32, as tensor units do; the baseline keeps the 23 of float32. Both arms execute the same
operations and take the same time. On short sequences nothing is seen.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argus_bed.probe import Sweep
from argus_bed.workload import Check, Knob, Stage, Workload, stage

Matrix = NDArray[Any]

WIDTH = 24  # of a head's state
CHUNK = 64  # tokens that one transition stands for
TOKENS = 32_768  # of a step
PARTS = 8
SCALES = (4_096, 65_536, 262_144)  # tokens, as sequences grow

# What is added to the bits of a float32 before those that are not stored are cut off.
FORMS = {
    "first": (0x0000, 0xFFFFFFFF),
    "second": (0x0FFF, 0xFFFFE000),
    "third": (0x0000, 0xFFFFE000),
}


@dataclass
class State:
    """How operands are stored in the chain and in the merge, and the input of a step."""

    chain: str
    merge: str
    parts: int
    memory: float
    transitions: Matrix  # chunks x width x width
    inputs: Matrix  # chunks x width x width


def _stored(x: Matrix, form: str) -> Matrix:
    """``x`` as the unit reads it: round half to even, or cut off."""
    if x.dtype != np.float32:
        return x  # the reference
    add, keep = FORMS[form]
    bits = x.view(np.uint32)
    even = (bits >> np.uint32(13)) & np.uint32(1 if add else 0)
    stored: Matrix = ((bits + even + np.uint32(add)) & np.uint32(keep)).view(np.float32)
    return stored


def _product(a: Matrix, b: Matrix, form: str) -> Matrix:
    product: Matrix = np.matmul(_stored(a, form), _stored(b, form))
    return product


@lru_cache(maxsize=2)
def _sequence(tokens: int, memory: float, seed: int) -> tuple[Matrix, Matrix]:
    """Transitions and inputs, ``tokens / CHUNK`` of each, in float64.

    A transition turns the state by a fixed rotation and a small one that depends on the
    data, and forgets a ``1 / memory`` part of it.
    """
    draw = np.random.default_rng(seed)
    count = tokens // CHUNK
    fixed, _ = np.linalg.qr(draw.standard_normal((WIDTH, WIDTH)))
    key = draw.standard_normal((count, WIDTH, 1))
    key /= np.linalg.norm(key, axis=1, keepdims=True)
    forget = np.exp(-draw.random((count, 1, 1)) * 2 / memory) if memory else 1.0
    transitions = forget * (fixed - 2 * key @ (key.transpose(0, 2, 1) @ fixed))
    inputs = draw.standard_normal((count, WIDTH, WIDTH))
    return transitions, inputs


def _merged(transitions: Matrix, inputs: Matrix, parts: int, chain: str, merge: str) -> Matrix:
    """The state after the whole sequence, ``parts`` partitions side by side."""
    a = transitions.reshape(parts, -1, WIDTH, WIDTH)
    u = inputs.reshape(parts, -1, WIDTH, WIDTH)
    states = u[:, 0].copy()
    through = a[:, 0].copy()
    with stage("chain"):
        for i in range(1, a.shape[1]):
            states = _product(a[:, i], states, chain) + u[:, i]
            through = _product(a[:, i], through, chain)
    with stage("merge"):
        state: Matrix = states[0]
        for r in range(1, parts):
            state = _product(through[r], state, merge) + states[r]
    return state


def setup(
    chain: str,
    merge: str = "first",
    parts: int = PARTS,
    memory: float = 0.0,
    collector: bool = True,
) -> State:
    """``chain`` and ``merge`` pick how operands are stored at these sites.

    A head forgets over ``memory`` chunks; 0: never.
    """
    if not collector:
        gc.disable()
    transitions, inputs = _sequence(TOKENS, memory, 1)
    return State(
        chain,
        merge,
        parts,
        memory,
        transitions.astype(np.float32),
        inputs.astype(np.float32),
    )


def step(state: State) -> None:
    """The state of one sequence."""
    _merged(state.transitions, state.inputs, state.parts, state.chain, state.merge)


@lru_cache(maxsize=8)
def _reference(tokens: int, memory: float, seed: int) -> Matrix:
    """The same in float64, in one piece, from the float32 inputs."""
    a, u = (x.astype(np.float32).astype(np.float64) for x in _sequence(tokens, memory, seed))
    return _merged(a, u, 1, "first", "first")


def error(state: State, scale: int, parts: int, seed: int) -> float:
    """Relative error of the state after ``scale`` tokens, against float64."""
    a, u = (x.astype(np.float32) for x in _sequence(scale, state.memory, seed))
    right = _reference(scale, state.memory, seed)
    found = _merged(a, u, parts, state.chain, state.merge)
    return float(np.linalg.norm(found - right) / np.linalg.norm(right))


workload = Workload(
    name="partitioned-recurrence",
    question=(
        "Since the update, answers to long documents drift from what they were; short ones are "
        "fine, and the speed is the same."
    ),
    setup=setup,
    step=step,
    arms={"baseline": {"chain": "first"}, "candidate": {"chain": "second"}},
    stages=(
        Stage("chain", "compute", changed=True, what="the recurrence within partitions"),
        Stage("merge", "compute", changed=False, what="the partitions' states, in order"),
    ),
    knobs=(
        Knob(
            "chain",
            "first",
            {"chain": "first"},
            removes=frozenset({"precision_path"}),
            risk="numerics",
        ),
        Knob("parts", "32", {"parts": 32}, of="both"),
        Knob("collector", "off", {"collector": False}, removes=frozenset({"gc_pause"})),
    ),
    intent="same",
    checks=(Check(Sweep("state", SCALES, (1, PARTS), seconds=1.0), error),),
)

twin = replace(workload, arms={"baseline": {"chain": "first"}, "candidate": {"chain": "first"}})
