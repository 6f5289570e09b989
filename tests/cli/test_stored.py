"""``status``, ``why``, ``export`` and ``storage``: what the ledger alone can tell."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argus_bed.ledger import Ledger
from argus_bed.records import Proposal, Run, RunState, Status, Verdict

Argus = Callable[..., Any]

BEFORE = {"gil_held": 0.3, "gc_pause": 0.3, "no_effect": 0.3, "none_of_these": 0.1}
AFTER = {"gil_held": 0.97, "gc_pause": 0.01, "no_effect": 0.01, "none_of_these": 0.01}


def proposal() -> Proposal:
    return Proposal(
        run=0,
        plan="event_pair",
        probe="event_pair",
        settings={},
        conditions=("baseline", "candidate"),
        question="How long does a thread wait?",
        gain_bits=1.25,
        gain_error=0.01,
        price_s=2.0,
        perturbation=0.01,
        score=0.6,
        reason="1.25 bits expected for 2 s",
    )


@pytest.fixture
def study(folder: Path) -> Path:
    """A ledger with one finished run and one that waits."""
    path = folder / ".argus-bed" / "ledger.db"
    with Ledger.open(path) as ledger:
        number = ledger.create_study("study", {"question": "Why is it slow?"})
        first = ledger.propose(number, proposal())
        lease = ledger.claim(number, first.run)
        assert lease is not None
        ledger.finish(
            lease,
            Run(1, RunState.DONE, first, before=BEFORE, after=AFTER, gained_bits=1.3, price_s=2.1),
        )
        ledger.propose(number, proposal())
    return path


def test_status_names_runs_price_and_belief(argus: Argus, study: Path) -> None:
    facts = argus("status", "--format", "json").json
    assert facts["schema"] == "argus-bed/status/1"
    assert facts["status"] == "open"
    assert facts["spent_s"] == 2.1
    assert facts["ranking"][0] == ["gil_held", 0.97]
    assert [r["state"] for r in facts["runs"]] == ["done", "proposed"]
    table = argus("status")
    assert "event_pair" in table.out
    assert "97" in table.out
    assert table.err == ""


def test_a_verdict_counts_until_something_new_is_read(argus: Argus, study: Path) -> None:
    from dataclasses import asdict

    ranking = tuple(AFTER.items())
    found = Verdict(Status.DECIDED, ("gil_held",), 0.97, ranking, "fits", (), (), (1,), "fix it")
    with Ledger.open(study) as ledger:
        number = ledger.study("study").id
        ledger.append(number, "verdict", asdict(found))
        assert argus("status", "--format", "json").json["status"] == "decided"
        ledger.tell(number, Run(0, RunState.DONE, None, before=AFTER, after=AFTER, source="told"))
    assert argus("status", "--format", "json").json["status"] == "open"


def test_why_shows_reason_and_change(argus: Argus, study: Path) -> None:
    facts = argus("why", "1", "--format", "json").json
    assert facts["run"]["proposal"]["reason"].startswith("1.25 bits")
    table = argus("why", "1").out
    assert "1.25" in table
    assert "gil held" in table


def test_export_is_one_object_with_nulls(argus: Argus, study: Path) -> None:
    with Ledger.open(study) as ledger:
        run = Run(0, RunState.DONE, None, after=AFTER, source="told", overhead=None)
        ledger.tell(ledger.study("study").id, run)
    content = argus("export").json
    assert content["schema"] == "argus-bed/study/1"
    assert content["question"] == "Why is it slow?"
    assert content["runs"][2]["overhead"] is None
    assert math.isclose(sum(content["probabilities"].values()), 1.0)
    assert argus("export", "--format", "table").code == 2


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("status", "--study", "studdy"), 2, "unknown study 'studdy'; did you mean 'study'?"),
        (("why", "7"), 2, "unknown run '7'; known: 1, 2"),
        (("why", "one"), 2, "unable to parse"),
        (("status", "--ledger", "none.db"), 5, "none.db"),
        (("export", "--ledger", "."), 5, ""),
        (("storage", "upgrade", "--ledger", "none.db"), 5, "none.db"),
    ],
)
def test_what_is_not_there(
    argus: Argus, study: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    result = argus(*words)
    assert result.code == code
    assert said in result.err.replace("\n", " ")
    assert "Traceback" not in result.err


def test_a_ledger_that_is_none(argus: Argus, folder: Path) -> None:
    (folder / "text.db").write_text("not a database at all, but long enough to look at\n" * 40)
    result = argus("status", "--ledger", "text.db")
    assert result.code == 5
    with sqlite3.connect(folder / "other.db") as other:
        other.execute("create table songs (name)")
    assert argus("status", "--ledger", "other.db").code == 5


def test_storage_upgrade_of_the_newest_does_nothing(argus: Argus, study: Path) -> None:
    facts = argus("storage", "upgrade", "--format", "json").json
    assert facts["from"] == facts["to"]
    assert facts["backup"] is None
    assert "nothing to do" in argus("storage", "upgrade").err


def test_no_command_here_loads_torch(study: Path) -> None:
    import subprocess
    import sys

    script = (
        "import sys\nfrom argus_bed.cli import app\n"
        "try: app(['status'])\nexcept SystemExit as end: assert not end.code\n"
        "print([m for m in ('torch', 'arviz', 'botorch') if m in sys.modules], file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == "[]"
