"""The ledger: studies, their append-only events, and leases on runs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from argus_bed.errors import StorageError, UnknownName, UsageError
from argus_bed.ledger import leases, place, rows
from argus_bed.ledger.codec import dumps, loads
from argus_bed.ledger.database import Database
from argus_bed.ledger.history import (
    END_KIND,
    Kind,
    StudyHistory,
    end_key,
    fold,
    number_key,
)
from argus_bed.ledger.leases import DEFAULT_LEASE_S, Lease
from argus_bed.ledger.rows import Event, StudyRow
from argus_bed.ledger.tables import studies
from argus_bed.records import Proposal, Run

_PAGE = 1000


class Ledger(Database):
    """An open ledger. Make one with `Ledger.open`.

    Every method either completes in one transaction or leaves no trace, and raises
    `StorageError` with what would work. Safe to use from several threads, processes
    and forks.
    """

    # -- studies -------------------------------------------------------------------

    def create_study(self, name: str, spec: Mapping[str, Any]) -> int:
        """Create a study and return its id; the same name and spec again return the same id.

        Raises
        ------
        UsageError : the name is blank, too long or unprintable, or taken by another spec.
        """
        if not name.strip() or len(name) > 200 or not name.isprintable():
            raise UsageError(f"study name {name[:60]!r}: 1 to 200 printable characters")
        text = dumps(dict(spec))
        with self._writing() as connection:
            row = connection.execute(sa.select(studies).where(studies.c.name == name)).one_or_none()
            if row is not None:
                if row.spec != text:
                    raise UsageError(
                        f"a study named {name!r} exists with other settings; choose another name"
                    )
                return int(row.id)
            found = connection.execute(
                sa.insert(studies)
                .values(name=name, created_at=time.time(), spec=text)
                .returning(studies.c.id)
            ).scalar_one()
            return int(found)

    def study(self, name: str) -> StudyRow:
        """The study called ``name``. Raises `UnknownName` with the nearest one."""
        found = {s.name: s for s in self.studies()}
        if name not in found:
            raise UnknownName("study", name, found)
        return found[name]

    def studies(self) -> tuple[StudyRow, ...]:
        """Every study, oldest first."""
        with self._reading() as connection:
            found = connection.execute(sa.select(studies).order_by(studies.c.id)).all()
        return tuple(StudyRow(r.id, r.name, r.created_at, loads(r.spec)) for r in found)

    # -- events --------------------------------------------------------------------

    def append(
        self,
        study: int,
        kind: str,
        payload: Mapping[str, Any],
        *,
        key: str | None = None,
    ) -> Event:
        """Add one event; once this returns it survives a kill and a power cut.

        Parameters
        ----------
        key : makes the event idempotent. If the study has an event with this key, of the
            same kind and payload, that one is returned and nothing is written.

        Raises
        ------
        ValueRejected : the payload holds NaN, infinity or something that JSON has no word for.
        KeyConflict : the key was used for something else.
        """
        return self.extend(study, [(kind, payload, key)])[0]

    def extend(
        self, study: int, batch: Iterable[tuple[str, Mapping[str, Any], str | None]]
    ) -> tuple[Event, ...]:
        """Append (kind, payload, key) each, all of them or none. Raises as `append` does."""
        texts = [
            (kind, dumps(rows.checked(kind, payload, key)), key) for kind, payload, key in batch
        ]
        with self._writing() as connection:
            rows.lock_study(connection, study)
            return rows.insert(connection, study, texts)

    def events(self, study: int, after: int = 0) -> Iterator[Event]:
        """Events with a sequence number above ``after``, in order."""
        while True:
            with self._reading() as connection:
                found = rows.page(connection, study, after, _PAGE)
            yield from found
            if len(found) < _PAGE:
                return
            after = found[-1].seq

    def count(self, study: int) -> int:
        """How many events a study has."""
        with self._reading() as connection:
            return rows.last_seq(connection, study)

    # -- runs ----------------------------------------------------------------------

    def propose(self, study: int, proposal: Proposal) -> Proposal:
        """Store a proposal under the next free run number, before it runs."""
        with self._writing() as connection:
            rows.lock_study(connection, study)
            numbered = replace(proposal, run=rows.next_run(connection, study))
            entry = (Kind.PROPOSED, dumps(numbered), number_key(numbered.run))
            rows.insert(connection, study, [entry])
        return numbered

    def tell(self, study: int, run: Run, *, key: str | None = None) -> Run:
        """Store something read elsewhere under the next free run number.

        Parameters
        ----------
        key : makes it idempotent, as in `append`: what was told under a key before keeps
            its number and is returned.

        Raises
        ------
        KeyConflict : another reading was told under this key.
        """
        if key is not None:
            rows.checked(Kind.TOLD, {}, key)
        with self._writing() as connection:
            rows.lock_study(connection, study)
            first = None if key is None else rows.with_key(connection, study, key)
            number = rows.next_run(connection, study)
            if first is not None and first.kind == Kind.TOLD:
                number = int(first.payload["number"])  # if all else agrees, it is a repeat
            numbered = replace(run, number=number)
            rows.insert(
                connection, study, [(Kind.TOLD, dumps(numbered), key or number_key(number))]
            )
        return numbered

    def claim(self, study: int, run: int, *, lease_s: float = DEFAULT_LEASE_S) -> Lease | None:
        """Take the right to run a proposal; None if a living process has it.

        Writes a ``started`` event. A run whose process died is free at once on the same
        machine, and after ``lease_s`` without `heartbeat` on another.

        Raises
        ------
        UsageError : no run of this number was proposed (told ones never are), or it has ended.
        """
        with self._writing() as connection:
            rows.lock_study(connection, study)
            first = rows.with_key(connection, study, number_key(run))
            if first is None or first.kind != Kind.PROPOSED:
                raise UsageError(_never_proposed(run, first, rows.proposed(connection, study)))
            if rows.with_key(connection, study, end_key(run)) is not None:
                raise UsageError(f"run {run} has ended; propose a new one")
            attempt = 1 + rows.attempts(connection, study, run)
            lease = leases.take(connection, study, run, attempt, lease_s)
            if lease is not None:
                text = dumps({"run": run, "attempt": attempt, "place": place.here().where})
                key = f"start:{run}:{attempt}"
                rows.insert(connection, study, [(Kind.STARTED, text, key)])
        return lease

    def heartbeat(self, lease: Lease) -> None:
        """Say that the run goes on. Raises `StorageError` if the lease was lost."""
        with self._writing() as connection:
            leases.extend(connection, lease)

    def release(self, lease: Lease) -> None:
        """Give up without a result; the run is stale and can be claimed again."""
        with self._writing() as connection:
            leases.drop(connection, lease)

    @contextmanager
    def working(self, study: int, run: int) -> Iterator[Lease]:
        """The lease of a run for the block that ends it; offered again if the block raises.

        Raises
        ------
        UsageError : another process has it. Else as `claim`.
        """
        lease = self.claim(study, run)
        if lease is None:
            raise UsageError(f"run {run} is being run by another process; wait for it")
        try:
            yield lease
        except BaseException:
            # what went wrong first is what a person must hear; a lease that cannot be
            # given back either ends with this process
            with suppress(StorageError):
                self.release(lease)
            raise

    def finish(self, lease: Lease, run: Run) -> Event:
        """Write the run's one end and give the lease back, together.

        Raises
        ------
        StorageError : another process took the run over meanwhile.
        UsageError : ``run`` has another number, or is not done, failed or void.
        """
        kind = END_KIND.get(run.state)
        if run.number != lease.run or kind is None:
            raise UsageError(
                f"run {run.number} in state {run.state.value!r} cannot end run {lease.run}: "
                f"it takes the same number and one of {sorted(s.value for s in END_KIND)}"
            )
        text = dumps(replace(run, proposal=None))  # stored once, before the outcome
        with self._writing() as connection:
            rows.lock_study(connection, lease.study)
            if not leases.holds(connection, lease):
                leases.extend(connection, lease)  # raises, with the reason
            entry = (kind, text, end_key(run.number))
            (event,) = rows.insert(connection, lease.study, [entry])
            leases.drop(connection, lease)
        return event

    def live(self, study: int) -> frozenset[int]:
        """Numbers of the runs that some living process holds."""
        with self._reading() as connection:
            return leases.live_runs(connection, study)

    def history(self, study: int) -> StudyHistory:
        """The fold of a study's events, with what is running now."""
        # One snapshot: between two, a run that starts or ends would look stale.
        with self._reading() as connection:
            return fold(rows.all_events(connection, study), leases.live_runs(connection, study))


def _never_proposed(run: int, event: Event | None, proposed: Sequence[int]) -> str:
    was = "was never proposed" if event is None else f"was {event.kind}, never proposed"
    known = ", ".join(map(str, proposed[-12:]))
    more = "..., " if len(proposed) > 12 else ""
    return f"run {run} {was}; " + (
        f"proposed: {more}{known}" if known else "no run is proposed yet"
    )
