"""The garbage collector says when it begins and ends."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from typing import Any

from argus_bed.probes._paired import Key, PairedProbe

from argus_bed.probe import Instrument, Plan, Target


class Collections:
    """Counts collections and adds up their time (s), per step.

    All that begin and end within the block, in whichever thread: a collection keeps the
    interpreter lock. Set-up, reports and what runs between blocks are not in it.
    """

    def start(self, workload: Any, state: Any) -> None:
        self._count, self._spent_ns, self._began = 0, 0, 0
        gc.callbacks.append(self._hear)

    def _hear(self, phase: str, info: Mapping[str, int]) -> None:
        if phase == "start":
            self._began = time.perf_counter_ns()
        elif self._began:
            self._spent_ns += time.perf_counter_ns() - self._began
            self._count += 1
            self._began = 0

    def stop(self, steps: int) -> Mapping[Key, float]:
        gc.callbacks.remove(self._hear)
        return {
            ("gc_pause", None): self._spent_ns / 1e9 / steps,
            ("gc_collections", None): self._count / steps,
        }


class GcCallbacks(PairedProbe):
    """Reads the share of the step that the cyclic garbage collector takes."""

    name = "gc_callbacks"
    question = "How much of the step goes to garbage collections?"
    level = "counter"
    establishes = "time and number of collections in each arm"
    leaves_open = (
        "what allocates the objects; pauses of other collectors; collections so rare that most "
        "blocks of 0.1 s see none, since the median of the blocks is what counts"
    )
    locality = "the interpreter of one process"
    objective_check = "gc.set_debug(gc.DEBUG_STATS) prints each collection with its time"
    perturbation = 0.001
    price_source = "assumption: 2 us a collection; blocks x arms, half of them without"

    def reads(self, target: Target) -> list[Key]:
        return [("gc_pause", None), ("gc_collections", None)]

    def instrument(self, plan: Plan) -> Instrument:
        return Collections()


gc_callbacks = GcCallbacks()
