"""Timers around every named stage."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from argus_bed.probes._paired import ARMS, Key, PairedProbe, absolute, contrast
from argus_bed.probes._stages import StageClock

from argus_bed.errors import ProbeFailed
from argus_bed.frame import BASELINE
from argus_bed.probe import Instrument, Measurement, Plan, Sample, Target

TIMED = ("compute", "communication", "copy", "host", "wait", "other")


class Timer(StageClock):
    """Time of each stage, its share of the step, and the time that the step waits for input.

    A worker that waits for work does not hold the step up: waits count in the thread that
    runs the step, which is the one that starts and stops the block.
    """

    def __init__(self, waits: tuple[str, ...]) -> None:
        self.waits = waits

    def start(self, workload: Any, state: Any) -> None:
        super().start(workload, state)
        self._began = time.perf_counter_ns()

    def stop(self, steps: int) -> Mapping[Key, float]:
        whole = (time.perf_counter_ns() - self._began) / 1e9
        totals = self.totals()
        found: dict[Key, float] = {}
        for name, (seconds, _) in totals.items():
            found["stage_time", name] = seconds / steps
            found["stage_share", name] = min(seconds / whole, 1.0)
        if self.waits:
            here = self.totals(only_here=True)
            waited = sum(here.get(name, (0.0, 0))[0] for name in self.waits)
            found["data_wait", None] = waited / steps
        return found


class StageTimer(PairedProbe):
    """Reads the time of each stage in both arms, and the changed stages' share."""

    name = "stage_timer"
    question = "Which stage of the step became longer or shorter, and how large is its share?"
    level = "log"
    establishes = "each stage's own time in both arms, waiting included; Amdahl's ceiling"
    leaves_open = (
        "whether the step waits for the stage: a hidden stage may grow unnoticed; shares of "
        "stages that several threads are in at once, which add up to 1 at most"
    )
    locality = "named stages, in every thread"
    objective_check = "print a clock before and after one stage and compare"
    perturbation = 0.002
    price_source = (
        "measured: 1.3 us a visit, so 0.2 % of a step of 0.6 ms a visit; half the blocks without"
    )

    def reads(self, target: Target) -> list[Key]:
        stages = [s for s in target.frame.stages if s.kind in TIMED]
        keys: list[Key] = [("stage_time", s.name) for s in stages]
        keys += [("stage_share", s.name) for s in stages if s.changed]
        if stages and _input_waits(target):
            keys.append(("data_wait", None))
        return keys

    def settings(self, target: Target) -> list[dict[str, Any]]:
        return [{"waits": "+".join(_input_waits(target))}] if _input_waits(target) else [{}]

    def measurements(self, target: Target, blocks: int, keys: list[Key]) -> list[Measurement]:
        found = []
        for name, stage in keys:
            if name == "stage_time":
                found.append(contrast(target.frame, name, blocks, stage))
            elif name == "stage_share":
                found.append(absolute(target.frame, name, blocks, BASELINE, stage))
            else:
                found += [absolute(target.frame, name, blocks, arm) for arm in ARMS]
        return found

    def instrument(self, plan: Plan) -> Instrument:
        waits = str(plan.settings.get("waits", ""))
        return Timer(tuple(waits.split("+")) if waits else ())

    def check(self, plan: Plan, found: tuple[Sample, ...]) -> None:
        if not any(s.cell.quantity == "stage_time" for s in found):
            names = sorted({str(m.cell.stage) for m in plan.measurements if m.cell.stage})
            raise ProbeFailed(
                f"no step entered any of the stages {', '.join(names)}; mark them in the step "
                f"with: with stage({names[0]!r}): ..."
            )


def _input_waits(target: Target) -> tuple[str, ...]:
    """Stages in which the step waits for something that the candidate did not change itself."""
    waits = [s.name for s in target.frame.stages if s.kind == "wait" and not s.changed]
    return tuple(waits)


stage_timer = StageTimer()
