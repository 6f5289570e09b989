from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_bed.errors import StorageError
from argus_bed.ledger import Event, Kind, Ledger, StudyHistory, fold, to_plain
from argus_bed.records import Proposal, Run, RunState, Status, Verdict


def event(seq: int, kind: str, payload: Any, key: str | None = None) -> Event:
    return Event(1, seq, kind, payload, key, 0.0, "host", 1)


def _proposal(run: int, reason: str = "r") -> Any:
    return to_plain(
        Proposal(run, "p", "p", {}, ("candidate",), "q", 0.5, 0.0, 1.0, 0.0, 0.5, reason)
    )


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    """A log as the ledger writes it: numbered, keyed, some runs ended, some not."""
    entries: list[tuple[str, Any, str | None]] = []
    for run in range(1, draw(st.integers(1, 6)) + 1):
        if draw(st.booleans()):
            told = to_plain(Run(run, RunState.DONE, None, source="told"))
            entries.append((Kind.TOLD, told, f"run:{run}"))
            continue
        entries.append((Kind.PROPOSED, _proposal(run), f"run:{run}"))
        for attempt in range(1, draw(st.integers(0, 2)) + 1):
            entries.append((Kind.STARTED, {"run": run}, f"start:{run}:{attempt}"))
        kind, state = draw(
            st.sampled_from(
                [(Kind.OBSERVED, RunState.DONE), (Kind.FAILED, RunState.FAILED), (None, None)]
            )
        )
        if kind:
            entries.append((kind, to_plain(Run(run, state, None)), f"end:{run}"))
        if draw(st.booleans()):
            entries.append((Kind.NOTE, {"run": run}, None))
    return [event(i, *entry) for i, entry in enumerate(entries, 1)]


def meaning(history: StudyHistory) -> StudyHistory:
    """The history without sequence numbers, which repeats shift."""
    return replace(
        history,
        last_seq=0,
        steps=tuple((0, k) for _, k in history.steps),
        events=tuple((0, k, p) for _, k, p in history.events),
    )


@given(logs(), st.data())
def test_repeats_of_a_key_change_nothing(log: list[Event], data: st.DataObject) -> None:
    repeated: list[Event] = []
    for i, original in enumerate(log):
        repeated.append(original)
        keyed = [e for e in log[: i + 1] if e.key]
        if keyed:
            repeated += data.draw(st.lists(st.sampled_from(keyed), max_size=2))
    renumbered = [replace(e, seq=i) for i, e in enumerate(repeated, 1)]
    assert meaning(fold(renumbered)) == meaning(fold(log))
    assert fold(repeated) == fold(log)  # and so do repeats of a number


@given(logs())
def test_every_number_is_taken_once_and_every_run_has_one_state(log: list[Event]) -> None:
    history = fold(log)
    assert sorted(history.runs) == list(range(1, history.next_run))
    assert {r.number for r in history.ended} | {p.run for p in history.pending} == set(history.runs)
    for number in history.stale:
        assert history.attempts[number] >= 1


@given(logs())
def test_a_log_can_be_read_in_two_sittings(log: list[Event]) -> None:
    assert fold(iter(log)) == fold(tuple(log))


def test_states_of_runs() -> None:
    log = [
        event(1, Kind.PROPOSED, _proposal(1), "run:1"),
        event(2, Kind.PROPOSED, _proposal(2), "run:2"),
        event(3, Kind.STARTED, {"run": 1}),
        event(4, Kind.STARTED, {"run": 2}),
        event(5, Kind.PROPOSED, _proposal(3), "run:3"),
        event(6, Kind.APPROVED, {"run": 3, "by": "ann"}),
    ]
    history = fold(log, live={2})
    states = {n: r.state for n, r in history.runs.items()}
    assert states == {1: RunState.STALE, 2: RunState.RUNNING, 3: RunState.PROPOSED}
    assert [p.run for p in history.pending] == [1, 3]
    assert history.approvals[3]["by"] == "ann"
    assert history.next_run == 4


def test_the_last_verdict_stands() -> None:
    def verdict(status: Status) -> Any:
        return to_plain(Verdict(status, (), 0.5, (), "", (), (), (), ""))

    log = [
        event(1, Kind.VERDICT, verdict(Status.OPEN)),
        event(2, Kind.VERDICT, verdict(Status.DECIDED)),
    ]
    found = fold(log).verdict
    assert found is not None
    assert found.status is Status.DECIDED


def test_an_event_about_no_run_is_named() -> None:
    with pytest.raises(StorageError, match="event 1"):
        fold([event(1, Kind.STARTED, {"run": "one"})])


@pytest.mark.promise("A40")
def test_a_whole_round_is_logged_in_order_and_resumable(
    ledger: Ledger, study: int, proposal: Proposal, path: Any
) -> None:
    ledger.tell(study, Run(0, RunState.DONE, None, source="told"))
    ledger.append(study, Kind.HYPOTHESIZED, {"gil_held": 0.2}, key="hypotheses")
    run = ledger.propose(study, proposal).run
    lease = ledger.claim(study, run)
    assert lease is not None
    ledger.finish(lease, Run(run, RunState.DONE, None))
    for kind in (Kind.REDESIGNED, Kind.VALIDATED, Kind.LEARNED):
        ledger.append(study, kind, {"run": run})
        with Ledger.open(path) as resumed:  # another process would see the same
            assert resumed.history(study) == ledger.history(study)
    assert [kind for _, kind in ledger.history(study).steps] == [
        "told",
        "hypothesized",
        "proposed",
        "started",
        "observed",
        "redesigned",
        "validated",
        "learned",
    ]


def test_a_failed_run_keeps_its_price_for_the_price_model(
    ledger: Ledger, study: int, proposal: Proposal
) -> None:
    run = ledger.propose(study, proposal).run
    lease = ledger.claim(study, run)
    assert lease is not None
    ledger.finish(lease, Run(run, RunState.FAILED, None, seconds=31.0, error="timed out"))
    (failed,) = ledger.history(study).ended
    assert (failed.state, failed.seconds, failed.error) == (RunState.FAILED, 31.0, "timed out")
    assert failed.proposal is not None
    assert failed.proposal.price_s == 8.0
