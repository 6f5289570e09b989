"""Adds up the time that each stage takes, in every thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any


class StageClock:
    """Instrument: inclusive time (s) and visits of each stage.

    Threads add to tables of their own; the tables are merged when the block ends. A stage
    left without having been entered (it began before the block) is not counted, nor is one
    that has not been left when the block ends. Threads in a stage at the same time each add
    their own time, so the sum may exceed that of the step.
    """

    def start(self, workload: Any, state: Any) -> None:
        self._local = threading.local()
        self._tables: list[dict[str, list[int]]] = []

    def enter(self, name: str) -> None:
        try:
            self._local.stack.append((name, time.perf_counter_ns()))
        except AttributeError:  # the first stage of this thread
            self._local.stack = [(name, time.perf_counter_ns())]
            self._local.table = {}
            self._tables.append(self._local.table)

    def leave(self, name: str) -> None:
        now = time.perf_counter_ns()
        stack = getattr(self._local, "stack", None)
        if not stack or stack[-1][0] != name:
            return
        _, begin = stack.pop()
        if any(outer == name for outer, _ in stack):
            return  # inside itself: the outermost visit holds this time already
        entry = self._local.table.setdefault(name, [0, 0])
        entry[0] += now - begin
        entry[1] += 1

    def totals(self, only_here: bool = False) -> dict[str, tuple[float, int]]:
        """Stage -> (seconds, visits) over the block, in all threads or in the calling one."""
        merged: dict[str, tuple[float, int]] = {}
        here = [self._local.table] if hasattr(self._local, "table") else []
        for table in here if only_here else list(self._tables):
            for name, (ns, visits) in list(table.items()):
                before = merged.get(name, (0.0, 0))
                merged[name] = (before[0] + ns / 1e9, before[1] + visits)
        return merged

    def stop(self, steps: int) -> Mapping[tuple[str, str | None], float]:
        return {("stage_time", name): s / steps for name, (s, _) in self.totals().items()}
