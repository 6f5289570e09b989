"""A loader that cannot keep up.

Batches are read ahead by threads that wait for storage; the step waits for a batch and then
for the device. The baseline reads ahead with three threads, which is enough; the candidate
with one, which takes longer for a batch than the device does. A batch costs the same in both.
"""

from __future__ import annotations

import gc
import queue
import threading
import time
import zlib
from dataclasses import dataclass, replace

from argus_bed.workload import Knob, Stage, Workload, stage

STORAGE_S = 0.008
DEVICE_S = 0.006
DEPTH = 1  # batches read ahead
BATCH = zlib.compress(bytes(range(256)) * 400)


@dataclass
class State:
    """Batches that are ready; ``ready`` is None if they are already in memory."""

    ready: queue.Queue[bytes] | None


def _load(ready: queue.Queue[bytes]) -> None:
    while True:
        with stage("load"):
            time.sleep(STORAGE_S)
            batch = zlib.decompress(BATCH)
        ready.put(batch)


def setup(readers: int, collector: bool = True, memory: bool = False) -> State:
    """``readers`` threads read ahead; with ``memory`` there is nothing to read."""
    if not collector:
        gc.disable()
    if memory:
        return State(None)
    ready: queue.Queue[bytes] = queue.Queue(DEPTH)
    for _ in range(readers):
        threading.Thread(target=_load, args=(ready,), daemon=True).start()
    return State(ready)


def step(state: State) -> None:
    """Take a batch, give it to the device, wait for the device."""
    with stage("next"):
        batch = BATCH if state.ready is None else state.ready.get()
    with stage("device"):
        time.sleep(DEVICE_S if batch else 0)


workload = Workload(
    name="batches",
    question="Since the move to the new machines a step takes longer; its own code is the same.",
    setup=setup,
    step=step,
    arms={"baseline": {"readers": 3}, "candidate": {"readers": 1}},
    stages=(
        Stage("next", "wait", what="taking the next batch"),
        Stage("device", "compute", changed=False, what="the device at work on it"),
        Stage("load", "host", what="reading a batch, in threads of its own"),
    ),
    knobs=(
        Knob("data", "memory", {"memory": True}, removes=frozenset({"data_starvation"})),
        Knob("collector", "off", {"collector": False}, removes=frozenset({"gc_pause"})),
    ),
    intent="unknown",
    warmup=6,
    steps=24,  # the few batches read while the other arm ran must not count for much
)

twin = replace(workload, arms={"baseline": {"readers": 3}, "candidate": {"readers": 3}})
