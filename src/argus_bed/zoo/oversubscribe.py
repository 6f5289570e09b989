"""More threads than cores, at work in lockstep.

Both arms hash the same bytes in many small phases that end with a barrier. The baseline
uses two threads, the candidate thirty-two, which have to take turns on the cores and are
put aside in the middle of their part.
"""

from __future__ import annotations

import gc
import hashlib
import threading
from dataclasses import dataclass, replace

from argus_bed.workload import Knob, Workload, stage

PHASES = 6
PIECES = 32  # per phase, shared out among the threads
PIECE = bytes(2**16)


@dataclass
class State:
    """A crew that begins and ends each step together with the caller."""

    gate: threading.Barrier
    digests: list[bytes]


def _work(state: State, inner: threading.Barrier, pieces: int) -> None:
    while True:
        state.gate.wait()
        for _ in range(PHASES):
            for _ in range(pieces):
                state.digests.append(hashlib.sha256(PIECE).digest())
            inner.wait()
        state.gate.wait()


def setup(crew: int, collector: bool = True) -> State:
    """``crew`` threads share the pieces of each phase."""
    if not collector:
        gc.disable()
    state = State(threading.Barrier(crew + 1), [])
    inner = threading.Barrier(crew)
    for _ in range(crew):
        threading.Thread(target=_work, args=(state, inner, PIECES // crew), daemon=True).start()
    return state


def step(state: State) -> None:
    """Let the crew go through its phases."""
    state.digests.clear()
    with stage("hash"):
        state.gate.wait()
        state.gate.wait()


workload = Workload(
    name="crew",
    question="After raising a setting the step got slower, and the machine looks busier.",
    setup=setup,
    step=step,
    arms={"baseline": {"crew": 2}, "candidate": {"crew": 32}},
    stages=(),
    knobs=(
        Knob("crew", "2", {"crew": 2}, removes=frozenset({"thread_oversubscription"})),
        Knob("collector", "off", {"collector": False}, removes=frozenset({"gc_pause"})),
    ),
    intent="unknown",
)

twin = replace(workload, arms={"baseline": {"crew": 2}, "candidate": {"crew": 2}})
