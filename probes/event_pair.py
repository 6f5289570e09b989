"""One pair of time stamps around one stage, nothing else."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

from argus_bed.probes._paired import Key, PairedProbe

from argus_bed.probe import Instrument, Plan, SideEffect, Target

MAX_STAGES = 6  # offered one by one; the changed ones first


class HostPair:
    """Monotonic clock around one stage, summed over threads."""

    def __init__(self, stage: str) -> None:
        self.stage = stage

    def start(self, workload: Any, state: Any) -> None:
        self._begun: dict[int, int] = {}
        self._depth: dict[int, int] = {}  # of a stage inside itself: the outermost counts
        self._spent: list[int] = []  # appending is atomic, so threads need no lock of ours

    def enter(self, name: str) -> None:
        if name == self.stage and self._outermost(+1):
            self._begun[threading.get_ident()] = time.perf_counter_ns()

    def leave(self, name: str) -> None:
        if name == self.stage and self._outermost(-1):
            begin = self._begun.pop(threading.get_ident(), None)
            if begin is not None:
                self._spent.append(time.perf_counter_ns() - begin)

    def _outermost(self, step: int) -> bool:
        """Whether a thread enters its first (+1) or leaves its last (-1) visit."""
        me = threading.get_ident()
        before = self._depth.get(me, 0)
        self._depth[me] = max(before + step, 0)
        return min(before, before + step) == 0

    def stop(self, steps: int) -> Mapping[Key, float]:
        return {("stage_time", self.stage): sum(list(self._spent)) / 1e9 / steps}


class DevicePair(HostPair):
    """CUDA events around one stage, on the stream that is current where the stage begins.

    The events are recorded in the work's own stream, so nothing waits for them; the time
    between them is read when the block is over. Device time, not the time to issue it.
    """

    def start(self, workload: Any, state: Any) -> None:
        super().start(workload, state)
        self._torch = sys.modules["torch"]
        self._open: dict[int, Any] = {}
        self._pairs: list[tuple[Any, Any]] = []

    def _record(self) -> Any:
        event = self._torch.cuda.Event(enable_timing=True)
        event.record(self._torch.cuda.current_stream())
        return event

    def enter(self, name: str) -> None:
        if name == self.stage and self._outermost(+1):
            self._open[threading.get_ident()] = self._record()

    def leave(self, name: str) -> None:
        if name == self.stage and self._outermost(-1):
            begin = self._open.pop(threading.get_ident(), None)
            if begin is not None:
                self._pairs.append((begin, self._record()))

    def stop(self, steps: int) -> Mapping[Key, float]:
        self._torch.cuda.synchronize()
        total_ms = sum(begin.elapsed_time(end) for begin, end in self._pairs)
        return {("stage_time", self.stage): total_ms / 1e3 / steps}


class EventPair(PairedProbe):
    """Times one stage; on a CUDA device with events in the stage's own stream."""

    name = "event_pair"
    question = "Did this one stage become longer or shorter?"
    level = "log"
    establishes = "the time of one stage in both arms, at the smallest disturbance"
    leaves_open = "all other stages, and whether the step waits for this one"
    locality = "one named stage, on the host or in its device stream"
    objective_check = "surround the stage with a clock by hand, or with two events of the stream"
    side_effects = (
        SideEffect(
            "removes_overlap",
            "setting CUDA_DEVICE_MAX_CONNECTIONS is 1",
            0.1,
            frozenset({"exposed_comm", "overlap_fraction"}),
        ),
    )
    perturbation = 0.001
    price_source = "catalogue section 2: 0.5 us resolution, 1-5 us of host time a pair"

    def reads(self, target: Target) -> list[Key]:
        return [("stage_time", stage.name) for stage in target.frame.stages]

    def plans(self, target: Target) -> Iterable[Plan]:
        stages = sorted(target.frame.stages, key=lambda s: s.changed is not True)
        device = "cuda" in target.capabilities
        for stage in stages[:MAX_STAGES]:
            if stage.kind in ("setting", "rank"):
                continue
            on_device = device and stage.kind in ("compute", "communication", "copy")
            extra = {"stage": stage.name, "clock": "device" if on_device else "host"}
            blocks = self.blocks[0]
            keys: list[Key] = [("stage_time", stage.name)]
            found = tuple(self.measurements(target, blocks, keys))
            yield self._plan(target, blocks, extra, keys, found)

    def instrument(self, plan: Plan) -> Instrument:
        kind = DevicePair if plan.settings["clock"] == "device" else HostPair
        return kind(str(plan.settings["stage"]))


event_pair = EventPair()
