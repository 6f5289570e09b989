"""Results measured by hand, and studies that more than one process works on."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from argus_bed.errors import UnitError, UnknownName, UsageError, ValueRejected
from argus_bed.frame import CANDIDATE, Cell
from argus_bed.records import RunState
from tests.study.small import CONFOUNDED, case, opened, without


@pytest.fixture(scope="module")
def study():
    """Two mechanisms that nothing but an intervention parts; told by hand here."""
    with opened(CONFOUNDED) as found:
        yield found


# -- told by hand ----------------------------------------------------------------------


def test_units_are_understood_and_both_arms_make_a_comparison(study):
    before = study.probabilities()
    first = study.tell({"step_time": ["100ms", "0.101 s", 0.0995]}, condition="baseline")
    assert [s["values"] for s in first.samples] == [pytest.approx([0.1, 0.101, 0.0995])]
    assert first.after == first.before  # one arm by itself says nothing about a cause
    second = study.tell({"step_time": ["125 ms", "124 ms", "126 ms"]}, condition="candidate")
    (reading,) = second.readings
    assert reading.used
    assert reading.value == pytest.approx(math.log(125 / 100), abs=1e-9)
    assert second.source == "told"
    assert second.after["no_effect"] < before["no_effect"] / 2
    assert (first.number, second.number) == (1, 2)


def test_what_no_probe_reads_makes_the_frame_grow(study):
    cell = Cell("gc_pause", CANDIDATE)
    assert cell not in study.frame.cell_index
    before = study.probabilities()
    study.tell({"gc_pause": ["0.1 ms"] * 4}, condition="baseline")
    run = study.tell({"gc_pause": ["25 ms"] * 4}, condition="candidate")
    assert cell in study.frame.cell_index
    assert run.before == pytest.approx(before, abs=0.03)  # same readings, particles drawn anew
    assert run.after["gc_pause"] > run.before["gc_pause"]
    assert run.after["gc_pause"] > 0.8


@pytest.mark.parametrize(
    ("values", "where", "error", "says"),
    [
        ({}, {}, ValueRejected, "nothing was told"),
        ({"step_time": []}, {}, ValueRejected, "step_time"),
        ({"step_time": [""]}, {}, UsageError, "step_time"),
        ({"step_time": [math.nan]}, {}, ValueRejected, "nan"),
        ({"step_time": ["inf"]}, {}, UsageError, "inf"),
        ({"step_time": [-1.0]}, {}, ValueRejected, "-1"),
        ({"step_time": ["3 kg"]}, {}, UnitError, "kg"),
        ({"step_time": ["12 parsecs"]}, {}, UnitError, "parsec"),
        ({"stpe_time": [1.0]}, {}, UnknownName, "step_time"),
        ({"overlap_fraction": [1.4]}, {}, ValueRejected, "1.4"),
        ({"step_time": [0.1]}, {"condition": "canddate"}, UnknownName, "candidate"),
        ({"stage_time": [0.1]}, {"stage": "nowhere"}, UnknownName, "nowhere"),
        ({"step_time": [0.1]}, {"run": 99}, UnknownName, "99"),
        ({"step_time": [0.1]}, {"run": 1}, UsageError, "1"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_stored(study, values, where, error, says):
    if not study.runs_dataframe().shape[0]:
        study.tell({"page_faults": [100]}, condition="baseline")
    events, belief = study._ledger.count(study._id), study.probabilities()
    with pytest.raises(error, match=says):
        study.tell(values, **{"condition": "baseline", **where})
    assert study._ledger.count(study._id) == events
    assert study.probabilities() == belief


@pytest.mark.parametrize("field", ["seconds", "perturbation"])
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -1.0])
def test_a_price_that_is_none_is_refused_and_nothing_is_learned(study, field, wrong):
    events, belief = study._ledger.count(study._id), study.probabilities()
    with pytest.raises(UsageError, match=field):
        study.tell({"step_time": [0.2, 0.21]}, condition="candidate", **{field: wrong})
    assert study._ledger.count(study._id) == events
    assert study.probabilities() == belief


def test_a_result_may_answer_a_proposal():
    found = without(case(CONFOUNDED), "page faults", "arms again", "call that lets go")
    with opened(found) as study:
        (proposal,) = study.ask()
        assert proposal.probe == "arms in turns"
        study.tell({"step_time": [0.1, 0.1]}, condition="baseline")
        run = study.tell(
            {"step_time": [0.125, 0.124]}, condition="candidate", run=proposal.run, seconds=9.0
        )
        assert run.number == proposal.run
        assert run.proposal == proposal
        assert run.price_s == 9.0
        assert study.why(proposal.run).source == "told"
        assert study.ask()[0].plan != proposal.plan


# -- opened again, and by several --------------------------------------------------------


def test_a_study_goes_on_where_it_stopped(tmp_path: Path):
    book = tmp_path / "ledger.db"
    with opened(CONFOUNDED, book) as study:
        study.run(max_runs=1)
        # grows the frame
        study.tell({"gc_pause": [0.0001]}, condition="baseline", seconds=1.0)
        study.tell({"gc_pause": [0.0002]}, condition="candidate", seconds=1.0)
        (waiting,) = study.ask()
        left, spent = study.probabilities(), study.spent_s
    with opened(CONFOUNDED, book) as again:
        assert again.probabilities() == pytest.approx(left, abs=1e-9)
        assert again.spent_s == spent
        assert again.ask() == [waiting]
        assert waiting.run == 4
        assert again.execute(waiting).state is RunState.DONE
        assert sorted(again._knows.runs) == [1, 2, 3, 4]


def test_two_studies_on_one_ledger_see_each_other(tmp_path: Path):
    book = tmp_path / "ledger.db"
    with opened(CONFOUNDED, book) as one, opened(CONFOUNDED, book) as other:
        (proposal,) = one.ask()
        assert other.ask() == [proposal]
        one.execute(proposal)
        with pytest.raises(UsageError, match="ended"):
            other.execute(proposal)
        (second,) = other.ask()
        assert second.run == 2
        assert other.probabilities() == pytest.approx(one.probabilities(), abs=1e-9)
        other.tell({"page_faults": [100, 99]}, condition="baseline")
        assert one.why(3).source == "told"
        assert one.spent_s == other.spent_s


def test_a_name_is_not_reused_for_another_question(tmp_path: Path):
    book = tmp_path / "ledger.db"
    with opened(CONFOUNDED, book):
        pass
    with pytest.raises(UsageError, match="other settings"):
        opened(CONFOUNDED, book, seed=1)


def test_a_kill_in_the_middle_of_a_run_loses_nothing_told(tmp_path: Path):
    book = tmp_path / "ledger.db"
    script = Path(__file__).with_name("small.py")
    victim = subprocess.Popen(
        [sys.executable, str(script), str(book)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(script.parents[2])},
    )
    try:
        said = victim.stdout.readline()
        if said.strip() != "hanging":
            pytest.fail(f"the victim did not get there: {victim.stderr.read()}")
    finally:
        victim.send_signal(signal.SIGKILL)
        victim.communicate()
    with opened(CONFOUNDED, book) as study:
        history = study._ledger.history(study._id)
        assert history.stale == (2,)
        (first,) = history.ended
        assert study.probabilities() == pytest.approx(dict(first.after), abs=1e-9)
        (offered,) = study.ask()
        assert offered == history.proposals[2]
        assert study.execute(offered).state is RunState.DONE
        after = study._ledger.history(study._id)
        assert after.stale == ()
        assert [r.number for r in after.ended] == [1, 2]
        assert after.attempts[2] == 2
