"""A background thread that only needs to be let run tells how late it is."""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from argus_bed.probes._paired import Key, PairedProbe

from argus_bed.probe import Instrument, Plan, SideEffect, Target

PERIOD_S = 1e-3
IDLE_TICKS = 15  # before the block, to learn what lateness is without a step running
PR_SET_TIMERSLACK = 29


class Ticks:
    """Sleeps a millisecond at a time, and adds up by how much each tick was late.

    Late is what exceeds the lateness of an idle process, less the time for which the
    kernel had the thread waiting for a core (``schedstat``): what is left is the wait for
    the interpreter lock.
    """

    def start(self, workload: Any, state: Any) -> None:
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._late_s, self._ticks, self._queued_s = 0.0, 0, 0.0
        self._thread = threading.Thread(target=self._run, name="ticks", daemon=True)
        self._thread.start()
        self._ready.wait()
        self._began = time.perf_counter()

    def _run(self) -> None:
        if sys.platform.startswith("linux"):
            ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
        idle = median(self._tick() for _ in range(IDLE_TICKS))
        queued = _queued_s()
        self._ready.set()
        while not self._stop.is_set():
            self._late_s += max(self._tick() - idle, 0.0)
            self._ticks += 1
        self._queued_s = _queued_s() - queued

    @staticmethod
    def _tick() -> float:
        begin = time.perf_counter()
        time.sleep(PERIOD_S)
        return time.perf_counter() - begin - PERIOD_S

    def stop(self, steps: int) -> Mapping[Key, float]:
        seconds = time.perf_counter() - self._began
        self._stop.set()
        self._thread.join()
        return {
            ("gil_wait", None): max(self._late_s - self._queued_s, 0.0) / steps,
            ("progress_rate", None): self._ticks / seconds,
        }


def _queued_s() -> float:
    """Seconds for which this thread was runnable without a core; 0 where nobody counts."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    return 0.0


class GilTicks(PairedProbe):
    """Reads how long a runnable Python thread waits for the interpreter lock."""

    name = "gil_ticks"
    question = "Does anything keep Python's other threads from running?"
    level = "counter"
    establishes = "how long a runnable thread waits for the interpreter lock, per step"
    leaves_open = "which call holds the lock"
    locality = "the threads of one Python process"
    objective_check = "py-spy dump --gil during a step shows which thread holds the lock"
    side_effects = (
        SideEffect(
            "other", "the step runs Python code throughout and must now share the lock", 0.3
        ),
    )
    perturbation = 0.01
    price_source = "assumption: a wake-up a millisecond; 15 ms of idle ticks before each block"

    def reads(self, target: Target) -> list[Key]:
        return [("gil_wait", None), ("progress_rate", None)]

    def instrument(self, plan: Plan) -> Instrument:
        return Ticks()


gil_ticks = GilTicks()
