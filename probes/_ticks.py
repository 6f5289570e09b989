"""A thread that asks for the interpreter lock a thousand times a second."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from argus_bed.probes._paired import Key

PERIOD_S = 1e-3
IDLE_TICKS = 15  # before the block, to learn what lateness is without a step running
PR_SET_TIMERSLACK = 29
WAITS = sys.platform.startswith("linux")  # whether the kernel counts a thread's own waits


@dataclass(frozen=True)
class Tick:
    """One tick: how late it came (s), how often the thread blocked, and its wait for a core (s).

    blocked : 1 for the sleep alone; more if it then waited for the lock.
    """

    late_s: float
    blocked: int
    queued_s: float


class Kernel:
    """What the kernel counts of the calling thread. Open and read it in one thread."""

    def __init__(self) -> None:
        path = "/proc/thread-self/schedstat"
        self._file = os.open(path, os.O_RDONLY) if os.path.exists(path) else None
        self._switches, self._queued_ns = self._read()

    def _read(self) -> tuple[int, int]:
        switches = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw if WAITS else 0
        if self._file is None:
            return switches, 0
        return switches, int(os.pread(self._file, 96, 0).split()[1])

    def since(self) -> tuple[int, float]:
        """Times the thread blocked, and seconds it was runnable without a core, since last asked.

        Where the kernel does not count, every tick counts as one that waited.
        """
        before = (self._switches, self._queued_ns)
        self._switches, self._queued_ns = self._read()
        blocked = self._switches - before[0] if WAITS else 2
        return blocked, (self._queued_ns - before[1]) / 1e9

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)


class Ticks:
    """Sleeps a millisecond at a time, and adds up how long each tick waited for the lock.

    The thread blocks once to sleep. If the lock is free when it wakes, it does not block
    again, and however late it is, that was the timer or the processor. If it does block
    again, its wait is what exceeds the lateness of an idle process, less the time for
    which the kernel had it waiting for a core (``schedstat``).

    A lock that is held for h seconds costs a tick h - 0.5 ms on average; holds much
    shorter than a millisecond are met in proportion to their length.
    """

    def start(self, workload: Any, state: Any) -> None:
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._waited_s, self._ticks = 0.0, 0
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._guarded, name="ticks", daemon=True)
        self._thread.start()
        self._ready.wait()
        self._began = time.perf_counter()

    def _guarded(self) -> None:
        """What goes wrong in the thread is raised where the block ends, in `stop`."""
        try:
            self._run()
        except BaseException as error:
            self._failed = error
        finally:
            self._ready.set()

    def _run(self) -> None:
        if sys.platform.startswith("linux"):
            ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
        kernel = Kernel()
        try:
            idle = [self._tick(kernel) for _ in range(IDLE_TICKS)]
            for tick in idle:
                self.heard(tick, 0.0)
            usual_s = median(t.late_s for t in idle)
            self._ready.set()
            while not self._stop.is_set():
                tick = self._tick(kernel)
                waited_s = max(tick.late_s - usual_s - tick.queued_s, 0.0)
                waited_s *= tick.blocked > 1
                self._waited_s += waited_s
                self._ticks += 1
                self.heard(tick, waited_s)
        finally:
            kernel.close()

    def _tick(self, kernel: Kernel) -> Tick:
        kernel.since()
        self.before()
        begin = time.perf_counter()
        time.sleep(PERIOD_S)
        late_s = time.perf_counter() - begin - PERIOD_S
        return Tick(late_s, *kernel.since())

    def before(self) -> None:
        """Called before each tick, for what more a subclass does."""

    def heard(self, tick: Tick, waited_s: float) -> None:
        """Called after each tick, the lock in hand."""

    def stop(self, steps: int) -> Mapping[Key, float]:
        seconds = time.perf_counter() - self._began
        self._stop.set()
        self._thread.join()
        if self._failed is not None:
            raise self._failed
        return {
            ("gil_wait", None): self._waited_s / steps,
            ("progress_rate", None): self._ticks / seconds,
        }
