"""What this machine can measure, and what the missing instruments would add.

Only looks; never changes a clock, a limit or a setting.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psutil

from argus_bed.execution.clocks import examine
from argus_bed.execution.environment import nvml

PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
USER_EVENTS = 2  # up to this value, an unprivileged process may count its own events


@dataclass(frozen=True)
class Available:
    """One instrument.

    available : None if it is not there and nothing of argus-bed needs it.
    found : what was found. adds : what it adds, or would add.
    """

    name: str
    available: bool | None
    found: str
    adds: str


def instruments() -> list[Available]:
    """Every instrument that was looked for (a few milliseconds, no process is started)."""
    return [_cores(), _clock(), _counters(), *_cuda(), *_tools()]


def _cores() -> Available:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    physical = psutil.cpu_count(logical=False)
    says = f"{usable} usable, {physical or 'unknown'} physical, load {os.getloadavg()[0]:.1f}"
    return Available("cores", True, says, "two or more keep the engine off the workload's core")


def _clock() -> Available:
    clock = examine()
    says = (
        f"{clock.implementation}, resolution {clock.resolution_s * 1e9:.0f} ns, "
        f"{clock.overhead_s * 1e9:.0f} ns a reading"
    )
    return Available("clock", clock.monotonic, says, "times of blocks and stages")


def _counters() -> Available:
    adds = "instructions, cache misses and branches per step"
    if not PARANOID.is_file():
        return Available("perf events", None, "no perf events in this kernel", adds)
    level = int(PARANOID.read_text())
    tool = "perf found" if shutil.which("perf") else "no perf on PATH"
    if level > USER_EVENTS and os.geteuid() != 0:
        says = f"perf_event_paranoid is {level}; {USER_EVENTS} or less allows them"
        return Available("perf events", None, says, adds)
    if not any(Path("/sys/bus/event_source/devices").glob("cpu*")):
        return Available("perf events", None, f"no hardware counters here; {tool}", adds)
    return Available("perf events", True, f"perf_event_paranoid is {level}; {tool}", adds)


def _cuda() -> Iterable[Available]:
    adds = "device time of stages, clocks, power, temperature and throttling"
    library = nvml()
    if library is None:
        yield Available("CUDA", None, "no NVIDIA driver", adds)
        return
    count = library.nvmlDeviceGetCount()
    handles = [library.nvmlDeviceGetHandleByIndex(i) for i in range(count)]
    names = ", ".join(str(library.nvmlDeviceGetName(h)) for h in handles)
    yield Available("CUDA", count > 0, names or "a driver without devices", adds)


_PROGRAMS = (
    ("ncu", "counters of single kernels; serializes and locks clocks, so its times are void"),
    ("nsys", "a timeline over processes and devices"),
    ("py-spy", "the Python stack of a running process, and which thread holds the lock"),
)


def _tools() -> Iterable[Available]:
    for name, adds in _PROGRAMS:
        path = shutil.which(name)
        module = find_spec(name.replace("-", "_"))
        says = path or ("importable" if module else "not on PATH")
        yield Available(name, True if path or module else None, says, adds)
    there = find_spec("torch") is not None
    yield Available(
        "torch.profiler",
        True if there else None,
        "torch is installed" if there else "torch is not installed",
        "operations, copies and gaps of a torch workload",
    )
    says = "compilations and graph breaks; allocation retries exist on a CUDA device only"
    yield Available(
        "torch counters",
        True if there else None,
        says if there else "torch is not installed",
        "what torch.compile and the allocator of a torch workload still do after warm-up",
    )
