"""A kernel that wins its benchmark because its table stays in the cache there.

Alone, the candidate's look-up beats the baseline's arithmetic. In the step the table is
read after a sweep over a large buffer and has to come from memory.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from argus_bed.workload import Knob, Stage, Workload, stage

Array = NDArray[np.float64]

TABLE = 3 * 2**18 // 8  # words: fit the second cache
LINE = 8
SWEEP = 2**26 // 8  # words: more than the last cache
TERMS = 15


@dataclass
class State:
    """Operands of the kernel, and the buffer that the step sweeps over."""

    kernel: Callable[[State], Array]
    x: Array
    table: Array
    order: NDArray[np.int64]
    out: Array
    sweep: Array


def _arithmetic(state: State) -> Array:
    out = state.out
    np.multiply(state.x, 0.5, out=out)
    for _ in range(TERMS):
        np.multiply(out, state.x, out=out)
        np.add(out, 0.25, out=out)
    return out


def _look_up(state: State) -> Array:
    return state.table.take(state.order, out=state.out, mode="clip")


_KERNELS: dict[str, Callable[[State], Array]] = {"first": _arithmetic, "second": _look_up}


def setup(kernel: str, collector: bool = True, sweep: int = SWEEP) -> State:
    """``kernel`` picks the implementation; ``sweep`` is the size of the buffer in words."""
    if not collector:
        gc.disable()
    return _operands(kernel, np.ones(sweep))


def _operands(kernel: str, sweep: Array) -> State:
    count = TABLE // LINE
    order = np.random.default_rng(1).permutation(count) * LINE
    x = np.linspace(0, 1, count)
    return State(_KERNELS[kernel], x, np.ones(TABLE), order, np.empty(count), sweep)


def step(state: State) -> None:
    """Sweep over the buffer, then run the kernel."""
    with stage("sweep"):
        float(state.sweep.sum())
    with stage("kernel"):
        state.kernel(state)


def _operation(state: State) -> Callable[[], Array]:
    kernel = "first" if state.kernel is _arithmetic else "second"
    own = _operands(kernel, state.sweep)
    return lambda: own.kernel(own)


workload = Workload(
    name="sweep-and-kernel",
    question="The new kernel wins every benchmark; the application got no faster with it.",
    setup=setup,
    step=step,
    arms={"baseline": {"kernel": "first"}, "candidate": {"kernel": "second"}},
    stages=(
        Stage("sweep", "compute", changed=False, what="passes over a large buffer"),
        Stage("kernel", "compute", changed=True, what="the kernel that was replaced"),
    ),
    knobs=(Knob("collector", "off", {"collector": False}, removes=frozenset({"gc_pause"})),),
    intent="faster",
    operations={"kernel": _operation},
)

twin = replace(workload, arms={"baseline": {"kernel": "first"}, "candidate": {"kernel": "first"}})
