"""Waits in C beside a thread that must submit transfers.

The faulty candidate waits through ``ctypes.PyDLL``, which keeps the interpreter lock for
the length of the call; the baseline and the twin's candidate wait through ``ctypes.CDLL``,
which lets it go. A transfer needs the lock twice, so it can only begin when the wait is
over, and the step then waits for the transfer too.
"""

from __future__ import annotations

import gc
import queue
import threading
from collections.abc import Callable
from dataclasses import replace

from argus_bed.workload import Knob, Stage, Workload
from argus_bed.zoo._transfers import CALLS, State, step, work


def setup(call: str, collector: bool = True, workers: int = 2) -> State:
    """``call`` picks the way to wait; ``workers`` threads carry out transfers."""
    if not collector:
        gc.disable()
    state = State(CALLS[call], queue.SimpleQueue(), threading.Semaphore(0))
    for _ in range(workers):
        threading.Thread(target=work, args=(state,), daemon=True).start()
    return state


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
