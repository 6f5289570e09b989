"""Steps in which some thread keeps the interpreter lock, or none does."""

from __future__ import annotations

import ctypes
import faulthandler
import signal
import threading
import time
from pathlib import Path
from tempfile import mkstemp
from typing import Any

from argus_bed.frame import Stage
from argus_bed.workload import Workload

KEEPING, LETTING_GO = ctypes.PyDLL(None), ctypes.CDLL(None)
HOLD_US = 4000


def kept() -> None:
    KEEPING.usleep(HOLD_US)


def outer(how: str) -> None:
    if how == "main":
        kept()
    elif how == "other":
        thread = threading.Thread(target=kept)
        thread.start()
        thread.join()
    elif how == "python":
        end = time.perf_counter() + HOLD_US / 1e6
        while time.perf_counter() < end:
            sum(x for x in range(50))
    else:
        LETTING_GO.usleep(HOLD_US)
    time.sleep(1e-3)


def setup(how: str = "none", own: str = "") -> str:
    """``own``: what of the process the workload has in use itself."""
    if own == "signals":
        for signo in range(signal.SIGRTMIN, signal.SIGRTMAX + 1):
            signal.signal(signo, signal.SIG_IGN)
    if own == "traceback":
        handle, name = mkstemp(suffix=".traceback")
        faulthandler.dump_traceback_later(0.5, repeat=True, file=handle)
        Path(name).unlink()
    return how


def step(how: str) -> None:
    outer(how)


def make(how: str, **more: Any) -> Workload:
    arms = {"baseline": {}, "candidate": {"how": how, **more}}
    stages = (Stage("work", "host", changed=True),)
    return Workload("holding", "Why is it slow?", setup, step, arms, stages=stages)
