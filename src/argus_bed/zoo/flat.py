"""A faster kernel in the shade of something longer.

The candidate's kernel evaluates the same polynomial by Horner's rule, in place, in a
fraction of the time. It runs beside a fetch that takes longer than either kernel, so the
step does not change. In the twin both arms run the same kernel.
"""

from __future__ import annotations

import gc
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from argus_bed.workload import Knob, Stage, Workload, stage

Array = NDArray[np.float64]

SIZE = 130_000
COEFFICIENTS = (0.5, -1.25, 0.75, 2.0, -0.125, 1.5, -0.25, 0.0625)
FETCH_S = 0.012


def _by_powers(x: Array) -> Array:
    power, total = np.ones_like(x), np.zeros_like(x)
    for coefficient in COEFFICIENTS:
        total = total + coefficient * power
        power = power * x
    return total


def _by_horner(x: Array) -> Array:
    total = np.full_like(x, COEFFICIENTS[-1])
    for coefficient in COEFFICIENTS[-2::-1]:
        total *= x
        total += coefficient
    return total


_KERNELS: dict[str, Callable[[Array], Array]] = {"first": _by_powers, "second": _by_horner}


@dataclass
class State:
    """Inputs, the kernel, and the thread that fetches."""

    kernel: Callable[[Array], Array]
    x: Array
    fetch_s: float
    wanted: queue.SimpleQueue[float]
    begun: threading.Semaphore
    fetched: threading.Semaphore


def _fetch(state: State) -> None:
    while True:
        seconds = state.wanted.get()
        with stage("fetch"):
            state.begun.release()
            time.sleep(seconds)
        state.fetched.release()


def setup(kernel: str, collector: bool = True, fetch_s: float = FETCH_S) -> State:
    """``kernel`` picks the implementation; ``fetch_s`` is how long a fetch takes."""
    if not collector:
        gc.disable()
    x = np.linspace(-1, 1, SIZE)
    begun, fetched = threading.Semaphore(0), threading.Semaphore(0)
    state = State(_KERNELS[kernel], x, fetch_s, queue.SimpleQueue(), begun, fetched)
    threading.Thread(target=_fetch, args=(state,), daemon=True).start()
    return state


def step(state: State) -> None:
    """Ask for the next input, compute on this one, wait for the fetch."""
    state.wanted.put(state.fetch_s)
    state.begun.acquire()  # as a request that was sent; the kernel would hold it up otherwise
    with stage("kernel"):
        state.kernel(state.x)
    state.fetched.acquire()


def _operation(state: State) -> Callable[[], Array]:
    x = state.x.copy()
    return lambda: state.kernel(x)


workload = Workload(
    name="kernel-beside-fetch",
    question="The new kernel is several times faster, the application is not. Why?",
    setup=setup,
    step=step,
    arms={"baseline": {"kernel": "first"}, "candidate": {"kernel": "second"}},
    stages=(
        Stage("kernel", "compute", changed=True, what="the kernel that was rewritten"),
        Stage("fetch", "communication", changed=False, what="the next input, in its own thread"),
    ),
    knobs=(Knob("collector", "off", {"collector": False}, removes=frozenset({"gc_pause"})),),
    intent="faster",
    operations={"kernel": _operation},
)

twin = replace(workload, arms={"baseline": {"kernel": "first"}, "candidate": {"kernel": "first"}})
