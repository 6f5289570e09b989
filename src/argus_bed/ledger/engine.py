"""Connections: SQLite made safe, and every database error said in plain words."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import URL, make_url
from sqlalchemy.pool import StaticPool

from argus_bed.errors import StorageError

WRITE: dict[str, Any] = {"argus_bed_begin": "BEGIN IMMEDIATE"}
"""Execution options of a transaction that will write: SQLite then locks at once, where the
busy timeout applies, and not in the middle, where it does not."""


def parse_url(url_or_path: str | os.PathLike[str]) -> URL:
    """A SQLAlchemy URL as it is, anything else as the path of a SQLite file."""
    text = os.fspath(url_or_path)
    if not text:
        raise StorageError(
            "the ledger's path is empty; name a file, for example .argus-bed/study.db"
        )
    if text == ":memory:":
        return URL.create("sqlite")
    if "://" in text:
        try:
            return make_url(text)
        except exc.ArgumentError as error:
            raise StorageError(
                f"{text!r} is not a database URL; write for example "
                "postgresql+psycopg://user@host/name, or the path of a file"
            ) from error
    return URL.create("sqlite", database=str(Path(text).expanduser()))


def connect(url: URL, timeout_s: float) -> sa.Engine:
    """An engine whose SQLite connections begin transactions explicitly and never lose a commit."""
    options: dict[str, Any] = {}
    if url.get_backend_name() == "sqlite":
        options["connect_args"] = {"timeout": timeout_s, "check_same_thread": False}
        if not url.database:
            options["poolclass"] = StaticPool
    try:
        engine = sa.create_engine(url, **options)
    except ModuleNotFoundError as error:
        raise StorageError(
            f"{shown(url)} needs the Python package {error.name!r}, which is not installed; "
            f"`uv pip install {error.name}`, or use a SQLite file"
        ) from error
    except exc.ArgumentError as error:
        raise StorageError(f"{shown(url)}: {error}; sqlite and postgresql+psycopg work") from error
    if url.get_backend_name() == "sqlite":
        _make_sqlite_safe(engine)
    return engine


def _make_sqlite_safe(engine: sa.Engine) -> None:
    @sa.event.listens_for(engine, "connect")
    def on_connect(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # sqlite3 must not begin transactions by itself
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")  # a commit survives a power cut

    @sa.event.listens_for(engine, "begin")
    def on_begin(connection: sa.Connection) -> None:
        statement = connection.get_execution_options().get("argus_bed_begin", "BEGIN")
        connection.exec_driver_sql(statement)


def shown(url: URL) -> str:
    """The URL without its password, or the plain path of a SQLite file."""
    if url.get_backend_name() == "sqlite":
        return url.database or ":memory:"
    return url.render_as_string(hide_password=True)


@contextmanager
def in_plain_words(url: URL, timeout_s: float) -> Iterator[None]:
    """Turn a database error into a `StorageError` that says what would work."""
    try:
        yield
    except exc.DBAPIError as error:
        name = getattr(error.orig, "sqlite_errorname", "") or ""
        raise StorageError(_explain(url, name, str(error.orig), timeout_s)) from error
    except exc.SQLAlchemyError as error:
        raise StorageError(f"ledger {shown(url)}: {error}") from error


def _explain(url: URL, name: str, text: str, timeout_s: float) -> str:
    where = f"ledger {shown(url)}"
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return (
            f"{where} is locked by another process for longer than {timeout_s:g} s; nothing was "
            "written. End that process or try again, or use PostgreSQL for many writers"
        )
    if name == "SQLITE_FULL" or (name == "SQLITE_IOERR_WRITE" and _limited()):
        return (
            f"{where}: the disk is full or the file may not grow ({text}); nothing of this event "
            "was written and what had been told is still there. Free some space and repeat it"
        )
    if name.startswith("SQLITE_READONLY"):
        return f"{where} cannot be written ({text}); make file and folder writable, or copy it"
    if name == "SQLITE_NOTADB":
        return f"{where} is not a SQLite database ({text}); choose another path, or restore a copy"
    if name.startswith("SQLITE_CORRUPT"):
        return f"{where} is damaged ({text}); restore a copy, or try `sqlite3 FILE .recover`"
    if name.startswith("SQLITE_CANTOPEN"):
        return f"{where} cannot be opened ({_why_not(url)}); choose a writable folder"
    if name.startswith("SQLITE_IOERR"):
        return f"{where}: reading or writing failed ({text}, {name}); check the disk and repeat"
    return f"{where}: {text.strip()}"


def _limited() -> bool:
    """Whether the process may not write files of any size (POSIX)."""
    try:
        import resource
    except ImportError:
        return False
    return resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY


def _why_not(url: URL) -> str:
    path = Path(url.database or "")
    if path.is_dir():
        return "it is a folder"
    if not path.parent.is_dir():
        return f"the folder {path.parent} does not exist"
    if not os.access(path.parent, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        return f"the folder {path.parent} is read-only"
    return "the file cannot be read or written"
