"""Temporaries that come from the kernel each time.

The baseline computes into buffers that it keeps; the candidate writes the same formula as
an expression. Every intermediate result is then a new mapping, each page of which faults
at its first touch and is given back a moment later.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from argus_bed.workload import Knob, Stage, Workload, stage

Array = NDArray[np.float64]

SIZE = 3_900_000 // 8  # below the size from which NumPy asks for huge pages
REDUCTIONS = 24
M_MMAP_THRESHOLD = -3
MAPPED_FROM = 2**20  # glibc's own start value is lower and adapts; this one stays


@dataclass
class State:
    """Inputs, and buffers for intermediate results."""

    update: Callable[[State, Array], Array]
    x: Array
    one: Array
    two: Array


def _kept(state: State, x: Array) -> Array:
    one, two = state.one, state.two
    np.multiply(x, 0.5, out=one)
    np.add(one, 1.0, out=one)
    np.multiply(one, x, out=two)
    np.subtract(two, one, out=one)
    return one


def _fresh(state: State, x: Array) -> Array:
    one = x * 0.5 + 1.0
    return one * x - one


_UPDATES = {"first": _kept, "second": _fresh}


def setup(update: str, collector: bool = True, mapped: bool = True) -> State:
    """``update`` picks the form of the formula; ``mapped`` where large blocks come from."""
    if not collector:
        gc.disable()
    if sys.platform.startswith("linux"):
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, MAPPED_FROM if mapped else 2**25)
        if not mapped:
            libc.mallopt(-1, 2**29)  # M_TRIM_THRESHOLD: the heap is not given back
    x = np.linspace(0, 1, SIZE)
    return State(_UPDATES[update], x, np.zeros(SIZE), np.zeros(SIZE))


def step(state: State) -> None:
    """One layer, then reductions of its result."""
    y = state.update(state, state.x)
    with stage("reduce"):
        for _ in range(REDUCTIONS):
            float(y.sum())
            float(y.max())


workload = Workload(
    name="layers",
    question="After rewriting the layer in a more readable form the step got slower.",
    setup=setup,
    step=step,
    arms={"baseline": {"update": "first"}, "candidate": {"update": "second"}},
    stages=(Stage("reduce", "compute", changed=False, what="the reductions after it"),),
    knobs=(
        Knob("blocks", "kept", {"mapped": False}, removes=frozenset({"allocator_stall"})),
        Knob("collector", "off", {"collector": False}, removes=frozenset({"gc_pause"})),
    ),
    intent="same",
)

twin = replace(workload, arms={"baseline": {"update": "first"}, "candidate": {"update": "first"}})
