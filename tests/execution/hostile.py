"""Workloads that misbehave; each is loaded by a real child process."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from typing import Any

from argus_bed.frame import Stage
from argus_bed.workload import Knob, Workload, stage


def setup(do: str = "nothing", when: str = "step", path: str = "") -> dict[str, Any]:
    state = {"do": do, "when": when, "path": path, "steps": 0}
    if when == "setup":
        act(state)
    return state


def step(state: dict[str, Any]) -> None:
    state["steps"] += 1
    with stage("inner"):
        time.sleep(0.002)
    if state["when"] == "step" and state["steps"] > 1:
        act(state)


def _fork_and_return(state: dict[str, Any]) -> None:
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)


def _fork_and_stay(state: dict[str, Any]) -> None:
    pid = os.fork()
    if not pid:
        os.setsid()
        with open(state["path"], "w") as file:
            file.write(str(os.getpid()))
        time.sleep(600)
    while not os.path.exists(state["path"]) or not os.path.getsize(state["path"]):
        time.sleep(0.01)


def _print_much(state: dict[str, Any]) -> None:
    line = "x" * 9_999 + "\n"
    for _ in range(5_000):  # 100 MB in two steps
        sys.stdout.write(line)
    sys.stdout.flush()


def _print_binary(state: dict[str, Any]) -> None:
    os.write(1, bytes(range(256)) * 4)
    os.write(2, b'\xff\x00{"ok": 1}\n')


def _raise(state: dict[str, Any]) -> None:
    raise ValueError("no such batch: 7")


def _hang_keeping_the_lock(state: dict[str, Any]) -> None:
    ctypes.PyDLL(None).sleep(600)


DEEDS = {
    "nothing": lambda state: None,
    "raise": _raise,
    "hang": lambda state: time.sleep(600),
    "hang_hard": _hang_keeping_the_lock,
    "exit": lambda state: os._exit(3),
    "sys_exit": lambda state: sys.exit("enough"),
    "kill": lambda state: os.kill(os.getpid(), signal.SIGKILL),
    "segv": lambda state: ctypes.string_at(0),
    "fork": _fork_and_return,
    "fork_stay": _fork_and_stay,
    "print": _print_much,
    "binary": _print_binary,
    "close": lambda state: os.closerange(3, 100),
    "close_out": lambda state: os.closerange(0, 3),
}


def act(state: dict[str, Any]) -> None:
    DEEDS[state["do"]](state)


def echo(workload: Workload, state: Any, value: Any = None) -> Any:
    return value


def big(workload: Workload, state: Any) -> str:
    return "x" * (17 * 2**20)


def not_plain(workload: Workload, state: Any) -> Any:
    return object()


def fork_in_call(workload: Workload, state: Any) -> int:
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
    return os.getpid()


def modules(workload: Workload, state: Any) -> list[str]:
    return sorted(sys.modules)


def make(do: str, when: str = "step", path: str = "", **more: Any) -> Workload:
    given = {"do": do, "when": when, "path": path}
    fixed: dict[str, Any] = {"time_limit_s": 20.0, "warmup": 1, "steps": 3, **more}
    return Workload(
        "hostile",
        "Does the engine survive this?",
        setup,
        step,
        {"baseline": {}, "candidate": given},
        stages=(Stage("inner", "compute", changed=True),),
        knobs=(Knob("deed", "none", {"do": "nothing"}),),
        **fixed,
    )
