"""Waits in C beside a thread that must submit transfers.

The faulty candidate waits through ``ctypes.PyDLL``, which keeps the interpreter lock for
the length of the call; the baseline and the twin's candidate wait through ``ctypes.CDLL``,
which lets it go. A transfer needs the lock twice, so it can only begin when the wait is
over, and the step then waits for the transfer too.
"""

from __future__ import annotations

import ctypes
import gc
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from argus_bed.workload import Knob, Stage, Workload, stage

WAIT_US = 4000
PIECE_US = 500  # a transfer is two pieces, submitted one after the other
PIECES = 2
WAITS = 4  # per step

_letting_go = ctypes.CDLL(None)
_also_letting_go = ctypes.CDLL(None)
_keeping = ctypes.PyDLL(None)


def _first() -> None:
    _letting_go.usleep(WAIT_US)


def _second() -> None:
    _keeping.usleep(WAIT_US)


def _third() -> None:
    _also_letting_go.usleep(WAIT_US)


def _none() -> None:
    return None


_CALLS: dict[str, Callable[[], None]] = {
    "first": _first,
    "second": _second,
    "third": _third,
    "none": _none,
}


@dataclass
class State:
    """Requests go to the workers; each worker tells when a transfer is done."""

    wait: Callable[[], None]
    requests: queue.SimpleQueue[int]
    done: threading.Semaphore


def _work(state: State) -> None:
    while True:
        state.requests.get()
        with stage("transfer"):
            for _ in range(PIECES):
                _letting_go.usleep(PIECE_US)
        state.done.release()


def setup(call: str, collector: bool = True, workers: int = 2) -> State:
    """``call`` picks the way to wait; ``workers`` threads carry out transfers."""
    if not collector:
        gc.disable()
    state = State(_CALLS[call], queue.SimpleQueue(), threading.Semaphore(0))
    for _ in range(workers):
        threading.Thread(target=_work, args=(state,), daemon=True).start()
    return state


def step(state: State) -> None:
    """Four requests: submit a transfer, wait for the device, take the transfer."""
    for i in range(WAITS):
        state.requests.put(i)
        with stage("device"):
            state.wait()
        state.done.acquire()


def _operation(state: State) -> Callable[[], None]:
    return state.wait


workload = Workload(
    name="waits-and-transfers",
    question="After switching to another wait call the step got slower; the call takes as long.",
    setup=setup,
    step=step,
    arms={"baseline": {"call": "first"}, "candidate": {"call": "second"}},
    stages=(
        Stage("device", "host", changed=True, what="the call that waits for the device"),
        Stage("transfer", "copy", changed=False, what="a transfer, in a worker thread"),
    ),
    knobs=(
        Knob("call", "third", {"call": "third"}, removes=frozenset({"gil_held"})),
        Knob("collector", "off", {"collector": False}, removes=frozenset({"gc_pause"})),
        Knob("workers", "1", {"workers": 1}, removes=frozenset({"thread_oversubscription"})),
        Knob(
            "call",
            "none",
            {"call": "none"},
            of="both",
            removes=frozenset({"gil_held", "hidden_sync"}),
        ),
    ),
    intent="same",
    operations={"device": _operation},
)

twin = replace(workload, arms={"baseline": {"call": "first"}, "candidate": {"call": "third"}})
