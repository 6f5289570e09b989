"""Counters that the kernel keeps anyway."""

from __future__ import annotations

import resource
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from argus_bed.probes._paired import Key, PairedProbe

from argus_bed.probe import Instrument, Plan, Target


class Usage:
    """Difference of ``getrusage`` over a block, per step."""

    def start(self, workload: Any, state: Any) -> None:
        self._before = resource.getrusage(resource.RUSAGE_SELF)

    def stop(self, steps: int) -> Mapping[Key, float]:
        now, before = resource.getrusage(resource.RUSAGE_SELF), self._before
        kernel = now.ru_stime - before.ru_stime
        user = now.ru_utime - before.ru_utime
        faults = now.ru_minflt + now.ru_majflt - before.ru_minflt - before.ru_majflt
        return {
            ("cpu_time", None): (user + kernel) / steps,
            ("fault_time", None): kernel / steps,
            ("page_faults", None): faults / steps,
            ("voluntary_switches", None): (now.ru_nvcsw - before.ru_nvcsw) / steps,
            ("involuntary_switches", None): (now.ru_nivcsw - before.ru_nivcsw) / steps,
            ("thread_count", None): float(_threads()),
        }


def _threads() -> int:
    """Threads of the process, also those that Python did not start."""
    tasks = Path("/proc/self/task")
    return sum(1 for _ in tasks.iterdir()) if tasks.is_dir() else threading.active_count()


class RusageCounters(PairedProbe):
    """Reads processor time, page faults and context switches of both arms."""

    name = "rusage_counters"
    question = "Does the process fault, switch or compute more than it did?"
    level = "counter"
    establishes = "processor time, page faults and context switches per step in each arm"
    leaves_open = "which code causes them"
    locality = "the whole process, all threads"
    objective_check = "/usr/bin/time -v, or pidstat -w -r on the process"
    perturbation = 0.0005
    price_source = "assumption: two system calls a block; blocks x arms, half of them without"

    def reads(self, target: Target) -> list[Key]:
        names = ("cpu_time", "fault_time", "page_faults", "voluntary_switches")
        return [(name, None) for name in (*names, "involuntary_switches", "thread_count")]

    def instrument(self, plan: Plan) -> Instrument:
        return Usage()


rusage_counters = RusageCounters()
