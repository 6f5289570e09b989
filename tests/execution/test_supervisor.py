from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from argus_bed.errors import ProbeUnavailable, UnknownName, WorkloadFailed
from argus_bed.execution import LocalBench
from argus_bed.execution.supervisor import TAIL, Child

sys.path.insert(0, str(Path(__file__).parent))  # children import it by the same name
import hostile

HANG_S = 1.0


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_gone(pid: int, seconds: float = 3.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if gone(pid):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize(
    ("deed", "message"),
    [
        ("raise", r"raised ValueError: no such batch: 7 at .*hostile\.py, line \d+, in _raise"),
        ("exit", "exit code 3 during a block of 3 steps"),
        ("sys_exit", "raised SystemExit: enough"),
        ("kill", "was ended by SIGKILL"),
        ("segv", "was ended by SIGSEGV"),
        ("close", "closed descriptors that are not its own"),
    ],
)
def test_a_step_that_fails_says_what_and_where(deed: str, message: str) -> None:
    with Child(hostile.make(deed), "candidate") as child:
        pid = child.pid
        with pytest.raises(WorkloadFailed, match=message) as caught:
            child.request("block", "a block of 3 steps", steps=3, instrument=None)
        assert "'candidate' of 'hostile'" in str(caught.value)
        assert not child.alive
    assert wait_gone(pid)


@pytest.mark.parametrize("deed", ["hang", "hang_hard"])
def test_a_hang_is_cut_off_and_located(deed: str) -> None:
    with Child(hostile.make(deed), "candidate") as child:
        began = time.monotonic()
        with pytest.raises(WorkloadFailed, match=r"did not return within 1 s .*hostile\.py, line"):
            child.request("block", "a block", limit_s=HANG_S, steps=3, instrument=None)
        assert time.monotonic() - began < HANG_S + 3
        assert wait_gone(child.pid)


@pytest.mark.parametrize("deed", ["raise", "hang", "exit"])
def test_a_set_up_that_fails_leaves_no_process(deed: str) -> None:
    before = {p.pid for p in psutil.Process().children(recursive=True)}
    with pytest.raises(WorkloadFailed, match="set-up and warm-up"):
        Child(hostile.make(deed, "setup", time_limit_s=2.0), "candidate")
    assert {p.pid for p in psutil.Process().children(recursive=True)} <= before


@pytest.mark.parametrize("deed", ["fork", "binary", "close_out", "nothing"])
def test_rude_but_harmless(deed: str) -> None:
    with Child(hostile.make(deed), "candidate") as child:
        found = child.request("block", "a block", steps=3, instrument=None)
        assert found[0][:2] == ["step_time", None]
        assert 0.002 < found[0][2] < 2
        assert child.request("call", "echo", **_call("echo", value=5)) == 5


def test_a_hundred_megabytes_are_printed_and_not_kept() -> None:
    with Child(hostile.make("print"), "candidate") as child:
        child.request("block", "a block", steps=2, instrument=None)
        end = time.monotonic() + 10
        while child.output.seen < 100e6 and time.monotonic() < end:
            time.sleep(0.01)
        assert child.output.seen >= 100e6
        assert len(child.output.text()) <= TAIL


def test_a_fork_that_left_the_group_is_ended_too(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    workload = hostile.make("fork_stay", path=str(path))
    with Child(workload, "candidate") as child:
        child.request("block", "a block", steps=1, instrument=None)
        stray = int(path.read_text())
        assert not gone(stray)
    assert wait_gone(stray)


def test_a_fork_in_a_call_answers_once() -> None:
    with Child(hostile.make("nothing"), "candidate") as child:
        assert child.request("call", "fork", **_call("fork_in_call")) == child.pid
        assert child.request("call", "echo", **_call("echo", value="next")) == "next"


@pytest.mark.parametrize(
    ("function", "message"),
    [("big", "over the limit of"), ("not_plain", "TypeError: Object of type object")],
)
def test_replies_are_small_plain_data(function: str, message: str) -> None:
    with Child(hostile.make("nothing"), "baseline") as child:
        with pytest.raises(WorkloadFailed, match=message):
            child.request("call", function, **_call(function))


def _call(function: str, **arguments: object) -> dict[str, object]:
    import pickle

    return {"function": f"hostile:{function}", "arguments": pickle.dumps(arguments)}


def test_nothing_heavy_is_in_the_child() -> None:
    with Child(hostile.make("nothing"), "baseline") as child:
        loaded = child.request("call", "modules", **_call("modules"))
    assert not {"torch", "pymc", "pytensor", "pint", "pandas", "arviz"} & set(loaded)


def test_what_it_printed_is_told_with_the_failure() -> None:
    with Child(hostile.make("raise"), "candidate") as child:
        with pytest.raises(WorkloadFailed) as caught:
            child.request("block", "a block", steps=3, instrument=None)
    assert any("Traceback" in note for note in caught.value.__notes__)


def test_a_dead_process_is_replaced() -> None:
    with LocalBench(hostile.make("nothing")) as bench:
        first = bench.child("baseline")
        os.kill(first.pid, signal.SIGKILL)
        end = time.monotonic() + 3.0
        while first.alive and time.monotonic() < end:  # its threads end one after the other
            time.sleep(0.02)
        second = bench.child("baseline")
        assert second.pid != first.pid
        assert bench.call("baseline", "hostile:echo", value=[1, None]) == [1, None]


def test_no_process_is_left_after_close() -> None:
    with LocalBench(hostile.make("nothing")) as bench:
        pids = [bench.child(c).pid for c in ("baseline", "candidate", "candidate:deed=none")]
        assert len(set(pids)) == 3
    assert all(wait_gone(pid) for pid in pids)


def test_an_unknown_condition_is_named() -> None:
    with LocalBench(hostile.make("nothing")) as bench:
        with pytest.raises(UnknownName, match="did you mean 'candidate'"):
            bench.child("candidte")


def test_what_a_probe_raises_in_the_child_keeps_its_kind() -> None:
    with LocalBench(hostile.make("nothing")) as bench:
        with pytest.raises(ProbeUnavailable, match="no operation 'x'"):
            bench.call(
                "baseline",
                "argus_bed.probes._micro:measure",
                operation="x",
                cold=False,
                seconds=0.01,
            )


@pytest.mark.parametrize("how", ["SIGKILL", "exit"])
def test_children_die_with_the_engine(tmp_path: Path, how: str) -> None:
    script = textwrap.dedent(f"""
        import os, signal, sys, threading
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import hostile
        from argus_bed.execution.supervisor import Child
        made = []
        # started from a thread that ends: the child must outlive the thread
        start = lambda: made.append(Child(hostile.make("nothing"), "baseline"))
        thread = threading.Thread(target=start)
        thread.start()
        thread.join()
        made[0].request("block", "a block", steps=1, instrument=None)
        print(made[0].pid, flush=True)
        if {how!r} == "SIGKILL":
            os.kill(os.getpid(), signal.SIGKILL)
    """)
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.stdout.strip(), ran.stderr
    assert wait_gone(int(ran.stdout))
