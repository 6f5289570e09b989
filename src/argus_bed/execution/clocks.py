"""The clock that blocks are timed with, and what it can resolve here."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

SAMPLES = 2000


@dataclass(frozen=True)
class Clock:
    """``resolution_s``: smallest step seen. ``overhead_s``: one reading of the clock."""

    name: str
    implementation: str
    resolution_s: float
    overhead_s: float
    monotonic: bool


def examine() -> Clock:
    """Measure `time.perf_counter_ns` on this machine (takes about a millisecond)."""
    read = time.perf_counter_ns
    stamps = [read() for _ in range(SAMPLES)]
    steps = [b - a for a, b in pairwise(stamps) if b > a]
    info = time.get_clock_info("perf_counter")
    return Clock(
        "perf_counter_ns",
        info.implementation,
        min(steps) / 1e9,
        median(steps) / 1e9,
        info.monotonic,
    )
