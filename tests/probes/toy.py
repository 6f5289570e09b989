"""A workload with something for every probe, cheap to run."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

from argus_bed.frame import Stage
from argus_bed.workload import Claim, Knob, Workload, stage

STEP_S = 0.002


def setup(pause: float = STEP_S, collect: bool = False) -> dict[str, Any]:
    return {"pause": pause, "collect": collect}


def step(state: dict[str, Any]) -> None:
    with stage("next"):
        time.sleep(STEP_S / 4)
    with stage("work"):
        time.sleep(state["pause"])
        if state["collect"]:
            gc.collect(0)


def report(state: Any) -> dict[str, float]:
    return {"violations": 2.0, "throughput": 100.0}


def operation(state: dict[str, Any]) -> Callable[[], None]:
    return lambda: time.sleep(state["pause"] / 10)


workload = Workload(
    "toy",
    "Why is the candidate slower?",
    setup,
    step,
    {"baseline": {}, "candidate": {"pause": 2 * STEP_S, "collect": True}},
    stages=(Stage("next", "wait", changed=False), Stage("work", "compute", changed=True)),
    knobs=(
        Knob("pause", "short", {"pause": STEP_S}, removes=frozenset({"gc_pause"})),
        Knob("both", "x", {}, of="both", risk="concurrency"),
    ),
    operations={"work": operation},
    report=report,
    reports=(("violations", None), ("throughput", None)),
    claims=(Claim("work", 1e12, {"baseline": 1.0, "candidate": 0.5}),),
    steps=4,
)
