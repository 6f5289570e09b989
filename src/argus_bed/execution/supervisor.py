"""One warm process per condition, started, watched, and ended for certain.

Whatever a workload does (raises, hangs, exits, forks, prints without end, closes
descriptors that are not its own), the engine gets an answer or a `WorkloadFailed` that
says what happened and where, and no process is left behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import re
import selectors
import signal
import subprocess
import sys
import threading
import time
import uuid
import weakref
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil

from argus_bed import errors
from argus_bed.errors import ConfigError, WorkloadFailed
from argus_bed.execution.child import LOST_PIPE, STACK_SIGNAL
from argus_bed.execution.pipes import (
    MAX_REPLY,
    PipeClosed,
    PipeTimeout,
    ReplyTooLong,
    receive,
    send,
)
from argus_bed.workload.model import Workload

TAIL = 64 * 2**10  # bytes of the workload's own output that are kept
MARK = "ARGUS_BED_CHILD"  # in the environment of everything that a child starts
STACK_WAIT_S = 0.3  # for the Python stack of a hung process
_SHOWN = 2000  # characters of output in a message
_SAID = 400  # of what an exception says

# The kernel ends a child when the *thread* that started it ends, so one thread that
# lives as long as the process starts them all.
_starter = ThreadPoolExecutor(1, thread_name_prefix="argus-bed-starter")


class Output:
    """Drains a child's stdout and stderr and keeps the end of them."""

    def __init__(self, *streams: Any) -> None:
        self.seen = 0
        self._kept: deque[bytes] = deque()
        self._size = 0
        self._lock = threading.Lock()
        self._streams = streams
        self._thread = threading.Thread(target=self._drain, name="argus-bed-output", daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        with selectors.DefaultSelector() as selector:
            for stream in self._streams:
                selector.register(stream, selectors.EVENT_READ)
            while selector.get_map():
                for key, _ in selector.select():
                    part = os.read(key.fd, 2**16)
                    if part:
                        self._keep(part)
                    else:
                        selector.unregister(key.fileobj)
        for stream in self._streams:
            stream.close()

    def _keep(self, part: bytes) -> None:
        with self._lock:
            self.seen += len(part)
            self._kept.append(part)
            self._size += len(part)
            while self._size - len(self._kept[0]) >= TAIL:
                self._size -= len(self._kept.popleft())

    def text(self) -> str:
        """The end of what was printed, whatever bytes it was."""
        with self._lock:
            whole = b"".join(self._kept)
        return whole.decode("utf-8", "backslashreplace")[-TAIL:]

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)


class Child:
    """A process that holds ``condition`` of ``workload``.

    Parameters
    ----------
    environment : variables set on top of this process's own.

    Raises
    ------
    WorkloadFailed : the set-up or the warm-up did not come through.
    """

    def __init__(
        self, workload: Workload, condition: str, environment: Mapping[str, str] | None = None
    ) -> None:
        self.workload, self.condition = workload, condition
        self._mark = uuid.uuid4().hex
        settings = workload.settings(condition)
        shipped = _shipped(workload)
        self._process, self._to, self._from = _starter.submit(
            _start, {**os.environ, **(environment or {}), MARK: self._mark}
        ).result()
        self.output = Output(self._process.stdout, self._process.stderr)
        self._finalizer = weakref.finalize(
            self, _end, self._process, self._mark, (self._to, self._from)
        )
        facts = self.request(
            "open", "set-up and warm-up", settings=settings, folder=os.getcwd(), **shipped
        )
        self.setup_s: float = facts["setup_s"]
        self.step_s: float | None = facts["step_s"]
        self.loaded = frozenset(facts["loaded"])

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._finalizer.alive and self._process.poll() is None

    def request(self, verb: str, doing: str, limit_s: float | None = None, **more: Any) -> Any:
        """Ask and wait.

        Parameters
        ----------
        doing : what the child does meanwhile, for messages.
        limit_s : seconds; None for the workload's own limit.

        Raises
        ------
        WorkloadFailed : and the process is gone, its state being anybody's guess.
        ProbeUnavailable, ProbeFailed : raised by an instrument in the child.
        """
        limit_s = self.workload.time_limit_s if limit_s is None else limit_s
        try:
            send(self._to, pickle.dumps({"verb": verb, **more}))
            raw = receive(self._from, time.monotonic() + limit_s, MAX_REPLY)
            reply = json.loads(raw)
            if not isinstance(reply, dict) or not reply.keys() & {"ok", "error"}:
                raise ValueError(repr(reply)[:80])
        except PipeTimeout:
            raise self._failed(
                f"did not return within {limit_s:g} s of {doing}", hung=True
            ) from None
        except PipeClosed:
            raise self._failed(f"{self._ending()} during {doing}") from None
        except ReplyTooLong as error:
            raise self._failed(f"gave a reply of {error} during {doing}") from None
        except ValueError as error:
            raise self._failed(f"gave an unreadable reply during {doing}: {error}") from None
        except BaseException:  # interrupted: the next reply would answer this question
            self.close()
            raise
        if "error" in reply:
            raise self._raised(reply["error"], doing)
        return reply["ok"]

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process and everything that it started."""
        self._finalizer()
        self.output.join(1.0)

    # -- failures -----------------------------------------------------------------------

    def _raised(self, told: Mapping[str, str], doing: str) -> Exception:
        where = f" at {told['where']}" if told["where"] else ""
        kind = getattr(errors, told["kind"])
        if kind is not WorkloadFailed:
            self.close()
            return kind(told["message"])  # type: ignore[no-any-return]
        said = " ".join(told["message"].split())[:_SAID]
        message = f"raised {told['type']}{': ' if said else ''}{said}{where}, during {doing}"
        failure = self._failed(message)
        failure.add_note(told["trace"])
        return failure

    def _ending(self) -> str:
        try:
            code = self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            return "closed the pipe to the engine"
        if code == LOST_PIPE:
            return "closed descriptors that are not its own, the engine's pipe among them,"
        if code >= 0:
            return f"ended its process with exit code {code}"
        name = signal.Signals(-code).name if -code in signal.valid_signals() else f"{-code}"
        hint = "; the kernel does that when memory runs out" if name == "SIGKILL" else ""
        return f"was ended by {name}{hint}"

    def _failed(self, what: str, hung: bool = False) -> WorkloadFailed:
        stack = self._stack() if hung else ""
        self.close()
        where = _innermost(stack)
        at = f", at {where}" if where else ""
        failure = WorkloadFailed(f"{self.condition!r} of {self.workload.name!r} {what}{at}")
        printed = self.output.text()[-_SHOWN:].strip()
        if printed:
            failure.add_note(f"the end of its {self.output.seen} bytes of output:\n{printed}")
        return failure

    def _stack(self) -> str:
        """Where a hung process is, as its own Python tells it on stderr."""
        before = self.output.seen
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, STACK_SIGNAL)
        deadline = time.monotonic() + STACK_WAIT_S
        while self.output.seen == before and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.02)
        text = self.output.text()
        return text[text.rfind("Current thread") :] if "Current thread" in text else ""


def _innermost(stack: str) -> str:
    """The first frame of a faulthandler dump that is not ours."""
    for file, line, name in re.findall(r'File "([^"]+)", line (\d+) in (\S+)', stack):
        if f"{os.sep}argus_bed{os.sep}execution" not in file:
            return f"{file}, line {line}, in {name}"
    return ""


def _shipped(workload: Workload) -> dict[str, Any]:
    """How the child gets the workload: by its address, or as it is."""
    path = list(sys.path)
    if workload.source:
        return {"source": workload.source, "path": path}
    import cloudpickle  # functions of a notebook or a script travel by value

    try:
        return {"source": "", "pickled": cloudpickle.dumps(workload), "path": path}
    except Exception as error:  # pickling runs code of every object that it meets
        raise ConfigError(
            f"workload {workload.name!r} cannot be sent to another process: {error}; put it "
            "into a file and pass the file's path"
        ) from error


def _start(environment: Mapping[str, str]) -> tuple[subprocess.Popen[bytes], int, int]:
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    command = [sys.executable, "-m", "argus_bed.execution.child"]
    try:
        process = subprocess.Popen(
            [*command, str(theirs_in), str(theirs_out), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(theirs_in, theirs_out),
            start_new_session=True,
            env=dict(environment),
        )
    except BaseException:
        for fd in (ours_out, ours_in):
            os.close(fd)
        raise
    finally:
        for fd in (theirs_in, theirs_out):
            os.close(fd)
    return process, ours_out, ours_in


def _end(process: subprocess.Popen[bytes], mark: str, fds: tuple[int, ...]) -> None:
    """Kill the process, its group, and whatever left the group but kept our mark."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for stray in _marked(mark):
        with contextlib.suppress(psutil.Error):
            stray.kill()
    process.wait()
    for fd in fds:
        os.close(fd)


def _marked(mark: str) -> list[psutil.Process]:
    """Processes of ours whose environment holds ``mark``."""
    found = []
    me = os.getuid()
    for candidate in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if candidate.uids().real == me and candidate.environ().get(MARK) == mark:
                found.append(candidate)
    return found
