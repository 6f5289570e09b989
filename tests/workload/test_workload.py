from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from argus_bed.errors import ConfigError, UnknownName
from argus_bed.execution import LocalBench
from argus_bed.frame import Stage
from argus_bed.workload import Claim, Knob, Workload, load

FILE = """
from argus_bed.workload import Workload, stage
import time

def setup(pause=0.001):
    return pause

def step(pause):
    with stage("nap"):
        time.sleep(pause)

workload = Workload("naps", "Slower?", setup, step, {"baseline": {}, "candidate": {"pause": 0.002}})
other = 5
"""


def make(**more: Any) -> Workload:
    given: dict[str, Any] = {
        "name": "w",
        "question": "Why?",
        "setup": lambda **s: s,
        "step": lambda s: None,
        "arms": {"baseline": {"a": 1}, "candidate": {"a": 2}},
        **more,
    }
    return Workload(**given)


def test_knobs_become_conditions() -> None:
    knobs = (
        Knob("pool", "8", {"pool": 8}, removes={"gil_held"}),  # type: ignore[arg-type]
        Knob("data", "none", {"a": 0}, of="both", risk="numerics"),
    )
    workload = make(knobs=knobs, stages=(Stage("x"),))
    frame = workload.frame()
    assert [c.name for c in frame.conditions] == [
        "baseline",
        "candidate",
        "candidate:pool=8",
        "baseline:data=none",
        "candidate:data=none",
    ]
    assert frame.condition("candidate:pool=8").removes == {"gil_held"}
    assert workload.settings("candidate:pool=8") == {"a": 2, "pool": 8}
    assert workload.settings("baseline:data=none") == {"a": 0}
    assert workload.risks()["candidate:data=none"] == "numerics"
    with pytest.raises(UnknownName, match="did you mean 'candidate:pool=8'"):
        workload.settings("candidate:pool=9")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"arms": {"baseline": {}}}, "the two arms are called"),
        ({"arms": {"baseline": {}, "candidate": {}, "third": {}}}, "knobs, not arms"),
        ({"question": " "}, "needs both"),
        ({"step": 5}, "step=5: a function"),
        ({"metric": "step_tim"}, "did you mean 'step_time'"),
        ({"intent": "quicker"}, "intent='quicker'"),
        ({"stages": (Stage("x"), Stage("x"))}, "'x' is declared twice"),
        ({"time_limit_s": 0}, "time_limit_s=0"),
        ({"steps": -1}, "not below zero"),
        ({"items": 0}, "items=0"),
        ({"reports": (("violations", None),)}, "without a `report`"),
        ({"reports": (("violations", "y"),), "report": dict}, "unknown stage 'y'"),
        ({"knobs": (Knob("k"), Knob("k"))}, "'candidate:k=on' is declared twice"),
    ],
)
def test_what_cannot_be_meant_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, UnknownName), match=message):
        make(**wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"name": "a b"}, "'a b'"),
        ({"name": "a", "of": "both_arms"}, "baseline, candidate or both"),
        ({"name": "a", "removes": "gil_held"}, "must be a set"),
    ],
)
def test_knobs_are_checked(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Knob(**wrong)


def test_claims_are_checked() -> None:
    with pytest.raises(ConfigError, match="took 0 s"):
        Claim("op", 8.0, {"baseline": 0})
    with pytest.raises(UnknownName, match="did you mean 'baseline'"):
        Claim("op", 8.0, {"baselin": 1})


def test_a_file_is_loaded_and_run_by_its_path(folder: Path) -> None:
    (folder / "workload.py").write_text(FILE)
    workload = load("workload.py")
    assert workload.source == f"{folder / 'workload.py'}:workload"
    with LocalBench(workload) as bench:
        taken = bench.interleave(("baseline", "candidate"), blocks=1, steps=2)
    assert taken["candidate"]["step_time", None][0] > 0.002


@pytest.mark.parametrize(
    ("address", "text", "message"),
    [
        ("none.py", None, "no such file"),
        ("w.py:workloads", FILE, "did you mean 'workload'"),
        ("w.py:other", FILE, "other is a int, not a Workload"),
        ("w.py", "x = 1", "holds no Workload"),
        ("w.py", "x = (", "line 1"),
        ("w.py", "\n1/0", "line 2: ZeroDivisionError"),
        ("no.such.module", None, "No module named 'no'"),
    ],
)
def test_an_address_that_does_not_load_says_why(
    folder: Path, address: str, text: str | None, message: str
) -> None:
    if text is not None:
        (folder / "w.py").write_text(text)
    with pytest.raises((ConfigError, UnknownName), match=message):
        load(address)


def test_functions_without_a_file_travel_by_value() -> None:
    pause = 0.001
    workload = make(step=lambda state: __import__("time").sleep(pause))
    with LocalBench(workload) as bench:
        assert bench.child("baseline").step_s >= pause  # type: ignore[operator]


def test_the_workload_may_report_by_itself() -> None:
    workload = make(report=lambda state: {"violations": 3.0, ("stage_time", "x"): 0.5})
    with LocalBench(workload) as bench:
        taken = bench.interleave(("candidate",), blocks=2, steps=1)["candidate"]
    assert taken["violations", None] == [3.0, 3.0]
    assert taken["stage_time", "x"] == [0.5, 0.5]


def test_throughput_counts_items() -> None:
    workload = make(metric="throughput", items=10, step=lambda s: __import__("time").sleep(0.002))
    with LocalBench(workload) as bench:
        taken = bench.interleave(("candidate",), blocks=1, steps=2)["candidate"]
    (rate,), (step,) = taken["throughput", None], taken["step_time", None]
    assert rate == pytest.approx(10 / step)


def test_sys_path_is_left_alone_by_paths(folder: Path) -> None:
    (folder / "w.py").write_text(FILE)
    before = list(sys.path)
    load(folder / "w.py")
    assert sys.path == before
