"""The ledger: studies, their append-only events, and leases on runs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL

from argus_bed.errors import StorageError, UnknownName, UsageError
from argus_bed.ledger import engine as connections
from argus_bed.ledger import leases, migrate, place, rows
from argus_bed.ledger.codec import dumps, loads
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
from argus_bed.study.records import Proposal, Run

TIMEOUT_S = 20.0
_PAGE = 1000


class Ledger:
    """An open ledger. Safe to use from several threads, processes and forks.

    Every method either completes in one transaction or leaves no trace, and raises
    `StorageError` with what would work. Make one with `Ledger.open`.
    """

    def __init__(self, url: URL, timeout_s: float = TIMEOUT_S) -> None:
        self.url = url
        self.timeout_s = timeout_s
        self._engine = connections.connect(url, timeout_s)
        self._pid = os.getpid()
        self._current = False
        # Threads share one in-memory connection; elsewhere SQLite would queue them anyway.
        self._lock = threading.RLock()

    # -- opening -------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        url_or_path: str | os.PathLike[str],
        *,
        create: bool = True,
        timeout_s: float = TIMEOUT_S,
    ) -> Ledger:
        """Open a ledger, and make it if it is not there.

        An older schema opens and says what to do at its first use; `upgrade` brings it up.

        Parameters
        ----------
        url_or_path : a SQLAlchemy URL, or the path of a SQLite file.
        create : make the file, its folder and the tables where they are missing.
        timeout_s : how long to wait for another process's transaction.

        Raises
        ------
        StorageError : no such file and not ``create``; a folder that cannot be written;
            no space; not a database, or another program's; a newer schema; locked.
        """
        url = connections.parse_url(url_or_path)
        if url.get_backend_name() == "sqlite" and url.database:
            _prepare_file(Path(url.database), create)
        ledger = cls(url, timeout_s)
        try:
            ledger._check_or_create(create)
        except BaseException:
            ledger.close()
            raise
        return ledger

    def _check_or_create(self, create: bool) -> None:
        if self.url.get_backend_name() == "sqlite" and self.url.database:
            self._use_wal()
        with self._transaction() as connection:
            found = migrate.version(connection)
            strangers = (
                set() if found else set(sa.inspect(connection).get_table_names())
            )
        where = connections.shown(self.url)
        if strangers and self.url.get_backend_name() == "sqlite":
            raise StorageError(
                f"{where} is a database of another program (tables {sorted(strangers)[:5]}); "
                "choose another path"
            )
        if found is None:
            if not create:
                raise StorageError(
                    f"{where} holds no ledger; create one with `argus-bed init`"
                )
            self.upgrade()
        elif found not in migrate.known():
            raise StorageError(
                f"{where} has schema {found}; this argus-bed reads up to {migrate.head()}. "
                "Upgrade argus-bed: `uv pip install -U argus-bed`"
            )
        self._current = self.version == migrate.head()

    def _use_wal(self) -> None:
        """Readers then never wait for the writer. The mode stays with the file."""
        deadline = time.monotonic() + self.timeout_s
        while True:
            try:
                with (
                    connections.in_plain_words(self.url, self.timeout_s),
                    self._engine.connect() as connection,
                ):
                    raw = connection.connection.cursor()
                    if raw.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                        raw.execute("PRAGMA journal_mode = WAL")
                return
            except StorageError as error:
                # SQLite does not wait by itself when two processes change the mode at once
                locked = "locked by another process" in str(error)
                if not locked or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    @property
    def version(self) -> str | None:
        """Schema version of the database."""
        with self._transaction() as connection:
            return migrate.version(connection)

    def upgrade(self) -> Path | None:
        """Migrate to the schema of this argus-bed; nothing to do is fine.

        Returns
        -------
        The copy that was made of an older SQLite ledger, beside it; None if none was needed.
        """
        before = self.version
        if before == migrate.head():
            self._current = True
            return None
        backup = self._back_up(before) if before else None
        with self._transaction(write=True) as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(4702641)"))
            if (
                migrate.version(connection) != migrate.head()
            ):  # or another process just did it
                migrate.upgrade(connection)
        self._current = True
        return backup

    def _back_up(self, version: str) -> Path | None:
        if self.url.get_backend_name() != "sqlite" or not self.url.database:
            return None
        backup = Path(f"{self.url.database}.schema-{version}.bak")
        if not backup.exists():
            with (
                connections.in_plain_words(self.url, self.timeout_s),
                self._engine.connect() as connection,
            ):
                connection.connection.cursor().execute("VACUUM INTO ?", (str(backup),))
        return backup

    def close(self) -> None:
        """Close the connections. The ledger can still be used; it then opens new ones."""
        self._engine.dispose()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Ledger {connections.shown(self.url)}>"

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
            row = connection.execute(
                sa.select(studies).where(studies.c.name == name)
            ).one_or_none()
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
            (kind, dumps(rows.checked(kind, payload, key)), key)
            for kind, payload, key in batch
        ]
        with self._writing() as connection:
            rows.lock_study(connection, study)
            return tuple(rows.insert(connection, study, *entry) for entry in texts)

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
            rows.insert(
                connection,
                study,
                Kind.PROPOSED,
                dumps(numbered),
                number_key(numbered.run),
            )
        return numbered

    def tell(self, study: int, run: Run) -> Run:
        """Store something read elsewhere under the next free run number."""
        with self._writing() as connection:
            rows.lock_study(connection, study)
            numbered = replace(run, number=rows.next_run(connection, study))
            rows.insert(
                connection,
                study,
                Kind.TOLD,
                dumps(numbered),
                number_key(numbered.number),
            )
        return numbered

    def claim(
        self, study: int, run: int, *, lease_s: float = DEFAULT_LEASE_S
    ) -> Lease | None:
        """Take the right to run a proposal; None if a living process has it.

        Writes a ``started`` event. A run whose process died is free at once on the same
        machine, and after ``lease_s`` without `heartbeat` on another.

        Raises
        ------
        UnknownName : no such run was proposed.
        UsageError : the run has ended.
        """
        with self._writing() as connection:
            rows.lock_study(connection, study)
            if rows.by_key(connection, study, number_key(run)) is None:
                known = range(1, rows.next_run(connection, study))
                raise UnknownName("run", str(run), map(str, known))
            if rows.by_key(connection, study, end_key(run)) is not None:
                raise UsageError(f"run {run} has ended; propose a new one")
            attempt = 1 + rows.attempts(connection, study, run)
            lease = leases.take(connection, study, run, attempt, lease_s)
            if lease is not None:
                text = dumps(
                    {"run": run, "attempt": attempt, "place": place.here().where}
                )
                rows.insert(
                    connection, study, Kind.STARTED, text, f"start:{run}:{attempt}"
                )
        return lease

    def heartbeat(self, lease: Lease) -> None:
        """Say that the run goes on. Raises `StorageError` if the lease was lost."""
        with self._writing() as connection:
            leases.extend(connection, lease)

    def release(self, lease: Lease) -> None:
        """Give up without a result; the run is stale and can be claimed again."""
        with self._writing() as connection:
            leases.drop(connection, lease)

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
                f"run {run.number} in state {run.state.value!r} cannot end run {lease.run}: it takes the "
                f"same number and one of {sorted(s.value for s in END_KIND)}"
            )
        text = dumps(replace(run, proposal=None))  # stored once, before the outcome
        with self._writing() as connection:
            rows.lock_study(connection, lease.study)
            if not leases.holds(connection, lease):
                leases.extend(connection, lease)  # raises, with the reason
            event = rows.insert(
                connection, lease.study, kind, text, end_key(run.number)
            )
            leases.drop(connection, lease)
        return event

    def live(self, study: int) -> frozenset[int]:
        """Numbers of the runs that some living process holds."""
        with self._reading() as connection:
            return leases.live_runs(connection, study)

    def history(self, study: int) -> StudyHistory:
        """The fold of a study's events, with what is running now."""
        # One snapshot: between two, a run that starts or ends would look stale.
        with self._transaction() as connection:
            self._require_current()
            return fold(
                rows.all_events(connection, study), leases.live_runs(connection, study)
            )

    # -- transactions ----------------------------------------------------------------

    def _require_current(self) -> None:
        if not self._current:
            raise StorageError(
                f"{connections.shown(self.url)} has schema {self.version}, and this argus-bed writes "
                f"{migrate.head()}: run `argus-bed storage upgrade` (a copy is kept)"
            )

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        self._require_current()
        with self._transaction(write=True) as connection:
            yield connection

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        self._require_current()
        with self._transaction() as connection:
            yield connection

    @contextmanager
    def _transaction(self, *, write: bool = False) -> Iterator[sa.Connection]:
        self._after_fork()
        with self._lock, connections.in_plain_words(self.url, self.timeout_s):
            with self._engine.connect() as connection:
                if write:
                    connection = connection.execution_options(**connections.WRITE)
                elif connection.dialect.name == "postgresql":
                    connection = connection.execution_options(
                        isolation_level="REPEATABLE READ"
                    )
                with connection.begin():
                    yield connection

    def _after_fork(self) -> None:
        """SQLite connections and sockets must not be shared with the parent."""
        if os.getpid() != self._pid:
            self._engine.dispose(close=False)
            self._lock = threading.RLock()
            self._pid = os.getpid()


def _prepare_file(path: Path, create: bool) -> None:
    if path.exists():
        return
    if not create:
        raise StorageError(f"no ledger at {path}; create one with `argus-bed init`")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"the folder {path.parent} cannot be made ({error.strerror}); choose a writable folder"
        ) from error
