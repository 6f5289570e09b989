"""Which process this is, in a way that outlives it: host, boot, process namespace, pid, birth."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Place:
    """Where a process lives. Pids mean the same thing only within one ``where``."""

    where: str
    host: str
    pid: int
    born: float


@cache
def _where() -> tuple[str, str]:
    host = socket.gethostname()
    boot = _read(Path("/proc/sys/kernel/random/boot_id"))
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:  # not Linux: pids are not namespaced there
        namespace = ""
    return f"{host}/{boot}/{namespace}", host


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:  # not Linux: the birth time alone then tells two boots apart
        return ""


def here() -> Place:
    """Where the calling process lives."""
    return _place(os.getpid())


@cache
def _place(pid: int) -> Place:
    where, host = _where()
    return Place(where, host, pid, _born(pid) or 0.0)


def _born(pid: int) -> float | None:
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return float(process.create_time())
    except psutil.NoSuchProcess:
        return None


def alive(where: str, pid: int, born: float) -> bool | None:
    """Whether that process still runs; None if it cannot be told from here."""
    if where != _where()[0]:
        return None
    now = _born(pid)
    return now is not None and abs(now - born) < 1.0
