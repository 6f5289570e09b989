"""Holds a claimed time against what memory can deliver."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from typing import Any

from argus_bed.probes._paired import ARMS, absolute

from argus_bed.frame import Cell
from argus_bed.probe import Bench, Observation, Plan, Price, Probe, Sample, Target

BUFFER = 2**26  # bytes per thread, several times a core's share of the last cache
REPEATS = 4
MAX_THREADS = 8


def peak(workload: Any, state: Any) -> float:
    """Bytes per second that all cores together copy between large buffers.

    Counted high, so that a claim is not called impossible wrongly: a copy that bypasses
    the caches does not read the lines of its target, and then moves 2/3 of this.
    """
    import numpy as np

    threads = min(os.cpu_count() or 1, MAX_THREADS)
    pairs = [(np.ones(BUFFER // 8), np.zeros(BUFFER // 8)) for _ in range(threads)]
    best = 0.0
    for _ in range(REPEATS):
        crowd = [threading.Thread(target=np.copyto, args=(to, of)) for of, to in pairs]
        begin = time.perf_counter()
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()
        # a copy reads its source, and reads and writes the lines of its target
        best = max(best, 3 * BUFFER * threads / (time.perf_counter() - begin))
    return best


def claimed(workload: Any, state: Any, operation: str) -> dict[str, float]:
    """Bytes per second that the claim on ``operation`` implies, per arm."""
    claim = next(c for c in workload.claims if c.operation == operation)
    return {arm: claim.moved_bytes / seconds for arm, seconds in claim.seconds.items()}


class BoundCheck(Probe):
    """Arithmetic on what was declared; memory's peak rate is measured in a moment."""

    name = "bound_check"
    question = "Can the benchmark's result be true at all?"
    level = "static"
    establishes = "that a claimed rate exceeds what memory delivers, so caches served it"
    leaves_open = "everything, where the claim is below the peak; claims where CUDA is present"
    locality = "one operation's declared bytes and reported time"
    objective_check = "divide the bytes by the time, and compare with the data sheet or STREAM"

    def plans(self, target: Target) -> Iterable[Plan]:
        if "cuda" in target.capabilities:
            return  # the operation may run in the device's memory, whose peak this is not
        for operation in target.claims:
            stage = operation if operation in target.frame.stage_index else None
            cells = tuple(Cell("bandwidth_ratio", arm, stage) for arm in ARMS)
            yield Plan(
                probe=self.name,
                settings={"operation": operation},
                conditions=ARMS,
                measurements=tuple(
                    absolute(target.frame, "bandwidth_ratio", 1, arm, stage) for arm in ARMS
                ),
                price=Price(0.3, 0.0, 0.0, "assumption: copying a few buffers"),
                reads=cells,
            )

    def run(self, plan: Plan, bench: Bench, seed: int) -> Observation:
        operation = str(plan.settings["operation"])
        arm = plan.conditions[0]
        rate = bench.call(arm, f"{__name__}:peak")
        claims = bench.call(arm, f"{__name__}:claimed", operation=operation)
        found = [
            Sample(cell, (claims[cell.condition] / rate,))
            for cell in plan.reads
            if cell.condition in claims
        ]
        return Observation(tuple(found), {"copies_bytes_per_s": rate}, overhead=0.0)


bound_check = BoundCheck()
