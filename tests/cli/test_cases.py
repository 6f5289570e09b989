"""``demo``, ``zoo`` and ``replay``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Argus = Callable[..., Any]


def outcome(condition: str, quantity: str, *values: float) -> dict[str, Any]:
    unit = "s" if quantity.endswith(("time", "wait")) else "1"
    return {"condition": condition, "quantity": quantity, "unit": unit, "values": list(values)}


def probe(name: str, kind: str, cost_s: float, *outcomes: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "cost_s": cost_s,
        "perturbation": 0.0,
        "basis": "derived",
        "outcomes": list(outcomes),
    }


@pytest.fixture
def case(folder: Path) -> Path:
    """A thread waits for the interpreter lock in the candidate only."""
    content = {
        "schema": "argus-bed/case/1",
        "name": "example",
        "question": "Why is the step slower?",
        "source": "made up for this test",
        "established": "intervention",
        "metric": {"quantity": "step_time", "unit": "s"},
        "conditions": {"baseline": "before", "candidate": "after", "fixed": "lock let go"},
        "interventions": {
            "fixed": {
                "of": "candidate",
                "removes": ["gil_held"],
                "adds": [],
                "knob": "call",
                "value": "other",
            }
        },
        "stages": {},
        "hypotheses": ["gc_pause", "gil_held", "no_effect", "none_of_these"],
        "probes": [
            probe(
                "arms",
                "end_to_end",
                10.0,
                outcome("baseline", "step_time", 0.1, 0.101, 0.1, 0.099),
                outcome("candidate", "step_time", 0.15, 0.151, 0.149, 0.15),
            ),
            probe(
                "lock",
                "counter",
                20.0,
                outcome("baseline", "gil_wait", 0.0005, 0.0006),
                outcome("candidate", "gil_wait", 0.05, 0.051),
            ),
            probe(
                "fix",
                "controlled_variant",
                30.0,
                outcome("candidate", "step_time", 0.15, 0.151, 0.149, 0.15),
                outcome("fixed", "step_time", 0.1, 0.101, 0.1, 0.1),
            ),
        ],
        "verdict": {"status": "decided", "causes": ["gil_held"], "why": "it was fixed"},
    }
    path = folder / "example.json"
    path.write_text(json.dumps(content))
    return path


def test_replay_compares_verdicts(argus: Argus, case: Path) -> None:
    result = argus("replay", str(case), "--format", "json")
    assert result.code == 0, result
    facts = result.json
    assert facts["schema"] == "argus-bed/replay/1"
    assert facts["verdict"]["causes"] == ["gil_held"]
    assert facts["matches"]
    assert facts["missing"] == []
    assert 0 < facts["price_s"] <= facts["price_of_all_s"]


@pytest.mark.slow
def test_replay_shows_every_round(argus: Argus, case: Path) -> None:
    table = argus("replay", str(case))
    assert "run 1" in table.out
    assert "recorded: decided gil_held; the same verdict here" in table.out.replace("\n", " ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a JSON case file"),
        ("[]", "not a case"),
        ('{"schema": "argus-bed/case/2"}', "not a case of schema argus-bed/case/1"),
        ('{"schema": 1, "schema": 2}', "stands twice"),
    ],
)
def test_files_that_are_no_case(argus: Argus, folder: Path, text: str, said: str) -> None:
    (folder / "case.json").write_text(text)
    result = argus("replay", "case.json")
    assert result.code == 2
    assert said in result.err
    assert argus("replay", "none.json").code == 2


def test_names_that_nothing_bears(argus: Argus, folder: Path) -> None:
    for words in (("demo", "gill"), ("zoo", "run", "gill")):
        result = argus(*words)
        assert result.code == 2
        assert "did you mean 'gil'?" in result.err
    assert argus("zoo", "run", "gil", "--repeats", "0").code == 2


def test_demo_lists_the_zoo(argus: Argus, folder: Path) -> None:
    listed = argus("demo", "--list", "--format", "json").json
    assert listed == argus("zoo", "list", "--format", "json").json
    assert "gil" in {w["name"] for w in listed["workloads"]}
    assert "gil_held" in argus("zoo", "list").out


@pytest.mark.slow
def test_demo_tells_the_whole_story(argus: Argus, folder: Path) -> None:
    result = argus("demo")
    assert result.code == 0, result
    for word in ("prior", "because", "runner-up", "expected", "learned", "verdict", "next"):
        assert word in result.out, word
    assert "gil held" in result.out
    (page,) = (folder / ".argus-bed").glob("*.html")
    assert page.name in result.out.replace("\n", "")


@pytest.mark.slow
def test_zoo_run_counts_right_answers(argus: Argus, folder: Path) -> None:
    facts = argus("zoo", "run", "gil", "--format", "json").json
    (repeat,) = facts["repeats"]
    assert facts["expected"] == "gil_held"
    assert repeat["price_s"] <= repeat["price_of_all_s"]
    assert {"status", "runs", "wall_s", "ranking", "plans"} <= set(repeat)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda c: "not JSON", "not a JSON case file"),
        (lambda c: json.dumps({**c, "schema": "argus-bed/case/9"}), "schema"),
        (lambda c: json.dumps({**c, "conditions": {"baseline": "x"}}), "no condition 'candidate'"),
        (lambda c: json.dumps(c).replace("gil_wait", "gil_wiat"), "did you mean 'gil_wait'"),
    ],
)
def test_a_bad_case_is_refused_before_the_engine_is_loaded(
    case: Path, wrong: Callable[[Any], str], says: str
) -> None:
    case.write_text(wrong(json.loads(case.read_text())))
    script = (
        "import sys; from argus_bed.cli import main\n"
        f"sys.argv = ['argus-bed', 'replay', {str(case)!r}]\n"
        "try: main()\n"
        "except SystemExit as end: print(end.code, 'torch' in sys.modules, 'pymc' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["2", "False", "False"]
    assert says in ran.stderr
