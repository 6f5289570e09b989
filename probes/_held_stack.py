"""Where the interpreter lock was held: the stack at the end of each silence of the ticks.

While a call holds the lock no Python runs, so nothing written in Python can look. A kernel
timer can ring meanwhile: every tick winds it, and only a tick that is late by `SILENCE_S`
lets it ring. Its signal goes to the tick thread, which is waiting for the lock; no call of
the workload is interrupted. The interpreter serves signals in the main thread, before it
lets another thread have the lock: so the handler runs when the call has just returned,
and the call is still the line that the frame stands on.

Stacks are *not* read from outside while the lock is held. A handler that `faulthandler`
registers can do that and was tried first: it ended the process by SIGSEGV on CPython 3.12,
on the zoo's `gil` within 10 blocks of 0.1 s and on two busy Python threads within 30. The
likely cause, not traced: a dump that lasts beyond the hold walks frames that change under
it. `faulthandler.dump_traceback_later` walks them the same way; besides, there is one for
a process, which the workload may have in use, and winding it took 0.6 to 2.4 ms a tick.

A look sees all threads, and not which one had the lock. Places where a thread stood while
a tick got the lock at once are places where it had let the lock go; the holder is the
thread that stands where that was seen least. Of a thread other than the main one it is
seen where it stands when the next thread runs; it may have moved on by then.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from argus_bed.probes._paired import Key
from argus_bed.probes._ticks import PERIOD_S, Tick, Ticks

import argus_bed.probe
from argus_bed.errors import ProbeUnavailable

SILENCE_S = 7e-4  # holds shorter than this are seen when the tick thread runs again
GIVE_WAY_S = 5e-4
"""Python code gives the lock up after this while the instrument is on; 5 ms is the default.

On Linux a signal that another thread got does not make the main thread look up by itself
(CPython 3.12, `COMPUTE_EVAL_BREAKER`); the tick thread's demand for the lock does, and it
makes that demand after the switch interval. The demand must be there when the call returns.
"""
SIGEV_THREAD_ID = 4
CLOCK_MONOTONIC = 1

Place = tuple[str, int, str]
"""File, line, function."""
Stack = tuple[Place, ...]
"""Innermost first, as they are read."""
Seen = tuple[bool, Stack]
"""Whether the main thread looked as soon as it could (else the tick thread, later), and a stack."""

_HOME = Path(argus_bed.probe.__file__).parent
_OWN = tuple(
    f"{folder}{os.sep}"
    for folder in (_HOME / "execution", _HOME / "workload", Path(__file__).parent)
)


class _Event(ctypes.Structure):
    """``struct sigevent`` of 64-bit Linux, with the thread that is to get the signal."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signo", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("thread", ctypes.c_int),
        ("rest", ctypes.c_int * 11),
    )


class _Spec(ctypes.Structure):
    """``struct itimerspec``: period and first expiry, each as seconds and nanoseconds."""

    _fields_ = (("period", ctypes.c_long * 2), ("first", ctypes.c_long * 2))


class Timer:
    """A timer of the kernel that signals the thread which makes it.

    Its functions are called through ``PyDLL``: they return at once, and giving the lock
    up for them would be one more wait for it.

    Raises
    ------
    ProbeUnavailable : this system has no such timers.
    """

    def __init__(self, seconds: float, signo: int) -> None:
        if not sys.platform.startswith("linux") or ctypes.sizeof(ctypes.c_void_p) != 8:
            raise ProbeUnavailable("timers that signal one thread are of 64-bit Linux")
        self._libc = ctypes.PyDLL(None, use_errno=True)
        if not hasattr(self._libc, "timer_create"):
            raise ProbeUnavailable("this C library has no timer_create")
        self._id = ctypes.c_void_p()
        event = _Event(signo=signo, notify=SIGEV_THREAD_ID, thread=threading.get_native_id())
        if self._libc.timer_create(CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(self._id)):
            raise ProbeUnavailable(f"timer_create: {os.strerror(ctypes.get_errno())}")
        ns = round(seconds * 1e9)
        one = (ctypes.c_long * 2)(*divmod(ns, 10**9))
        self._wound = ctypes.byref(_Spec(period=one, first=one))

    def wind(self) -> None:
        """Begin anew: expires when this has not been called again in time, and again after."""
        self._libc.timer_settime(self._id, 0, self._wound, None)

    def close(self) -> None:
        self._libc.timer_delete(self._id)


def free_signal() -> int:
    """A real-time signal that nothing in the process catches or ignores.

    Raises
    ------
    ProbeUnavailable : there is none.
    """
    status = Path("/proc/self/status").read_text()
    taken = 0
    for name in ("SigCgt", "SigIgn"):
        taken |= int(re.findall(rf"^{name}:\s*(\w+)", status, re.MULTILINE)[0], 16)
    for signo in range(signal.SIGRTMAX - 1, signal.SIGRTMIN, -1):
        if not taken >> (signo - 1) & 1:
            return signo
    raise ProbeUnavailable("the workload handles every real-time signal; none is left for a timer")


@dataclass
class Silence:
    """A tick that waited: how long (s), and where all threads stood in each look."""

    waited_s: float
    prompt: bool
    looks: list[Mapping[int, Stack]]


@dataclass
class Block:
    """What one block told."""

    waited_s: float = 0.0
    seconds: defaultdict[Seen, float] = field(default_factory=lambda: defaultdict(float))
    samples: Counter[Seen] = field(default_factory=Counter)


FOUND: list[Block] = []
"""Of the blocks in this process since `collected` was called."""


class HeldStack(Ticks):
    """Ticks that also keep the stacks in which the lock was held."""

    def start(self, workload: Any, state: Any) -> None:
        self._silences: list[Silence] = []
        self._looks: list[Mapping[int, Stack]] = []
        self._let_go: Counter[Place] = Counter()
        self._main = threading.get_ident()
        self._signo = free_signal()
        signal.signal(self._signo, self._look)
        self._usual_s = sys.getswitchinterval()
        sys.setswitchinterval(min(self._usual_s, GIVE_WAY_S))
        super().start(workload, state)

    def _look(self, signo: int, frame: FrameType | None) -> None:
        """In the main thread, as soon as it runs Python again. Must not raise: a step runs."""
        found = {i: _stack(f) for i, f in sys._current_frames().items() if i != self._main}
        if frame is not None:
            found[self._main] = _stack(frame)
        self._looks.append(found)

    def _run(self) -> None:
        self._timer = Timer(PERIOD_S + SILENCE_S, self._signo)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [self._signo])
        try:
            super()._run()
        finally:
            self._timer.close()

    def before(self) -> None:
        self._timer.wind()

    def heard(self, tick: Tick, waited_s: float) -> None:
        looks, self._looks = self._looks, []
        me = threading.get_ident()
        others = {i: f for i, f in sys._current_frames().items() if i != me}
        if tick.blocked <= 1:
            self._let_go.update({_place(f) for f in others.values()})
        elif waited_s > 0:
            now = {i: _stack(f) for i, f in others.items()}
            self._silences.append(Silence(waited_s, bool(looks), looks or [now]))

    def stop(self, steps: int) -> Mapping[Key, float]:
        try:
            found: Mapping[Key, float] = super().stop(steps)
        finally:
            sys.setswitchinterval(self._usual_s)
            signal.signal(self._signo, signal.SIG_DFL)
        FOUND.append(self._block())
        return found

    def _block(self) -> Block:
        block = Block()
        for silence in self._silences:
            block.waited_s += silence.waited_s
            for stacks in silence.looks:
                holders = self._holders(stacks)
                for stack in holders:
                    part_s = silence.waited_s / len(silence.looks) / len(holders)
                    block.seconds[silence.prompt, stack] += part_s
                    block.samples[silence.prompt, stack] += 1
        return block

    def _holders(self, stacks: Mapping[int, Stack]) -> list[Stack]:
        """The stack of the thread that stands where the lock is least often let go."""
        others = [s for i, s in stacks.items() if i != self._thread.ident and s]
        if not others:
            return []
        least = min(self._let_go[s[0]] for s in others)
        return [s for s in others if self._let_go[s[0]] == least]


def _place(frame: FrameType) -> Place:
    return (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def _stack(innermost: FrameType) -> Stack:
    found = []
    frame: FrameType | None = innermost
    while frame is not None:
        found.append(_place(frame))
        frame = frame.f_back
    return tuple(found)


# -- handed back ----------------------------------------------------------------------


def collected(workload: Any, state: Any) -> dict[str, Any]:
    """What the blocks in this process found since this was last called, as plain data.

    Returns
    -------
    dict : ``waited_s``, the time for which ticks waited for the lock; ``chains``, each with
        ``chain`` ("file:line function", the outermost below the step first), ``share`` of
        the waited time, ``samples``, and ``prompt``: the part of them in which the main
        thread looked as soon as it could. In the others the tick thread did, once it ran.
    """
    blocks, FOUND[:] = list(FOUND), []
    waited_s = sum(b.waited_s for b in blocks)
    seconds: defaultdict[Stack, float] = defaultdict(float)
    samples: Counter[Seen] = Counter()
    for block in blocks:
        for (prompt, stack), spent in block.seconds.items():
            below = below_step(stack)
            seconds[below] += spent
            samples[prompt, below] += block.samples[prompt, stack]
    chains: dict[tuple[tuple[str, str], ...], list[Stack]] = {}
    for stack in sorted(seconds, key=lambda s: -seconds[s]):
        if stack:  # lines of one and the same chain of functions count as one chain
            chains.setdefault(tuple((f, name) for f, _, name in stack), []).append(stack)
    found = []
    for stacks in chains.values():
        at_once = sum(samples[True, s] for s in stacks)
        count = at_once + sum(samples[False, s] for s in stacks)
        found.append(
            {
                "chain": [f"{_short(file)}:{line} {name}" for file, line, name in stacks[0]],
                "share": sum(seconds[s] for s in stacks) / waited_s,
                "samples": count,
                "prompt": at_once / count,
            }
        )
    return {"waited_s": waited_s, "chains": sorted(found, key=lambda c: -float(c["share"]))}


def settings(workload: Any, state: Any) -> dict[str, Any]:
    """What of the process an instrument here sets: the switch interval (s), the free signal."""
    return {"interval_s": sys.getswitchinterval(), "signal": free_signal()}


def below_step(stack: Stack) -> Stack:
    """``stack`` outermost first, from the workload's own first frame on; empty if all is ours."""
    frames = list(reversed(stack))
    ours = [i for i, f in enumerate(frames) if f[0].startswith(_OWN[0])]
    frames = frames[ours[-1] + 1 :] if ours else frames
    while frames and frames[0][0] == threading.__file__:  # how a thread begins
        frames = frames[1:]
    return tuple(f for f in frames if not f[0].startswith(_OWN[1:]))


def _short(file: str) -> str:
    """``file`` from the folder on that it was imported from."""
    folders = [str(Path(p).absolute()) + os.sep for p in sys.path]
    inside = [f for f in folders if file.startswith(f)]
    return file.removeprefix(max(inside, key=len)) if inside else file
