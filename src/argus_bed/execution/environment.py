"""What a run is logged with: the state of the machine, cheap to read and never changed."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from dataclasses import asdict
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import psutil

from argus_bed.execution.clocks import examine

# Affinity and thread caps change results and are set outside the program.
VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_LAUNCH_BLOCKING",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTHONMALLOC",
    "MALLOC_ARENA_MAX",
)


def environment() -> dict[str, Any]:
    """Load, frequency, temperature, memory, device state and versions (about a millisecond)."""
    found: dict[str, Any] = {**_still(), **_moving()}
    devices = device_state()
    if devices:
        found["devices"] = devices
    return found


@cache
def _still() -> dict[str, Any]:
    facts: dict[str, Any] = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "physical_cores": psutil.cpu_count(logical=False),
        "clock": asdict(examine()),
        "switch_interval_s": sys.getswitchinterval(),
    }
    if hasattr(os, "sched_getaffinity"):
        facts["affinity"] = sorted(os.sched_getaffinity(0))
    for library in ("numpy", "torch"):
        with contextlib.suppress(PackageNotFoundError):
            facts[library] = version(library)
    facts["variables"] = {v: os.environ[v] for v in VARIABLES if v in os.environ}
    return facts


def _moving() -> dict[str, Any]:
    facts: dict[str, Any] = {
        "load": list(os.getloadavg()),
        "available_bytes": psutil.virtual_memory().available,
    }
    frequency = psutil.cpu_freq()
    if frequency is not None:
        facts["cpu_mhz"] = frequency.current
    sensors: dict[str, Any] = getattr(psutil, "sensors_temperatures", dict)()
    hottest = max((s.current for group in sensors.values() for s in group), default=None)
    if hottest is not None:
        facts["cpu_degc"] = hottest
    return facts


def device_state() -> list[dict[str, Any]]:
    """Clock, power, temperature and throttle reasons of each NVIDIA device.

    Only fields that take microseconds: process and fan queries hold the driver's lock
    for milliseconds.
    """
    library = nvml()
    if library is None:
        return []
    states = []
    for i in range(library.nvmlDeviceGetCount()):
        handle = library.nvmlDeviceGetHandleByIndex(i)
        state: dict[str, Any] = {"index": i}
        for key, function, arguments, scale in (
            ("name", "nvmlDeviceGetName", (), None),
            ("sm_mhz", "nvmlDeviceGetClockInfo", (library.NVML_CLOCK_SM,), 1.0),
            ("power_w", "nvmlDeviceGetPowerUsage", (), 1e-3),
            ("degc", "nvmlDeviceGetTemperature", (library.NVML_TEMPERATURE_GPU,), 1.0),
            ("throttle", "nvmlDeviceGetCurrentClocksEventReasons", (), 1.0),
            ("persistence", "nvmlDeviceGetPersistenceMode", (), 1.0),
        ):
            # not every device has every sensor; the field is then absent
            with contextlib.suppress(library.NVMLError):
                value = getattr(library, function)(handle, *arguments)
                state[key] = value if scale is None else value * scale
        states.append(state)
    return states


@cache
def nvml() -> Any:
    """The initialised NVML binding, or None where there is no driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml
