"""Counters that PyTorch keeps anyway: compilations, graph breaks, allocator retries."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from argus_bed.probes._paired import Key, PairedProbe

from argus_bed.probe import Instrument, Plan, Target


def _read() -> dict[str, float]:
    """The counters now; those of modules that nobody loaded are left out."""
    found: dict[str, float] = {}
    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo is not None:
        counters = dynamo.counters
        found["recompiles"] = float(counters["stats"].get("unique_graphs", 0))
        found["graph_breaks"] = float(sum(counters["graph_break"].values()))
        times = dynamo.compilation_time_metrics.get("_compile.compile_inner", ())
        found["compile_time"] = float(sum(times))
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        stats = torch.cuda.memory_stats()
        found["alloc_retries"] = float(stats.get("num_alloc_retries", 0))
    return found


class Counters:
    """Difference of the counters over a block, per step."""

    def start(self, workload: Any, state: Any) -> None:
        self._before = _read()

    def stop(self, steps: int) -> Mapping[Key, float]:
        return {
            (name, None): (value - self._before.get(name, 0.0)) / steps
            for name, value in _read().items()
        }


class FrameworkCounters(PairedProbe):
    """Reads what the compiler and the allocator count, warm-up excluded."""

    name = "framework_counters"
    question = "Does the framework still compile, break graphs or retry allocations while it runs?"
    level = "counter"
    establishes = "compilations, graph breaks and allocation retries per step, after warm-up"
    leaves_open = "which shape or call is to blame"
    locality = "the framework inside one process"
    objective_check = "TORCH_LOGS=recompiles,graph_breaks prints each with its reason"
    perturbation = 0.0005
    price_source = "two dictionary reads a block; blocks x arms, half of them without"

    def applies(self, target: Target) -> bool:
        return bool(target.capabilities & {"dynamo", "cuda"})

    def reads(self, target: Target) -> list[Key]:
        names: tuple[str, ...] = ()
        if "dynamo" in target.capabilities:
            names += ("recompiles", "graph_breaks", "compile_time")
        if "cuda" in target.capabilities:
            names += ("alloc_retries",)
        return [(name, None) for name in names]

    def instrument(self, plan: Plan) -> Instrument:
        return Counters()


framework_counters = FrameworkCounters()
