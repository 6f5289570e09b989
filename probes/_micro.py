"""Times one operation alone, in the child: caches warm, or emptied before each run."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from argus_bed.probes._paired import ARMS, contrast

from argus_bed.errors import ProbeUnavailable
from argus_bed.frame import Cell
from argus_bed.probe import Bench, Observation, Plan, Price, Probe, Sample, Target

ROUNDS = 8
BUDGET_S = 0.06  # per arm and round
WARM = 3  # unrecorded runs first
BUFFERS = 4  # inputs taken in turns when cold
FLUSH_FACTOR = 2  # bytes touched over the size of the last cache
LINE = 64


def cache_bytes() -> int:
    """Size of the largest cache of core 0; 32 MiB where the system does not tell."""
    sizes = []
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text().strip()
        if text.endswith("K") and text[:-1].isdigit():
            sizes.append(int(text[:-1]) * 1024)
    return max(sizes, default=32 * 2**20)


def measure(workload: Any, state: Any, operation: str, cold: bool, seconds: float) -> float:
    """Median time (s) of ``operation`` alone, over about ``seconds``."""
    make = workload.operations.get(operation)
    if make is None:
        known = ", ".join(sorted(workload.operations)) or "none"
        raise ProbeUnavailable(f"no operation {operation!r}; declared: {known}")
    runs = [make(state) for _ in range(BUFFERS if cold else 1)]
    wait = _waiter()
    for run in runs * (1 if cold else WARM):
        run()
    wait()
    flush = _flusher() if cold else None
    times: list[int] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        run = runs[len(times) % len(runs)]
        if flush is not None:
            flush()
        begin = time.perf_counter_ns()
        run()
        wait()
        times.append(time.perf_counter_ns() - begin)
    return median(times) / 1e9


def _waiter() -> Any:
    """Waits for a device, where the workload uses one."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return torch.cuda.synchronize
    return lambda: None


def _flusher() -> Any:
    """Writes to one word of every line of a buffer larger than the last cache.

    Where the workload uses a CUDA device, to a buffer larger than its L2 as well.
    """
    import numpy as np

    torch: Any = sys.modules.get("torch")
    device = None
    if torch is not None and torch.cuda.is_initialized():
        l2 = torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
        device = torch.zeros(FLUSH_FACTOR * l2, dtype=torch.int8, device="cuda")
    words = np.zeros(FLUSH_FACTOR * cache_bytes() // 8)
    lines = words[:: LINE // 8]

    def flush() -> None:
        lines.__iadd__(1.0)
        if device is not None:
            device.add_(1)
            torch.cuda.synchronize()

    return flush


class Microbenchmark(Probe):
    """Base of the hot and the cold one."""

    level = "microbenchmark"
    quantity: str
    cold: bool
    budget_s = BUDGET_S

    def plans(self, target: Target) -> Iterable[Plan]:
        for operation in target.operations:
            stage = operation if operation in target.frame.stage_index else None
            measurement = contrast(target.frame, self.quantity, ROUNDS, stage)
            yield Plan(
                probe=self.name,
                settings={"operation": operation},
                conditions=ARMS,
                measurements=(measurement,),
                price=Price(
                    0.05,
                    ROUNDS * len(ARMS) * self.budget_s,
                    0.0,
                    "rounds x arms x budget of a round; the step does not run meanwhile",
                ),
                reads=tuple(Cell(self.quantity, arm, stage) for arm in ARMS),
            )

    def run(self, plan: Plan, bench: Bench, seed: int) -> Observation:
        operation = str(plan.settings["operation"])
        taken: dict[str, list[float]] = {arm: [] for arm in ARMS}
        for i in range(ROUNDS):
            for arm in ARMS if (i + seed) % 2 else ARMS[::-1]:
                taken[arm].append(
                    bench.call(
                        arm,
                        "argus_bed.probes._micro:measure",
                        operation=operation,
                        cold=self.cold,
                        seconds=self.budget_s,
                    )
                )
        found = tuple(Sample(c, tuple(taken[c.condition]), True) for c in plan.reads)
        return Observation(found, overhead=0.0)
