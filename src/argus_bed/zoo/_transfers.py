"""A step that submits transfers to a worker thread and waits for a device meanwhile.

Apart from the workload's declaration because stacks name files and functions, and what a
probe reads is not to name what is wrong.
"""

from __future__ import annotations

import ctypes
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass

from argus_bed.workload import stage

WAIT_US = 4000
PIECE_US = 500  # a transfer is two pieces, submitted one after the other
PIECES = 2
WAITS = 4  # per step

_LIBRARIES = {
    "first": ctypes.CDLL(None),
    "second": ctypes.PyDLL(None),
    "third": ctypes.CDLL(None),
}


def _first() -> None:
    _LIBRARIES["first"].usleep(WAIT_US)


def _second() -> None:
    _LIBRARIES["second"].usleep(WAIT_US)


def _third() -> None:
    _LIBRARIES["third"].usleep(WAIT_US)


def _none() -> None:
    return None


CALLS: dict[str, Callable[[], None]] = {
    "first": _first,
    "second": _second,
    "third": _third,
    "none": _none,
}


@dataclass
class State:
    """Requests go to the workers; each worker tells when a transfer is done."""

    wait: Callable[[], None]
    requests: queue.SimpleQueue[int]
    done: threading.Semaphore


def work(state: State) -> None:
    """Carry out transfers for ever."""
    while True:
        state.requests.get()
        with stage("transfer"):
            for _ in range(PIECES):
                _LIBRARIES["first"].usleep(PIECE_US)
        state.done.release()


def step(state: State) -> None:
    """Four requests: submit a transfer, wait for the device, take the transfer."""
    for i in range(WAITS):
        state.requests.put(i)
        with stage("device"):
            state.wait()
        state.done.acquire()
