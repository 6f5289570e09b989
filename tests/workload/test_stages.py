from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from argus_bed.workload import stage
from argus_bed.workload.stages import listen

TIMES_A_CALL = 12  # an empty ``with stage()`` against a call of an empty function
MAX_S = 1e-6


class Log:
    def __init__(self) -> None:
        self.heard: list[tuple[str, str, int]] = []

    def enter(self, name: str) -> None:
        self.heard.append(("enter", name, threading.get_ident()))

    def leave(self, name: str) -> None:
        self.heard.append(("leave", name, threading.get_ident()))


@pytest.fixture
def log() -> Log:
    found = Log()
    listen(found)
    yield found
    listen(None)


def test_stages_nest_and_tell_their_thread(log: Log) -> None:
    @stage("inner")
    def inner(x: int, *, y: int = 1) -> int:
        """Kept."""
        return x + y

    with stage("outer"):
        assert inner(2, y=3) == 5
    thread = threading.Thread(target=inner, args=(1,))
    thread.start()
    thread.join()
    assert [(what, name) for what, name, _ in log.heard] == [
        ("enter", "outer"),
        ("enter", "inner"),
        ("leave", "inner"),
        ("leave", "outer"),
        ("enter", "inner"),
        ("leave", "inner"),
    ]
    assert log.heard[0][2] != log.heard[-1][2]
    assert inner.__doc__ == "Kept."


def test_a_stage_is_left_when_its_body_raises(log: Log) -> None:
    with pytest.raises(KeyError), stage("a"):
        raise KeyError("x")
    assert [what for what, _, _ in log.heard] == ["enter", "leave"]


def _best(function: object, repeats: int = 7, count: int = 20_000) -> float:
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        function(count)  # type: ignore[operator]
        best = min(best, (time.perf_counter() - begin) / count)
    return best


def test_a_marker_costs_next_to_nothing_while_nobody_listens() -> None:
    def empty() -> None:
        return

    def calls(n: int) -> None:
        for _ in range(n):
            empty()

    def marked(n: int) -> None:
        for _ in range(n):
            with stage("x"):
                pass

    assert _best(marked) < min(TIMES_A_CALL * _best(calls), MAX_S)


def test_markers_are_cheap_to_import() -> None:
    script = "import sys; from argus_bed import stage; print('numpy' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
