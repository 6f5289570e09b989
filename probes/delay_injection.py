"""Delays a stage on purpose and looks whether the step waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from argus_bed.probes._paired import Key, absolute, block_s
from argus_bed.probes._ticks import Kernel

from argus_bed.errors import ProbeFailed
from argus_bed.frame import BASELINE, CANDIDATE, Cell
from argus_bed.probe import BARE, Bench, Observation, Plan, Price, Probe, Sample, Target

BLOCKS = 10
SHARES = (0.1, 0.3)  # delay per step over the step time
SHORTEST_S = 2e-4  # a shorter sleep is mostly overshoot

How = Literal["sleep", "spin"]


def usual(kind: str) -> How:
    """How a stage of ``kind`` is delayed unless the plan says otherwise.

    Work of the host is Python: it takes a core and the interpreter lock, and so does the
    delay. All other kinds wait, or compute in C or on a device with the lock let go.
    """
    return "spin" if kind == "host" else "sleep"


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
    """Holds a stage up on entering it, on every ``every``-th visit, and adds up for how long.

    ``sleep`` takes neither a core nor the interpreter lock: what runs beside the stage goes
    on undisturbed, as beside a stage that waits longer. Counted is the time that passed.

    ``spin`` computes in Python: other Python threads stand still meanwhile (but for the
    turns that the interpreter gives them, every 5 ms by default) and a core is taken, as by
    a stage that has more to compute. Counted is the time that the thread computes or waits
    for a core, so that waiting for the lock adds to the step and not to the delay.
    """

    def __init__(self, stage: str, seconds: float, every: int, how: How = "sleep") -> None:
        self.stage, self.seconds, self.every, self.how = stage, seconds, every, how

    def start(self, workload: Any, state: Any) -> None:
        self._lock = threading.Lock()
        self._visits, self._delayed_ns = 0, 0
        self._own = threading.local()
        self._kernels: list[Kernel] = []

    def enter(self, name: str) -> None:
        if name != self.stage:
            return
        with self._lock:
            self._visits += 1
            due = self._visits % self.every == 0
        if due:
            delayed_ns = self._spin() if self.how == "spin" else self._sleep()
            with self._lock:
                self._delayed_ns += delayed_ns

    def _sleep(self) -> int:
        begin = time.perf_counter_ns()
        time.sleep(self.seconds)
        return time.perf_counter_ns() - begin

    def _spin(self) -> int:
        if not hasattr(self._own, "kernel"):  # the first time in this thread
            self._own.kernel = Kernel()
            self._kernels.append(self._own.kernel)
        self._own.kernel.since()
        begin = now = time.thread_time_ns()
        end = begin + round(self.seconds * 1e9)
        while now < end:
            now = time.thread_time_ns()
        _, queued_s = self._own.kernel.since()
        delayed_ns: int = now - begin + round(queued_s * 1e9)
        return delayed_ns

    def leave(self, name: str) -> None:
        return

    def stop(self, steps: int) -> Mapping[Key, float]:
        for kernel in self._kernels:
            kernel.close()
        return {("delay", self.stage): self._delayed_ns / 1e9 / steps}


class DelayInjection(Probe):
    """Reads the slope of step time over delay: 1 on the critical path, 0 in the shade.

    The setting ``delay`` says how a stage is held up, ``sleep`` or ``spin`` (see `Delay`);
    `usual` picks by the stage's kind. The same stage may give another slope under the
    other: a spinning delay also makes other Python threads wait, and above 1 is what the
    step loses to that, or to other programs on its core: a thread that has computed waits
    longer for its next turn (slopes of 1.1 to 1.8 on the path, two cores shared with others).
    """

    name = "delay_injection"
    question = "Does the step wait for this stage, or does something longer hide it?"
    level = "end_to_end"
    establishes = (
        "how much of a second saved in the stage is saved in the step; by sleeping, of a second "
        "in which other threads run; by spinning (host stages), of one that takes a core and "
        "the interpreter lock"
    )
    leaves_open = "why the stage takes as long as it does; whether the stage is of its stated kind"
    locality = "one named stage, against the step as a whole"
    objective_check = "put a sleep, or a loop for host work, into the stage by hand; time the step"

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
                    settings={
                        "stage": stage.name,
                        "share": share,
                        "arm": arm,
                        "delay": usual(stage.kind),
                    },
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
        how: How = "spin" if plan.settings.get("delay") == "spin" else "sleep"
        delay = Delay(stage, wanted / visits * every, every, how)
        taken = bench.interleave(
            (arm,), blocks=BLOCKS, steps=0, instrument=delay, seed=seed, bare=True
        )[arm]
        slopes = [
            (slow - plain) / delayed
            for slow, plain, delayed in zip(
                taken["step_time", None], taken[BARE], taken["delay", stage], strict=True
            )
            if delayed > 0
        ]
        if not slopes:
            raise ProbeFailed(f"blocks of {arm!r} were too short to delay stage {stage!r} once")
        cell = Cell("delay_slope", arm, stage)
        return Observation((Sample(cell, tuple(slopes)),), overhead=float(plan.settings["share"]))


delay_injection = DelayInjection()
