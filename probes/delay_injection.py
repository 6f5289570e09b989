"""Delays a stage on purpose and looks whether the step waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

from argus_bed.probes._paired import Key, absolute, block_s

from argus_bed.errors import ProbeFailed
from argus_bed.frame import BASELINE, CANDIDATE, Cell
from argus_bed.probe import BARE, Bench, Observation, Plan, Price, Probe, Sample, Target

BLOCKS = 10
SHARES = (0.1, 0.3)  # delay per step over the step time
SHORTEST_S = 2e-4  # a shorter sleep is mostly overshoot


class Visits:
    """Counts how often a step enters a stage."""

    def __init__(self, stage: str) -> None:
        self.stage = stage

    def start(self, workload: Any, state: Any) -> None:
        self._visits: list[None] = []  # appending is atomic, whichever thread does it

    def enter(self, name: str) -> None:
        if name == self.stage:
            self._visits.append(None)

    def leave(self, name: str) -> None:
        return

    def stop(self, steps: int) -> Mapping[Key, float]:
        return {("visits", self.stage): len(self._visits) / steps}


class Delay:
    """Sleeps on entering a stage, on every ``every``-th visit, and adds up how long it did.

    A sleep takes neither a core nor the interpreter lock, so that what runs beside the
    stage goes on undisturbed.
    """

    def __init__(self, stage: str, seconds: float, every: int) -> None:
        self.stage, self.seconds, self.every = stage, seconds, every

    def start(self, workload: Any, state: Any) -> None:
        self._lock = threading.Lock()
        self._visits, self._slept_ns = 0, 0

    def enter(self, name: str) -> None:
        if name != self.stage:
            return
        with self._lock:
            self._visits += 1
            due = self._visits % self.every == 0
        if due:
            begin = time.perf_counter_ns()
            time.sleep(self.seconds)
            slept = time.perf_counter_ns() - begin
            with self._lock:
                self._slept_ns += slept

    def leave(self, name: str) -> None:
        return

    def stop(self, steps: int) -> Mapping[Key, float]:
        return {("delay", self.stage): self._slept_ns / 1e9 / steps}


class DelayInjection(Probe):
    """Reads the slope of step time over delay: 1 on the critical path, 0 in the shade."""

    name = "delay_injection"
    question = "Does the step wait for this stage, or does something longer hide it?"
    level = "end_to_end"
    establishes = "how much of a second saved in the stage is saved in the step"
    leaves_open = "why the stage takes as long as it does"
    locality = "one named stage, against the step as a whole"
    objective_check = "put a sleep into the stage by hand and time the step"

    def plans(self, target: Target) -> Iterable[Plan]:
        # Of a part meant to be faster the question is whether the time saved was waited
        # for, so the delay goes where it was saved; otherwise where nothing else changed.
        arm = CANDIDATE if target.frame.intent == "faster" else BASELINE
        for stage in target.frame.stages:
            if not stage.changed or stage.kind in ("setting", "rank"):
                continue
            for share in SHARES:
                run_s = (2 * BLOCKS + 2) * block_s(target) * (1 + share / 2)
                yield Plan(
                    probe=self.name,
                    settings={"stage": stage.name, "share": share, "arm": arm},
                    conditions=(arm,),
                    measurements=(absolute(target.frame, "delay_slope", BLOCKS, arm, stage.name),),
                    price=Price(0.0, run_s, share / 2, "blocks x time of a block; half delayed"),
                    reads=(Cell("delay_slope", arm, stage.name),),
                )

    def run(self, plan: Plan, bench: Bench, seed: int) -> Observation:
        stage, arm = str(plan.settings["stage"]), str(plan.settings["arm"])
        pilot = bench.interleave((arm,), blocks=1, steps=0, instrument=Visits(stage), seed=seed)
        visits = pilot[arm]["visits", stage][0]
        if visits == 0:
            raise ProbeFailed(
                f"no step of {arm!r} entered stage {stage!r}; mark it: with stage({stage!r}): ..."
            )
        wanted = float(plan.settings["share"]) * pilot[arm]["step_time", None][0]
        every = max(1, round(SHORTEST_S * visits / wanted))
        delay = Delay(stage, wanted / visits * every, every)
        taken = bench.interleave(
            (arm,), blocks=BLOCKS, steps=0, instrument=delay, seed=seed, bare=True
        )[arm]
        slopes = [
            (slow - plain) / slept
            for slow, plain, slept in zip(
                taken["step_time", None], taken[BARE], taken["delay", stage], strict=True
            )
            if slept > 0
        ]
        if not slopes:
            raise ProbeFailed(f"blocks of {arm!r} were too short to delay stage {stage!r} once")
        cell = Cell("delay_slope", arm, stage)
        return Observation((Sample(cell, tuple(slopes)),), overhead=float(plan.settings["share"]))


delay_injection = DelayInjection()
