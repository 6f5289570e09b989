"""Who works on which run: taken in one transaction, so that two processes never share one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from argus_bed.errors import StorageError
from argus_bed.ledger import place
from argus_bed.ledger.tables import leases

DEFAULT_LEASE_S = 120.0
"""Counts only for a process that cannot be looked up from here, on another machine."""


@dataclass(frozen=True)
class Lease:
    """The right to run one proposal, until it is finished or released."""

    study: int
    run: int
    token: str
    attempt: int
    lease_s: float


def _match(study: int, run: int) -> sa.ColumnElement[bool]:
    return sa.and_(leases.c.study_id == study, leases.c.run == run)


def is_live(row: sa.Row[Any], now: float) -> bool:
    """Whether the holder still works on it.

    A process on this machine is asked for by pid and birth, so a dead one frees its run
    at once and a slow one keeps it. One elsewhere is trusted until its lease expires.
    """
    living = place.alive(row.place, row.pid, row.born)
    return row.expires_at > now if living is None else living


def take(
    connection: sa.Connection, study: int, run: int, attempt: int, lease_s: float
) -> Lease | None:
    """Take the lease of a run, or None if a living process holds it."""
    now = time.time()
    row = connection.execute(sa.select(leases).where(_match(study, run))).one_or_none()
    if row is not None:
        if is_live(row, now):
            return None
        connection.execute(sa.delete(leases).where(_match(study, run)))
    me = place.here()
    token = uuid4().hex
    connection.execute(
        sa.insert(leases).values(
            study_id=study, run=run, token=token, attempt=attempt, place=me.where,
            pid=me.pid, born=me.born, expires_at=now + lease_s,
        )
    )  # fmt: skip
    return Lease(study, run, token, attempt, lease_s)


def holds(connection: sa.Connection, lease: Lease) -> bool:
    """Whether the lease is still this one's."""
    found = connection.execute(
        sa.select(leases.c.token).where(_match(lease.study, lease.run))
    ).scalar_one_or_none()
    return found == lease.token


def extend(connection: sa.Connection, lease: Lease) -> None:
    """Move the expiry. Raises `StorageError` if the lease went to someone else."""
    if not holds(connection, lease):
        raise StorageError(
            f"run {lease.run} is no longer this process's: its lease of {lease.lease_s:g} s ended "
            "and another process took the run. Stop; the other one's reading counts"
        )
    connection.execute(
        sa.update(leases)
        .where(_match(lease.study, lease.run))
        .values(expires_at=time.time() + lease.lease_s)
    )


def drop(connection: sa.Connection, lease: Lease) -> None:
    """Give the lease back."""
    connection.execute(
        sa.delete(leases).where(_match(lease.study, lease.run), leases.c.token == lease.token)
    )


def live_runs(connection: sa.Connection, study: int) -> frozenset[int]:
    """Runs of a study that some living process holds."""
    now = time.time()
    rows: Sequence[sa.Row[Any]] = connection.execute(
        sa.select(leases).where(leases.c.study_id == study)
    ).all()
    return frozenset(row.run for row in rows if is_live(row, now))
