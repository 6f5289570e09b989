"""Opening a ledger: created, checked, upgraded; and the transactions that all else uses."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Self

import sqlalchemy as sa
from sqlalchemy.engine import URL

from argus_bed.errors import StorageError
from argus_bed.ledger import engine as connections
from argus_bed.ledger import migrate

TIMEOUT_S = 20.0


class Database:
    """A database at the schema of this package, and transactions on it.

    Safe to use from several threads, processes and forks.
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
    ) -> Self:
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
            strangers = set() if found else set(sa.inspect(connection).get_table_names())
        where = connections.shown(self.url)
        if strangers and self.url.get_backend_name() == "sqlite":
            raise StorageError(
                f"{where} is a database of another program (tables {sorted(strangers)[:5]}); "
                "choose another path"
            )
        if found is None:
            if not create:
                raise StorageError(f"{where} holds no ledger; `argus-bed run` starts one")
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
                with self._plain_words(), self._engine.connect() as connection:
                    raw = connection.connection.cursor()
                    if raw.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                        raw.execute("PRAGMA journal_mode = WAL")
                return
            except StorageError as error:
                # SQLite does not wait by itself when two processes change the mode at once
                if "is locked" not in str(error) or time.monotonic() > deadline:
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
            if migrate.version(connection) != migrate.head():  # or another process just did it
                migrate.upgrade(connection)
        self._current = True
        return backup

    def _back_up(self, version: str) -> Path | None:
        if self.url.get_backend_name() != "sqlite" or not self.url.database:
            return None
        backup = Path(f"{self.url.database}.schema-{version}.bak")
        if not backup.exists():
            with self._plain_words(), self._engine.connect() as connection:
                connection.connection.cursor().execute("VACUUM INTO ?", (str(backup),))
        return backup

    def close(self) -> None:
        """Close the connections. The ledger can still be used; it then opens new ones."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {connections.shown(self.url)}>"

    # -- transactions ----------------------------------------------------------------

    def _require_current(self) -> None:
        if not self._current:
            raise StorageError(
                f"{connections.shown(self.url)} has schema {self.version}; this argus-bed "
                f"writes {migrate.head()}: run `argus-bed storage upgrade` (a copy is kept)"
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
        with self._lock, self._plain_words(), self._engine.connect() as connection:
            options: dict[str, Any] = {}
            if write:
                options = connections.WRITE
            elif connection.dialect.name == "postgresql":
                options = {"isolation_level": "REPEATABLE READ"}
            with connection.execution_options(**options).begin():
                yield connection

    def _plain_words(self) -> AbstractContextManager[None]:
        return connections.in_plain_words(self.url, self.timeout_s)

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
        raise StorageError(f"no ledger at {path}; `argus-bed run` starts one")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"the folder {path.parent} cannot be made ({error.strerror}); choose a writable folder"
        ) from error
