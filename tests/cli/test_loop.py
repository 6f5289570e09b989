"""``next``, ``run``, ``tell``, ``report``: a study from the command line, really run."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argus_bed.cli.loop import duration, ending, told
from argus_bed.errors import UsageError
from argus_bed.records import Status, Verdict

Argus = Callable[..., Any]

SETTINGS = """
[study]
workload = "workload.py"
hypotheses = ["allocator_stall", "off_critical_path", "gc_pause"]

[policy]
budget_s = 60
"""


@pytest.fixture
def project(argus: Argus, folder: Path) -> Path:
    """What ``init`` writes, with three mechanisms to choose from."""
    assert argus("init").code == 0
    (folder / "argus-bed.toml").write_text(SETTINGS)
    return folder


def test_told_is_taken_apart() -> None:
    assert told(["7", "step_time=12.3ms,12.1ms"]) == (7, {"step_time": ["12.3ms", "12.1ms"]})
    assert told(["page_faults=3", "page_faults=4"]) == (None, {"page_faults": ["3", "4"]})


@pytest.mark.parametrize(
    "words", [["7"], ["step_time"], ["step_time="], ["=3ms"], ["step_time=1,,2"], ["7", "8"]]
)
def test_told_that_is_none(words: list[str]) -> None:
    with pytest.raises(UsageError, match="write"):
        told(words)


def test_durations_on_the_command_line() -> None:
    assert duration("--max-price", None) is None
    assert duration("--max-price", "90") == 90
    assert duration("--max-price", "2min") == 120
    for text in ("nan", "-3", "inf", "0", "3 apples", ""):
        with pytest.raises(UsageError, match="--max-price"):
            duration("--max-price", text)


def test_exit_codes_of_a_run() -> None:
    def verdict(status: Status) -> Verdict:
        return Verdict(status, (), 0.5, (), "", (), (), (), "")

    assert ending(verdict(Status.DECIDED), ["done"]) == 0
    assert ending(verdict(Status.OPEN), ["done", "failed"]) == 0
    assert ending(verdict(Status.OPEN), ["failed"]) == 4
    assert ending(verdict(Status.UNDETERMINED), ["done"]) == 3
    assert ending(verdict(Status.OUT_OF_BUDGET), []) == 3


def test_tell_ask_and_run(argus: Argus, project: Path) -> None:
    """The loop as the README tells it, on the workload that `init` writes."""
    taken = argus("tell", "step_time=3.1ms,3.2ms", "--condition", "baseline", "--format", "json")
    assert taken.code == 0, taken
    assert taken.json["run"]["source"] == "told"
    asked = argus("next", "--format", "json")
    assert asked.code == 0, asked
    first = asked.json["proposals"][0]
    assert first["gain_bits"] > 0
    assert first["predictions"]
    ran = argus("run", "--max-runs", "1", "--format", "json")
    assert ran.code == 0, ran
    content = ran.json
    assert content["schema"] == "argus-bed/run/1"
    assert [r["state"] for r in content["runs"]] == ["done", "done"]
    assert content["runs"][1]["proposal"]["plan"] == first["plan"]
    assert math.isclose(sum(content["probabilities"].values()), 1.0, abs_tol=1e-9)
    assert Path(content["report"]).read_text().lower().startswith("<!doctype html")
    status = argus("status", "--format", "json").json
    assert [r["run"] for r in status["runs"]] == [1, 2]


@pytest.mark.slow
def test_a_study_goes_on_where_it_stopped(argus: Argus, project: Path) -> None:
    before = argus("run", "--max-runs", "1", "--format", "json").json
    resumed = argus("run", "--resume", "--max-runs", "1", "--format", "json")
    assert resumed.code in (0, 3), resumed
    assert resumed.json["runs"][0] == before["runs"][0]
    page = argus("report", "-o", "page.html", "--format", "json")
    assert page.code == 0, page
    assert (project / "page.html").is_file()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("step_tme=3ms", "--condition", "baseline"), 2, "did you mean 'step_time'?"),
        (("step_time=3W", "--condition", "baseline"), 2, "step_time"),
        (("step_time=nan", "--condition", "baseline"), 2, "finite"),
        (("step_time=-3ms", "--condition", "baseline"), 2, "cannot be negative"),
        (("step_time=3ms", "--condition", "basline"), 2, "did you mean 'baseline'?"),
        (("stage_time=3ms", "--condition", "baseline", "--stage", "scal"), 2, "'scale'"),
        (("9", "step_time=3ms", "--condition", "baseline"), 2, "unknown proposal '9'"),
        (("step_time=3ms", "--condition", "baseline", "--took", "nan"), 2, "--took"),
    ],
)
def test_what_cannot_be_told(
    argus: Argus, project: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    result = argus("tell", *words)
    assert result.code == code, result
    assert said in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no Workload"),
        ("def broken(:\n", "workload.py, line 1"),
        ("import nothing_of_that_name\n", "nothing_of_that_name"),
        ("workload = 3\n", "not a Workload"),
    ],
)
def test_a_workload_that_is_none(argus: Argus, project: Path, text: str, said: str) -> None:
    (project / "workload.py").write_text(text)
    for command in ("next", "run"):
        result = argus(command)
        assert result.code == 2, result
        assert said in result.err
    checked = argus("check", "--format", "json")
    assert checked.code == 2
    findings = {f["what"]: f for f in checked.json["findings"]}
    assert said in findings["workload"]["says"]


def test_a_folder_without_anything_says_what_to_do(argus: Argus, folder: Path) -> None:
    result = argus("next")
    assert result.code == 2
    assert "argus-bed init" in result.err


def test_resuming_what_does_not_exist(argus: Argus, project: Path) -> None:
    result = argus("run", "--resume")
    assert result.code == 5
    assert "Traceback" not in result.err


def test_check_says_what_fits(argus: Argus, project: Path) -> None:
    result = argus("check", "--format", "json")
    assert result.code == 0, result
    findings = {f["what"]: f for f in result.json["findings"]}
    assert findings["models"]["ok"]
    assert "paired_end_to_end" in findings["measurements"]["says"]
    assert not (project / ".argus-bed").exists()
    assert argus("check", "--set", "hypotheses=gil_hold,gc_pause").code == 2


def test_doctor_names_what_is_missing(argus: Argus, folder: Path) -> None:
    findings = argus("doctor", "--format", "json").json["findings"]
    named = {f["what"]: f for f in findings}
    assert named["storage"]["ok"]
    assert "torch" in named["libraries"]["says"]
    assert all(f["adds"] for f in findings if f["ok"] is False)
