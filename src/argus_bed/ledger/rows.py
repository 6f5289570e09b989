"""Rows of the ledger, read and written within an open transaction."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from argus_bed.errors import StorageError, UsageError
from argus_bed.ledger import place
from argus_bed.ledger.codec import loads
from argus_bed.ledger.history import NUMBERED
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
        raise UsageError(f"study {study}: no study has this id; create one with `argus-bed init`")


def insert(connection: sa.Connection, study: int, kind: str, text: str, key: str | None) -> Event:
    """Append one event whose payload is the JSON ``text``, or return the one with its key."""
    if key is not None and (first := by_key(connection, study, key)) is not None:
        if (first.kind, first.payload) != (str(kind), text):
            raise KeyConflict(
                f"key {key!r} of study {study} was used for {first.kind} {_short(first.payload)}; "
                f"{kind} {_short(text)} differs and was not written. Use another key, or None"
            )
        return event(first)
    me = place.here()
    seq = last_seq(connection, study) + 1
    now = time.time()
    connection.execute(
        sa.insert(events).values(
            study_id=study, seq=seq, kind=str(kind), key=key, payload=text,
            created_at=now, host=me.host, pid=me.pid,
        )
    )  # fmt: skip
    return Event(study, seq, str(kind), loads(text), key, now, me.host, me.pid)


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def event(row: sa.Row[Any]) -> Event:
    """A row as an event."""
    return Event(
        row.study_id,
        row.seq,
        row.kind,
        loads(row.payload),
        row.key,
        row.created_at,
        row.host,
        row.pid,
    )


def by_key(connection: sa.Connection, study: int, key: str) -> sa.Row[Any] | None:
    """The event with this idempotency key, if there is one."""
    return connection.execute(
        sa.select(events).where(events.c.study_id == study, events.c.key == key)
    ).one_or_none()


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


def attempts(connection: sa.Connection, study: int, run: int) -> int:
    """How often a run was started."""
    count = 0
    while by_key(connection, study, f"start:{run}:{count + 1}") is not None:
        count += 1
    return count


def page(connection: sa.Connection, study: int, after: int, size: int) -> list[Event]:
    """Up to ``size`` events with a sequence number above ``after``."""
    found = connection.execute(
        sa.select(events)
        .where(events.c.study_id == study, events.c.seq > after)
        .order_by(events.c.seq)
        .limit(size)
    ).all()
    return [event(row) for row in found]


def all_events(connection: sa.Connection, study: int, size: int = 1000) -> Iterator[Event]:
    """Every event of a study, in order, read within the transaction."""
    after = 0
    while found := page(connection, study, after, size):
        yield from found
        after = found[-1].seq
