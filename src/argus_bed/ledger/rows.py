"""Rows of the ledger, read and written within an open transaction."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from argus_bed.errors import StorageError, UsageError
from argus_bed.ledger import place
from argus_bed.ledger.codec import loads
from argus_bed.ledger.history import NUMBERED, Kind
from argus_bed.ledger.tables import events, studies


class KeyConflict(StorageError):
    """An idempotency key was used before, for something else. Nothing was written."""


@dataclass(frozen=True)
class Event:
    """One thing that happened in a study. Never changes once written."""

    study: int
    seq: int
    kind: str
    payload: Mapping[str, Any]
    key: str | None
    created_at: float
    host: str
    pid: int


@dataclass(frozen=True)
class StudyRow:
    """A study as it was created."""

    id: int
    name: str
    created_at: float
    spec: Mapping[str, Any]


def checked(kind: str, payload: Mapping[str, Any], key: str | None) -> dict[str, Any]:
    """The payload, if kind and key fit their columns."""
    for what, text, most in (("kind", kind, 40), ("key", key, 200)):
        if text is not None and not (0 < len(text) <= most and text.isprintable()):
            raise UsageError(f"event {what} {text[:60]!r}: 1 to {most} printable characters")
    return dict(payload)


def lock_study(connection: sa.Connection, study: int) -> None:
    """Keep other writers of this study out until the transaction ends."""
    # SQLite holds the whole database by BEGIN IMMEDIATE and ignores FOR UPDATE
    found = connection.execute(
        sa.select(studies.c.id).where(studies.c.id == study).with_for_update()
    ).scalar_one_or_none()
    if found is None:
        raise UsageError(f"study {study}: no study has this id; `argus-bed run` starts one")


def insert(
    connection: sa.Connection, study: int, batch: Sequence[tuple[str, str, str | None]]
) -> tuple[Event, ...]:
    """Append (kind, JSON text, key) each; one whose key is known gives the event that has it.

    Raises
    ------
    KeyConflict : a key is known for another kind or text.
    """
    me, now = place.here(), time.time()
    seq = last_seq(connection, study)
    known = _by_keys(connection, study, [key for _, _, key in batch if key is not None])
    fresh: list[dict[str, Any]] = []
    found: list[Event] = []
    for kind, text, key in batch:
        first = None if key is None else known.get(key)
        if first is not None:
            _same(study, first, str(kind), text)
            found.append(_event(first))
            continue
        seq += 1
        row = {
            "study_id": study, "seq": seq, "kind": str(kind), "key": key, "payload": text,
            "created_at": now, "host": me.host, "pid": me.pid,
        }  # fmt: skip
        fresh.append(row)
        found.append(_event(row))
        if key is not None:
            known[key] = row
    if fresh:
        connection.execute(sa.insert(events), fresh)
    return tuple(found)


def _by_keys(
    connection: sa.Connection, study: int, keys: Sequence[str]
) -> dict[str, Mapping[str, Any]]:
    """Events that have one of these keys, as mappings, by key."""
    found: dict[str, Mapping[str, Any]] = {}
    for start in range(0, len(keys), 500):  # databases limit the parameters of a statement
        chunk = keys[start : start + 500]
        rows = connection.execute(
            sa.select(events).where(events.c.study_id == study, events.c.key.in_(chunk))
        )
        found.update({row["key"]: row for row in rows.mappings()})
    return found


def _same(study: int, first: Mapping[str, Any], kind: str, text: str) -> None:
    if (first["kind"], first["payload"]) != (kind, text):
        raise KeyConflict(
            f"key {first['key']!r} of study {study} was used for {first['kind']} "
            f"{_short(first['payload'])}; {kind} {_short(text)} differs and was not written. "
            "Use another key, or None"
        )


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def _event(row: Mapping[str, Any]) -> Event:
    return Event(
        row["study_id"], row["seq"], row["kind"], loads(row["payload"]), row["key"],
        row["created_at"], row["host"], row["pid"],
    )  # fmt: skip


def with_key(connection: sa.Connection, study: int, key: str) -> Event | None:
    """The event with this idempotency key, if there is one."""
    row = _by_keys(connection, study, [key]).get(key)
    return None if row is None else _event(row)


def last_seq(connection: sa.Connection, study: int) -> int:
    """Sequence number of a study's last event, which is also their count; 0 if none."""
    found = connection.execute(
        sa.select(sa.func.max(events.c.seq)).where(events.c.study_id == study)
    ).scalar_one()
    return int(found or 0)


def next_run(connection: sa.Connection, study: int) -> int:
    """The lowest run number that nothing has taken."""
    taken = connection.execute(
        sa.select(sa.func.count())
        .select_from(events)
        .where(events.c.study_id == study, events.c.kind.in_([str(k) for k in NUMBERED]))
    ).scalar_one()
    return int(taken) + 1


def proposed(connection: sa.Connection, study: int) -> list[int]:
    """Numbers of the runs that were proposed, in order."""
    found = connection.execute(
        sa.select(events.c.key)
        .where(events.c.study_id == study, events.c.kind == str(Kind.PROPOSED))
        .order_by(events.c.seq)
    ).scalars()
    return [int(key.removeprefix("run:")) for key in found if key and key.startswith("run:")]


def attempts(connection: sa.Connection, study: int, run: int) -> int:
    """How often a run was started."""
    count = 0
    while with_key(connection, study, f"start:{run}:{count + 1}") is not None:
        count += 1
    return count


def page(connection: sa.Connection, study: int, after: int, size: int) -> list[Event]:
    """Up to ``size`` events with a sequence number above ``after``."""
    found = connection.execute(
        sa.select(events)
        .where(events.c.study_id == study, events.c.seq > after)
        .order_by(events.c.seq)
        .limit(size)
    )
    return [_event(dict(row)) for row in found.mappings()]


def all_events(connection: sa.Connection, study: int, size: int = 1000) -> Iterator[Event]:
    """Every event of a study, in order, read within the transaction."""
    after = 0
    while found := page(connection, study, after, size):
        yield from found
        after = found[-1].seq
