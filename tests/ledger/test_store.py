from __future__ import annotations

import math
import sqlite3
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from argus_bed.errors import StorageError, UnknownName, UsageError, ValueRejected
from argus_bed.ledger import KeyConflict, Kind, Ledger
from argus_bed.records import Proposal, Run, RunState


def test_events_come_back_in_order_and_numbered_from_one(ledger: Ledger, study: int) -> None:
    for i in range(5):
        ledger.append(study, Kind.NOTE, {"i": i})
    assert [(e.seq, e.payload["i"]) for e in ledger.events(study)] == [(i + 1, i) for i in range(5)]
    assert [e.seq for e in ledger.events(study, after=3)] == [4, 5]
    assert ledger.count(study) == 5


def test_pages_join_without_a_seam(ledger: Ledger, study: int) -> None:
    ledger.extend(study, [(Kind.NOTE, {"i": i}, None) for i in range(2001)])
    assert [e.payload["i"] for e in ledger.events(study)] == list(range(2001))


def test_each_study_has_its_own_numbers(ledger: Ledger, study: int) -> None:
    other = ledger.create_study("other", {})
    ledger.append(study, Kind.NOTE, {}, key="k")
    assert ledger.append(other, Kind.NOTE, {"x": 1}, key="k").seq == 1


def test_the_same_key_twice_is_one_event(ledger: Ledger, study: int) -> None:
    first = ledger.append(study, Kind.TOLD, {"b": 1, "a": [1.5]}, key="k")
    assert ledger.append(study, Kind.TOLD, {"a": [1.5], "b": 1}, key="k") == first
    assert ledger.count(study) == 1


def test_telling_again_under_a_key_is_one_run(ledger: Ledger, study: int) -> None:
    told = Run(0, RunState.DONE, None, source="told", price_s=2.0)
    assert ledger.tell(study, told, key="mail 7").number == 1
    assert ledger.tell(study, told).number == 2
    assert ledger.tell(study, told, key="mail 7").number == 1
    assert ledger.count(study) == 2
    with pytest.raises(KeyConflict, match="mail 7"):
        ledger.tell(study, replace(told, price_s=3.0), key="mail 7")
    ledger.append(study, Kind.NOTE, {}, key="note")
    with pytest.raises(KeyConflict, match="note"):
        ledger.tell(study, told, key="note")
    assert ledger.history(study).next_run == 3


def test_keys_repeat_within_a_batch_too(ledger: Ledger, study: int) -> None:
    batch = [(Kind.NOTE, {"i": i % 700}, f"k{i % 700}") for i in range(1500)]
    first = ledger.extend(study, batch)
    assert ledger.extend(study, batch) == first
    assert [e.seq for e in ledger.events(study)] == list(range(1, 701))
    with pytest.raises(KeyConflict):
        ledger.extend(study, [(Kind.NOTE, {"i": 1}, "new"), (Kind.NOTE, {"i": 2}, "new")])
    assert ledger.count(study) == 700


@pytest.mark.parametrize(("kind", "payload"), [(Kind.TOLD, {"b": 2}), (Kind.NOTE, {"b": 1})])
def test_a_key_means_one_thing(ledger: Ledger, study: int, kind: str, payload: dict) -> None:
    ledger.append(study, Kind.TOLD, {"b": 1}, key="k")
    with pytest.raises(KeyConflict, match="'k'"):
        ledger.append(study, kind, payload, key="k")
    assert ledger.count(study) == 1


def test_a_batch_is_all_or_nothing(ledger: Ledger, study: int) -> None:
    ledger.append(study, Kind.NOTE, {}, key="k")
    with pytest.raises(KeyConflict):
        ledger.extend(study, [(Kind.NOTE, {"i": 0}, None), (Kind.NOTE, {"i": 1}, "k")])
    assert ledger.count(study) == 1


def test_nan_leaves_no_trace(ledger: Ledger, study: int) -> None:
    with pytest.raises(ValueRejected, match="nan"):
        ledger.append(study, Kind.TOLD, {"value": math.nan})
    assert ledger.count(study) == 0


def test_the_same_study_again_is_the_same_study(ledger: Ledger, study: int) -> None:
    assert ledger.create_study("gil", {"metric": "step_time"}) == study
    with pytest.raises(UsageError, match="other settings"):
        ledger.create_study("gil", {"metric": "throughput"})
    assert ledger.study("gil").spec == {"metric": "step_time"}
    with pytest.raises(UnknownName, match="did you mean 'gil'"):
        ledger.study("gli")


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\x1b[31m", "x" * 201, "\ud800"])
def test_names_that_cannot_be_shown_are_refused(ledger: Ledger, name: str) -> None:
    with pytest.raises(UsageError):
        ledger.create_study(name, {})


def test_an_unknown_study_takes_no_events(ledger: Ledger) -> None:
    with pytest.raises(UsageError, match="study 7"):
        ledger.append(7, Kind.NOTE, {})


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET payload = '{}'",
        "DELETE FROM events",
        "INSERT OR REPLACE INTO events SELECT study_id, seq, 'x', key, '{}', 0, '', 0 FROM events",
        "REPLACE INTO events SELECT study_id, seq + 1, 'x', key, '{}', 0, '', 0 FROM events",
        "INSERT INTO events SELECT study_id, seq + 2, 'x', NULL, '{}', 0, '', 0 FROM events",
        "INSERT INTO events SELECT 99, 1, 'x', NULL, '{}', 0, '', 0 FROM events",
    ],
)
def test_the_database_itself_only_appends(
    ledger: Ledger, study: int, path: Path, statement: str
) -> None:
    ledger.append(study, Kind.NOTE, {"kept": True}, key="k")
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA foreign_keys = ON")
    with pytest.raises(sqlite3.IntegrityError):
        raw.execute(statement)
    raw.close()
    assert [e.payload for e in ledger.events(study)] == [{"kept": True}]


@pytest.mark.promise("A41")
def test_reason_prediction_and_gain_are_stored_before_the_run(
    ledger: Ledger, study: int, proposal: Proposal
) -> None:
    stored = ledger.propose(study, proposal)
    (event,) = ledger.events(study)
    assert event.payload["reason"] == proposal.reason
    assert event.payload["gain_bits"] == proposal.gain_bits
    assert event.payload["predictions"][0]["by_hypothesis"] == {"gil_held": [0.2, 0.1]}

    lease = ledger.claim(study, stored.run)
    assert lease is not None
    hindsight = replace(stored, reason="I knew it", gain_bits=9.0)
    ledger.finish(lease, Run(stored.run, RunState.DONE, hindsight))
    history = ledger.history(study)
    assert history.runs[1].proposal == stored  # what came with the outcome is not believed
    assert [kind for _, kind in history.steps] == ["proposed", "started", "observed"]


def test_a_run_cannot_start_without_a_proposal(ledger: Ledger, study: int) -> None:
    with pytest.raises(UsageError, match="run 1 was never proposed; no run is proposed yet"):
        ledger.claim(study, 1)


def test_only_what_was_proposed_can_be_claimed(
    ledger: Ledger, study: int, proposal: Proposal
) -> None:
    told = Run(0, RunState.DONE, None, source="told")
    assert ledger.propose(study, proposal).run == 1
    assert ledger.tell(study, told).number == 2
    assert ledger.tell(study, told, key="by hand").number == 3
    assert ledger.propose(study, proposal).run == 4
    before = ledger.count(study)
    for number, was in (
        (2, "was told, never"),
        (3, "was never"),
        (99, "was never"),
        (0, "was"),
        (-1, "was"),
    ):
        with pytest.raises(UsageError, match=f"run {number} {was}.*proposed: 1, 4"):
            ledger.claim(study, number)
    assert ledger.count(study) == before
    assert ledger.live(study) == frozenset()
    for _ in range(20):
        ledger.propose(study, proposal)
    with pytest.raises(UsageError, match=r"proposed: \.\.\., 13, .*24$"):
        ledger.claim(study, 99)


def test_one_run_has_one_holder_and_one_end(ledger: Ledger, study: int, proposal: Proposal) -> None:
    ledger.propose(study, proposal)
    lease = ledger.claim(study, 1)
    assert lease is not None
    assert ledger.claim(study, 1) is None
    assert ledger.live(study) == {1}
    ledger.heartbeat(lease)
    with pytest.raises(UsageError, match="cannot end"):
        ledger.finish(lease, Run(1, RunState.RUNNING, None))
    ledger.finish(lease, Run(1, RunState.DONE, None))
    with pytest.raises(StorageError, match="no longer"):
        ledger.finish(lease, Run(1, RunState.FAILED, None))
    with pytest.raises(UsageError, match="has ended"):
        ledger.claim(study, 1)
    assert ledger.history(study).runs[1].state is RunState.DONE


def test_a_released_run_is_stale_and_offered_again(
    ledger: Ledger, study: int, proposal: Proposal
) -> None:
    stored = ledger.propose(study, proposal)
    lease = ledger.claim(study, 1)
    assert lease is not None
    ledger.release(lease)
    history = ledger.history(study)
    assert history.stale == (1,)
    assert history.pending == (stored,)
    again = ledger.claim(study, 1)
    assert again is not None
    assert again.attempt == 2
    with pytest.raises(StorageError, match="no longer"):
        ledger.heartbeat(lease)


def test_a_holder_elsewhere_is_trusted_until_its_lease_expires(
    ledger: Ledger, study: int, proposal: Proposal, path: Path
) -> None:
    ledger.propose(study, proposal)
    assert ledger.claim(study, 1, lease_s=3600) is not None
    raw = sqlite3.connect(path)
    raw.execute("UPDATE leases SET place = 'another machine'")
    raw.commit()
    assert ledger.claim(study, 1) is None
    raw.execute("UPDATE leases SET expires_at = 1")
    raw.commit()
    raw.close()
    assert ledger.history(study).stale == (1,)
    assert ledger.claim(study, 1) is not None


def test_a_reused_pid_is_not_the_same_process(
    ledger: Ledger, study: int, proposal: Proposal, path: Path
) -> None:
    ledger.propose(study, proposal)
    assert ledger.claim(study, 1) is not None
    raw = sqlite3.connect(path)
    raw.execute("UPDATE leases SET born = born - 100")
    raw.commit()
    raw.close()
    assert ledger.live(study) == frozenset()


def test_threads_share_a_ledger(ledger: Ledger, study: int) -> None:
    def work(name: int) -> None:
        for i in range(20):
            ledger.append(study, Kind.NOTE, {"i": i}, key=f"{name}-{i}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [e.seq for e in ledger.events(study)] == list(range(1, 81))


def test_a_ledger_in_memory_works_the_same() -> None:
    with Ledger.open(":memory:") as ledger:
        study = ledger.create_study("x", {})
        assert ledger.tell(study, Run(0, RunState.DONE, None, source="told")).number == 1
        assert ledger.history(study).next_run == 2
