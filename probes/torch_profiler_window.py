"""A short window of PyTorch's profiler: operations, copies, gaps."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from argus_bed.probes._paired import ARMS, block_s, measured

from argus_bed.errors import ProbeFailed
from argus_bed.frame import Cell
from argus_bed.probe import (
    Bench,
    Measurement,
    Observation,
    Plan,
    Price,
    Probe,
    Sample,
    SideEffect,
    Target,
)

ROUNDS = 4
WINDOW_S = 0.1
SETUP_S = 15.0  # first use of the profiler in each of two processes, measured: 5 to 10 s
HOST_FACTOR = 0.6  # a step limited by the host gets longer by this share
COPIES = ("aten::copy_", "Memcpy", "Memset", "memcpy")
# operations that touch no data
FREE = frozenset(
    f"aten::{name}"
    for name in ("t", "transpose", "view", "reshape", "as_strided", "expand", "empty", "detach")
)
WAITS = ("Synchronize", "cudaMemcpy", "aten::_local_scalar_dense")
ON_HOST = ("launch_count", "copy_time", "copy_count")
ON_DEVICE = (*ON_HOST, "device_busy", "gap_time", "host_wait", "host_time")


def window(workload: Any, state: Any, steps: int = 0) -> dict[str, float]:
    """Profile about `WINDOW_S` of steps; values per step, times in seconds.

    On a device a launch is a kernel, otherwise an operation that is no part of another
    one, backward passes included.
    """
    import torch
    from torch.profiler import ProfilerActivity, profile

    cuda = torch.cuda.is_available() and torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    begin = time.perf_counter()
    workload.step(state)
    if cuda:  # a step that is only issued would seem short
        torch.cuda.synchronize()
    steps = steps or max(1, round(WINDOW_S / (time.perf_counter() - begin)))
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]
    with profile(activities=activities) as profiler:
        begin = time.perf_counter()
        for _ in range(steps):
            workload.step(state)
        issued = time.perf_counter() - begin
        if cuda:
            torch.cuda.synchronize()
        whole = time.perf_counter() - begin
    events = list(profiler.events() or ())
    found = _on_device(events, whole, issued) if cuda else _on_host(events)
    read = {name: value / steps for name, value in found.items()}
    if cuda:
        read["device_busy"] = min(1.0 - found["gap_time"] / whole, 1.0)
    return {"step_time": whole / steps, **read}


def _seconds(events: Iterable[Any]) -> float:
    return float(sum(e.time_range.elapsed_us() for e in events)) / 1e6


def _on_host(events: list[Any]) -> dict[str, float]:
    issued = [e for e in events if e.name.startswith("aten::") and not _within_another(e)]
    copies = [e for e in events if e.name in COPIES]
    return {
        "launch_count": float(sum(e.name not in FREE for e in issued)),
        "copy_count": float(len(copies)),
        "copy_time": _seconds(copies),
    }


def _within_another(event: Any) -> bool:
    """Whether an operation is part of another one. What autograd or a user's range holds is not."""
    outer = event.cpu_parent
    while outer is not None and not outer.name.startswith("aten::"):
        outer = outer.cpu_parent
    return outer is not None


def _on_device(events: list[Any], whole: float, issued: float) -> dict[str, float]:
    device = [e for e in events if "CUDA" in str(e.device_type)]
    copies = [e for e in device if e.name.startswith(COPIES)]
    waits = [e for e in events if "CPU" in str(e.device_type) and any(w in e.name for w in WAITS)]
    outer = [e for e in waits if e.cpu_parent is None or e.cpu_parent not in waits]
    busy = _union_s([(e.time_range.start, e.time_range.end) for e in device])
    return {
        "launch_count": float(len(device) - len(copies)),
        "copy_count": float(len(copies)),
        "copy_time": _seconds(copies),
        "gap_time": max(whole - busy, 0.0),
        "host_wait": _seconds(outer),
        "host_time": issued,
    }


def _union_s(spans: list[tuple[float, float]]) -> float:
    """Seconds covered by at least one of ``spans`` (us)."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total / 1e6


class TorchProfilerWindow(Probe):
    """Profiles a tenth of a second of each arm, taking turns."""

    name = "torch_profiler_window"
    question = "Which operations and copies does a step issue, and where is the device idle?"
    level = "trace"
    establishes = "numbers of operations and copies per step, time in copies, gaps on a device"
    leaves_open = "durations on the host, which the profiler stretches; what a gap was caused by"
    locality = "operations of one process and its device"
    objective_check = "count the operations of one step by hand in an exported trace"
    side_effects = (
        SideEffect(
            "inflates_host",
            "the step is limited by the host",
            0.5,
            frozenset({"step_time", "stage_time", "host_time", "gap_time"}),
        ),
    )
    excludes = frozenset({"cupti"})

    def plans(self, target: Target) -> Iterable[Plan]:
        if "torch" not in target.capabilities:
            return
        names = ON_DEVICE if "cuda" in target.capabilities else ON_HOST
        found: list[Measurement] = []
        for name in names:
            found += measured(target.frame, name, ROUNDS, None)
        # a share of the step is one of the profiled step, so both are stretched alike
        cells = [Cell(name, arm) for name in (*names, "step_time") for arm in ARMS]
        yield Plan(
            probe=self.name,
            settings={"rounds": ROUNDS},
            conditions=ARMS,
            measurements=tuple(found),
            price=Price(
                SETUP_S,
                len(ARMS) * ROUNDS * (2 * block_s(target) + target.step_s),
                HOST_FACTOR,
                "catalogue section 2: 17.84 to 30.5 ms of host time a step, launch-bound; "
                "set-up measured",
            ),
            reads=tuple(cells),
        )

    def run(self, plan: Plan, bench: Bench, seed: int) -> Observation:
        taken: dict[str, list[Mapping[str, float]]] = {arm: [] for arm in ARMS}
        plain: dict[str, list[float]] = {}
        for arm, readings in bench.interleave(ARMS, blocks=2, steps=0, seed=seed).items():
            plain[arm] = list(readings["step_time", None])
        for i in range(ROUNDS):
            for arm in ARMS if (i + seed) % 2 else ARMS[::-1]:
                function = "argus_bed.probes.torch_profiler_window:window"
                taken[arm].append(bench.call(arm, function))
        found = []
        for cell in plan.reads:
            values = tuple(t[cell.quantity] for t in taken[cell.condition] if cell.quantity in t)
            if values:
                found.append(Sample(cell, values, True))
        if not any(t["launch_count"] for readings in taken.values() for t in readings):
            raise ProbeFailed("the profiler saw no operation of torch in any step")
        ratios = [
            t["step_time"] / (sum(plain[arm]) / len(plain[arm])) - 1
            for arm, readings in taken.items()
            for t in readings
        ]
        return Observation(tuple(found), overhead=sorted(ratios)[len(ratios) // 2])


torch_profiler_window = TorchProfilerWindow()
