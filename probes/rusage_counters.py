"""Counters that the kernel keeps anyway."""

from __future__ import annotations

import resource
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from argus_bed.probes._paired import Key, PairedProbe

from argus_bed.probe import Instrument, Plan, Target

COUNTED = {  # fields of getrusage(2) that make up a quantity
    "cpu_time": ("ru_utime", "ru_stime"),
    "fault_time": ("ru_stime",),
    "page_faults": ("ru_minflt", "ru_majflt"),
    "voluntary_switches": ("ru_nvcsw",),
    "involuntary_switches": ("ru_nivcsw",),
}


class Usage:
    """Difference of ``getrusage`` over a block, per step; times in seconds.

    Of the process with all its threads, those that ended included, and of child processes
    that ended within the block and were waited for, with all of their time. A child that
    outlives the block does not count: the kernel does not tell before it ends.
    """

    def start(self, workload: Any, state: Any) -> None:
        self._before = self._now()

    @staticmethod
    def _now() -> dict[str, float]:
        both = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return {
            name: float(sum(getattr(usage, field) for usage in both for field in fields))
            for name, fields in COUNTED.items()
        }

    def stop(self, steps: int) -> Mapping[Key, float]:
        now = self._now()
        found: dict[Key, float] = {
            # sums of two clocks that are rounded each on its own
            (name, None): max(now[name] - self._before[name], 0.0) / steps
            for name in COUNTED
        }
        found["thread_count", None] = float(_threads())
        return found


def _threads() -> int:
    """Threads of the process, also those that Python did not start."""
    tasks = Path("/proc/self/task")
    return sum(1 for _ in tasks.iterdir()) if tasks.is_dir() else threading.active_count()


class RusageCounters(PairedProbe):
    """Reads processor time, page faults and context switches of both arms."""

    name = "rusage_counters"
    question = "Does the process fault, switch or compute more than it did?"
    level = "counter"
    establishes = (
        "processor time, page faults and context switches per step in each arm; threads alive "
        "when a block ends"
    )
    leaves_open = (
        "which code causes them; kernels that tell user from kernel time by their timer tick "
        "round fault_time of a block to 1 to 10 ms; threads that come and go within a step"
    )
    locality = "the whole process, all threads, and child processes that end within the block"
    objective_check = "/usr/bin/time -v, or pidstat -w -r on the process"
    perturbation = 0.0005
    price_source = "assumption: four system calls a block; blocks x arms, half of them without"

    def reads(self, target: Target) -> list[Key]:
        names = ("cpu_time", "fault_time", "page_faults", "voluntary_switches")
        return [(name, None) for name in (*names, "involuntary_switches", "thread_count")]

    def instrument(self, plan: Plan) -> Instrument:
        return Usage()


rusage_counters = RusageCounters()
