"""A stage in the shade of longer Python work in another thread."""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import dataclass, field

from argus_bed.frame import Stage
from argus_bed.workload import Workload, stage

STAGE_S = 0.004
OTHER_S = 0.03


@dataclass
class State:
    wanted: queue.SimpleQueue[None] = field(default_factory=queue.SimpleQueue)
    begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    done: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


def _compute(state: State) -> None:
    while True:
        state.wanted.get()
        state.begun.release()
        end = time.thread_time() + OTHER_S
        while time.thread_time() < end:
            sum(range(20))
        state.done.release()


def setup() -> State:
    state = State()
    threading.Thread(target=_compute, args=(state,), daemon=True).start()
    return state


def step(state: State) -> None:
    state.wanted.put(None)
    state.begun.acquire()
    with stage("work"):
        time.sleep(STAGE_S)
    state.done.acquire()


workload = Workload(
    "beside",
    "Is this on the path?",
    setup,
    step,
    {"baseline": {}, "candidate": {}},
    stages=(Stage("work", "host", changed=True),),
)
