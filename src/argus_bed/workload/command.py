"""A workload that is a command: it runs, prints JSON lines, and ends.

Each line is one object: ``{"step_time": 0.0123}`` (seconds), several quantities at once, or
``{"quantity": "stage_time", "stage": "load", "value": 1.2, "unit": "ms"}``. One run of the
command is one block; of each quantity the median over the lines counts. A command that
prints no step time is timed from start to end. Lines that are no JSON object are the
command's own affair and are passed over, unless nothing else comes.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from argus_bed.errors import ConfigError, UsageError, WorkloadFailed
from argus_bed.quantity import convert
from argus_bed.workload.lifetime import die_with_parent
from argus_bed.workload.model import Key, Workload

MAX_LINE = 2**16  # bytes; a longer line is noise
MAX_READINGS = 100_000  # per run; later lines are counted and dropped
MAX_LINES = 10_000_000
KEPT = 2000  # bytes of stderr that a message shows
NAMES = frozenset({"quantity", "stage", "value", "unit"})


@dataclass
class State:
    """The command of one condition, and what its latest run printed."""

    argv: list[str]
    environment: dict[str, str]
    folder: str | None
    readings: dict[Key, list[float]] = field(default_factory=dict)
    unread: int = 0


def setup(
    argv: Sequence[str],
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    folder: str | None = None,
) -> State:
    """The command is ``argv`` followed by ``args``; ``env`` is set on top of the environment."""
    whole = [str(a) for a in (*argv, *args)]
    return State(whole, {**os.environ, **(env or {})}, folder)


def step(state: State) -> None:
    """Run the command once. Raises `WorkloadFailed` if it fails or a line is nonsense."""
    state.readings, state.unread = {}, 0
    try:
        process = subprocess.Popen(
            state.argv,
            env=state.environment,
            cwd=state.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=die_with_parent,  # also when nobody is left to stop it
        )
    except OSError as error:
        raise WorkloadFailed(f"{state.argv[0]}: {error.strerror}") from error
    begin = time.perf_counter_ns()
    errors = bytearray()
    for line in _lines(process, errors):
        _take(state, line)
    code = process.wait()
    if code != 0:
        said = bytes(errors).decode("utf-8", "backslashreplace").strip()
        raise WorkloadFailed(
            f"{' '.join(state.argv)} ended with code {code}{': ' + said if said else ''}"
        )
    if ("step_time", None) not in state.readings:
        elapsed = (time.perf_counter_ns() - begin) / 1e9
        state.readings["step_time", None] = [elapsed]


def report(state: State) -> dict[Key, float]:
    """The median of each quantity over the latest run."""
    return {key: median(values) for key, values in state.readings.items()}


def _lines(process: subprocess.Popen[bytes], errors: bytearray) -> Iterator[bytes]:
    """Lines of stdout, cut at `MAX_LINE`; the end of stderr goes to ``errors``."""
    assert process.stdout is not None
    assert process.stderr is not None
    rest, skipping = b"", False
    with selectors.DefaultSelector() as selector, process.stdout, process.stderr:
        selector.register(process.stdout, selectors.EVENT_READ)
        selector.register(process.stderr, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                part = os.read(key.fd, 2**16)
                if not part:
                    selector.unregister(key.fileobj)
                elif key.fileobj is process.stderr:
                    errors += part
                    del errors[:-KEPT]
                else:
                    *whole, rest = (rest + part).split(b"\n")
                    for line in whole:
                        if not skipping:
                            yield line
                        skipping = False
                    if len(rest) > MAX_LINE:
                        rest, skipping = b"", True
        if rest and not skipping:
            yield rest


def _take(state: State, line: bytes) -> None:
    if sum(map(len, state.readings.values())) >= MAX_READINGS or state.unread > MAX_LINES:
        state.unread += 1
        return
    if not line.lstrip().startswith(b"{"):
        state.unread += 1
        return
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        state.unread += 1
        return
    try:
        for key, value in _readings(said):
            state.readings.setdefault(key, []).append(value)
    except (UsageError, TypeError, ValueError) as error:
        shown = line[:200].decode("utf-8", "backslashreplace")
        raise WorkloadFailed(f"{state.argv[0]} printed {shown}: {error}") from error


def _readings(said: Mapping[str, Any]) -> Iterator[tuple[Key, float]]:
    if "quantity" in said:
        unknown = said.keys() - NAMES
        if unknown or "value" not in said:
            raise ValueError(f"keys {sorted(said)}; expected quantity, value, stage, unit")
        name, stage = str(said["quantity"]), said.get("stage")
        unit = said.get("unit")
        value = float(said["value"])
        yield (name, stage), _converted(value, unit, name)
        return
    for name, value in said.items():
        yield (name, None), _converted(float(value), None, name)


def _converted(value: float, unit: str | None, name: str) -> float:
    from argus_bed.quantity import quantity

    return convert(value, quantity(name).unit if unit is None else unit, name)


def command(
    name: str,
    question: str,
    argv: Sequence[str],
    arms: Mapping[str, Mapping[str, Any]],
    **more: Any,
) -> Workload:
    """A workload out of a command.

    Parameters
    ----------
    argv : the command, without a shell.
    arms : per arm ``args`` (added to the command), ``env`` or ``folder``.
    more : whatever else `Workload` takes; knobs' settings are as those of an arm.
        ``reports`` lists what it prints beside the step time.

    Raises
    ------
    ConfigError : the command is a text instead of a list, or an arm has another key.
    """
    if isinstance(argv, str) or not argv:
        raise ConfigError(f"argv={argv!r}: a list, such as ['python', 'bench.py']")
    for arm, settings in arms.items():
        for key in settings.keys() - {"args", "env", "folder"}:
            raise ConfigError(f"arm {arm!r}: {key!r} is none of args, env, folder")
    whole = {arm: {"argv": list(argv), **settings} for arm, settings in arms.items()}
    fixed: dict[str, Any] = {"steps": 1, "warmup": 1, **more}
    return Workload(name, question, setup, step, whole, report=report, **fixed)
