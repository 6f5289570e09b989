"""The process that holds one condition of a workload, warm, and runs blocks of steps.

Started by the supervisor as ``python -m argus_bed.execution.child READ WRITE``. Requests
and replies travel over the two descriptors and not over stdout, which belongs to the
workload. No thread is started here: a thread of ours would show in what probes read and
would compete for the interpreter lock.
"""

from __future__ import annotations

import errno
import faulthandler
import gc
import importlib
import json
import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from argus_bed.execution.pipes import PipeClosed, receive, send
from argus_bed.workload.lifetime import die_with_parent

LOST_PIPE = 97  # exit code: the workload closed descriptors that are not its own
MAX_TRACE = 4000  # characters of a traceback that travel back
STACK_SIGNAL = signal.SIGRTMIN + 7  # asks for the Python stack on stderr; unlikely to be taken


class Condition:
    """A workload in one condition: state, blocks of steps, calls."""

    def __init__(self) -> None:
        self.workload: Any = None
        self.state: Any = None

    def open(self, workload: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Set up and warm up; returns the time of a step (s) and what is loaded."""
        self.workload = workload
        started = time.perf_counter()
        self.state = workload.setup(**settings)
        setup_s = time.perf_counter() - started
        times = []
        for _ in range(workload.warmup):
            begin = time.perf_counter_ns()
            workload.step(self.state)
            settle()
            times.append((time.perf_counter_ns() - begin) / 1e9)
        if workload.report is not None:  # what it says of the warm-up is not kept
            workload.report(self.state)
        step_s = times[-1] if times else None
        return {"setup_s": setup_s, "step_s": step_s, "loaded": loaded()}

    def block(self, steps: int, instrument: Any) -> list[list[Any]]:
        """Run ``steps`` steps; readings as [quantity, stage, value], per step."""
        from argus_bed.workload import stages

        step, state = self.workload.step, self.state
        taken: Mapping[Any, float] = {}
        if instrument is not None:
            instrument.start(self.workload, state)
            if hasattr(instrument, "enter"):
                stages.listen(instrument)
        try:
            settle()
            begin = time.perf_counter_ns()
            for _ in range(steps):
                step(state)
            settle()
            end = time.perf_counter_ns()
        finally:
            stages.listen(None)
            if instrument is not None:
                taken = instrument.stop(steps)
        readings: dict[tuple[str, str | None], float] = {
            ("step_time", None): (end - begin) / 1e9 / steps
        }
        if self.workload.report is not None:
            readings.update(_keyed(self.workload.report(state)))
        own = _keyed(taken)
        if instrument is not None:
            readings.update(own)
        return [[name, stage, float(value)] for (name, stage), value in readings.items()]

    def call(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        return function(self.workload, self.state, **arguments)


def _keyed(readings: Mapping[Any, float]) -> dict[tuple[str, str | None], float]:
    return {
        (key, None) if isinstance(key, str) else (key[0], key[1]): value
        for key, value in readings.items()
    }


def settle() -> None:
    """Wait for work that the step only issued. A no-op unless the workload started CUDA."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def loaded() -> list[str]:
    """Capabilities that the workload itself brought into the process."""
    found = []
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "cuda"):
        found.append("torch")
        if torch.cuda.is_available():
            found.append("cuda")
        if "torch._dynamo" in sys.modules:
            found.append("dynamo")
    return found


# -- requests -------------------------------------------------------------------------


def _function(address: str) -> Callable[..., Any]:
    module, _, name = address.partition(":")
    return getattr(importlib.import_module(module), name)  # type: ignore[no-any-return]


def _load_files(files: Mapping[str, str]) -> None:
    """Load probes that lie in a user's folder under the names that pickles refer to."""
    for name, path in files.items():
        if name not in sys.modules:
            from pathlib import Path

            from argus_bed.discovery import load_file

            load_file(Path(path))


def _workload(request: Mapping[str, Any]) -> Any:
    if request["source"]:
        from argus_bed.workload.loading import load

        return load(request["source"])
    return pickle.loads(request["pickled"])


def _answer(held: Condition, request: dict[str, Any]) -> Any:
    verb = request["verb"]
    if verb == "open":
        os.chdir(request["folder"])
        sys.path[:] = request["path"]
        return held.open(_workload(request), request["settings"])
    _load_files(request.get("files", {}))
    if verb == "block":
        pickled = request["instrument"]
        instrument = pickle.loads(pickled) if pickled is not None else None
        return held.block(request["steps"], instrument)
    if verb == "call":
        arguments = pickle.loads(request["arguments"])
        return held.call(_function(request["function"]), arguments)
    if verb == "loaded":
        return loaded()
    raise ValueError(f"verb {verb!r}")


def _reply(held: Condition, payload: bytes) -> bytes:
    try:
        return json.dumps({"ok": _answer(held, pickle.loads(payload))}).encode()
    except BaseException as error:  # SystemExit and KeyboardInterrupt end a step, not us
        lines = traceback.format_exception(error)
        told = {
            "type": type(error).__name__,
            "kind": _kind(error),
            "message": str(error)[:MAX_TRACE],
            "where": _where(error),
            "trace": "".join(lines)[-MAX_TRACE:],
        }
        return json.dumps({"error": told}).encode()


def _kind(error: BaseException) -> str:
    from argus_bed.errors import ProbeFailed, ProbeUnavailable, UsageError

    for kind in (ProbeUnavailable, ProbeFailed, UsageError):
        if isinstance(error, kind):
            return kind.__name__
    return "WorkloadFailed"


def _where(error: BaseException) -> str:
    """File and line of the innermost frame that is not ours."""
    own = os.path.dirname(os.path.abspath(__file__))
    frames = traceback.extract_tb(error.__traceback__)
    outside = [f for f in frames if not os.path.abspath(f.filename).startswith(own)]
    if not outside:
        return ""
    last = outside[-1]
    return f"{last.filename}, line {last.lineno}, in {last.name}"


def _keep_out_of_forks(read: int, write: int) -> None:
    """A process that the workload forks must neither answer for us nor hold the pipes open."""

    def forget() -> None:
        for fd in (read, write):
            try:
                os.close(fd)
            except OSError:  # a workload that closes every descriptor was here first
                continue
        die_with_parent()

    os.register_at_fork(after_in_child=forget)


def main(arguments: list[str]) -> None:
    """Answer requests until the pipe closes."""
    read, write, parent = (int(a) for a in arguments)
    own = os.getpid()
    die_with_parent(parent)
    for fd in (read, write):
        os.set_inheritable(fd, False)
    _keep_out_of_forks(read, write)
    stack = os.fdopen(os.dup(2), "w")
    faulthandler.register(STACK_SIGNAL, file=stack, all_threads=True)
    held = Condition()
    gc.collect()
    while True:
        try:
            payload = receive(read)
            answer = _reply(held, payload)
            if os.getpid() != own:  # a fork that came back out of the step
                os._exit(0)
            send(write, answer)
        except PipeClosed as closed:
            lost = getattr(closed.__cause__, "errno", None) == errno.EBADF
            # without running the workload's exit handlers, which may hang
            os._exit(LOST_PIPE if lost else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
