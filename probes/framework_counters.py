"""Counters that PyTorch keeps anyway: compilations, graph breaks, allocator retries."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from argus_bed.probes._paired import Key, PairedProbe

from argus_bed.errors import ProbeUnavailable
from argus_bed.probe import Instrument, Plan, Target

COMPILER = ("recompiles", "graph_breaks")


def _read() -> dict[str, float]:
    """The counters now, since the process began.

    Of a compiler that nobody loaded it is known without asking that it compiled nothing.
    On a CPU there is no allocator to ask: PyTorch takes memory from the C library there.

    Raises
    ------
    ProbeUnavailable : the process has not loaded PyTorch.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        raise ProbeUnavailable(
            "framework_counters reads counters of PyTorch, and this workload has not imported it; "
            "rusage_counters reads those of the kernel"
        )
    found = dict.fromkeys(COMPILER, 0.0)
    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo is not None:
        counters = dynamo.counters
        found["recompiles"] = float(counters["stats"].get("unique_graphs", 0))
        found["graph_breaks"] = float(sum(counters["graph_break"].values()))
        times = dynamo.compilation_time_metrics.get("_compile.compile_inner", ())
        found["compile_time"] = float(sum(times))
    if torch.cuda.is_initialized():
        stats = torch.cuda.memory_stats()
        found["alloc_retries"] = float(stats.get("num_alloc_retries", 0))
    return found


class Counters:
    """Difference of the counters over a block, per step; compile time in seconds.

    A counter below where it began was set to nothing meanwhile (`torch._dynamo.reset` and
    `torch.cuda.reset_accumulated_memory_stats` do that); then what it shows is what came
    since.
    """

    def start(self, workload: Any, state: Any) -> None:
        self._before = _read()

    def stop(self, steps: int) -> Mapping[Key, float]:
        found: dict[Key, float] = {}
        for name, now in _read().items():
            before = self._before.get(name, 0.0)
            found[name, None] = (now - before if now >= before else now) / steps
        return found


class FrameworkCounters(PairedProbe):
    """Reads what the compiler and the allocator count, warm-up excluded."""

    name = "framework_counters"
    question = "Does the framework still compile, break graphs or retry allocations while it runs?"
    level = "counter"
    establishes = (
        "compilations and graph breaks of torch.compile per step, after warm-up, on any device; "
        "on a CUDA device also allocation retries"
    )
    leaves_open = (
        "which shape or call is to blame; allocations on a CPU, where PyTorch has no allocator "
        "of its own and counts none"
    )
    locality = "PyTorch inside one process; nothing to read in a process without it"
    objective_check = "TORCH_LOGS=recompiles,graph_breaks prints each with its reason"
    perturbation = 0.0005
    price_source = "two dictionary reads a block; blocks x arms, half of them without"

    def applies(self, target: Target) -> bool:
        return bool(target.capabilities & {"torch", "dynamo", "cuda"})

    def reads(self, target: Target) -> list[Key]:
        names: tuple[str, ...] = COMPILER
        if "dynamo" in target.capabilities:
            names += ("compile_time",)
        if "cuda" in target.capabilities:
            names += ("alloc_retries",)
        return [(name, None) for name in names]

    def instrument(self, plan: Plan) -> Instrument:
        return Counters()


framework_counters = FrameworkCounters()
