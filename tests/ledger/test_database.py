"""Opening, upgrading, and every way in which that can fail, in plain words."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from argus_bed.errors import StorageError
from argus_bed.ledger import Kind, Ledger, engine, migrate
from argus_bed.ledger.tables import metadata

posix = pytest.mark.skipif(os.name != "posix", reason="permissions and limits are POSIX")


@contextmanager
def at_version(path: Path, version: str) -> Iterator[sa.Connection]:
    database = engine.connect(engine.parse_url(path), 5.0)
    with database.execution_options(**engine.WRITE).begin() as connection:
        migrate.upgrade(connection, version)
        yield connection
    database.dispose()


@contextmanager
def as_nobody() -> Iterator[None]:
    """Permissions mean nothing to root, so tests that need them give root up for a while."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def open_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that other users can reach."""
    reached = [tmp_path, *list(tmp_path.parents)[:2]]
    before = [p.stat().st_mode for p in reached]
    for folder in reached:
        folder.chmod(0o755)
    yield tmp_path
    for folder, mode in zip(reached, before, strict=True):
        folder.chmod(mode)


def test_a_new_ledger_makes_its_folder_and_the_newest_schema(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "a" / "b" / "study.db") as ledger:
        assert ledger.version == migrate.head()
        assert ledger.upgrade() is None
    raw = sqlite3.connect(tmp_path / "a" / "b" / "study.db")
    assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    raw.close()


def test_told_data_is_synced_and_keys_are_checked(ledger: Ledger) -> None:
    with ledger._transaction() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 20_000


def test_migrations_and_tables_agree(ledger: Ledger) -> None:
    with ledger._transaction() as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": migrate.VERSION_TABLE}
        )
        assert compare_metadata(context, metadata) == []


def test_files_and_alembic_count_the_same_versions() -> None:
    scripts = ScriptDirectory(str(Path(migrate.__file__).parent))
    assert {s.revision for s in scripts.walk_revisions()} == migrate.known()
    assert scripts.get_current_head() == migrate.head()


def test_a_ledger_that_is_up_to_date_opens_without_alembic(path: Path) -> None:
    Ledger.open(path).close()
    code = "import sys; from argus_bed.ledger import Ledger; Ledger.open(sys.argv[1]); "
    code += "print([m for m in sys.modules if m.startswith(('alembic', 'pint', 'numpy'))])"
    child = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert child.stdout.strip() == "[]"


def test_an_old_ledger_says_what_to_run_and_keeps_everything(path: Path) -> None:
    with at_version(path, "0001") as connection:
        connection.exec_driver_sql("INSERT INTO studies VALUES (1, 'old', 0.0, '{}')")
        connection.exec_driver_sql(
            "INSERT INTO events VALUES (1, 1, 'note', NULL, '{\"x\":1}', 0.0, 'h', 1)"
        )
    with Ledger.open(path) as ledger:
        assert ledger.version == "0001"
        with pytest.raises(StorageError, match="argus-bed storage upgrade"):
            ledger.studies()
        backup = ledger.upgrade()
        assert backup is not None
        assert backup.exists()
        assert ledger.version == migrate.head()
        assert [e.payload for e in ledger.events(1)] == [{"x": 1}]
        assert ledger.append(1, Kind.NOTE, {}).seq == 2
    raw = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute("DELETE FROM events")
    raw.close()


def test_a_newer_schema_asks_for_a_newer_program(path: Path) -> None:
    Ledger.open(path).close()
    raw = sqlite3.connect(path)
    raw.execute(f"UPDATE {migrate.VERSION_TABLE} SET version_num = '0999'")
    raw.commit()
    raw.close()
    with pytest.raises(StorageError, match=r"0999.*Upgrade argus-bed"):
        Ledger.open(path)


def test_another_programs_database_is_left_alone(path: Path) -> None:
    raw = sqlite3.connect(path)
    raw.execute("CREATE TABLE bookmarks (x)")
    raw.commit()
    raw.close()
    with pytest.raises(StorageError, match="bookmarks"):
        Ledger.open(path)


def test_no_file_and_not_to_be_made(path: Path) -> None:
    with pytest.raises(StorageError, match="argus-bed run"):
        Ledger.open(path, create=False)
    assert not path.exists()


def test_not_a_database(path: Path) -> None:
    path.write_bytes(b"This is a log file, not a database.\n" * 100)
    with pytest.raises(StorageError, match=r"not a SQLite database.*another path"):
        Ledger.open(path)


def test_a_damaged_file_is_said_to_be_damaged(ledger: Ledger, study: int, path: Path) -> None:
    ledger.extend(study, [(Kind.NOTE, {"x": "y" * 500}, None) for _ in range(200)])
    ledger.close()
    broken = bytearray(path.read_bytes())
    broken[8192:] = os.urandom(len(broken) - 8192)
    path.write_bytes(broken)
    with pytest.raises(StorageError, match="damaged"):
        list(Ledger.open(path).events(study))


def test_a_folder_is_not_a_ledger(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="it is a folder"):
        Ledger.open(tmp_path)


@posix
def test_a_read_only_folder(open_folder: Path) -> None:
    with as_nobody(), pytest.raises(StorageError, match="choose a writable folder"):
        Ledger.open(open_folder / "study.db")
    with as_nobody(), pytest.raises(StorageError, match="choose a writable folder"):
        Ledger.open(open_folder / "new" / "study.db")


@posix
def test_a_read_only_file(open_folder: Path) -> None:
    path = open_folder / "study.db"
    with Ledger.open(path) as ledger:
        study = ledger.create_study("x", {})
    path.chmod(0o444)
    with as_nobody(), pytest.raises(StorageError, match="writable"):
        Ledger.open(path).append(study, Kind.NOTE, {})


@posix
def test_a_device_is_not_a_ledger() -> None:
    with pytest.raises(StorageError, match="/dev/full"):
        Ledger.open("/dev/full")


FULL = """
import resource, sys
from argus_bed.errors import StorageError
from argus_bed.ledger import Ledger
ledger = Ledger.open(sys.argv[1])
study = ledger.create_study("x", {})
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
told = 0
try:
    while True:
        ledger.append(study, "told", {"x": "y" * 2000})
        told += 1
except StorageError as error:
    print(told)
    print(error)
"""


@posix
def test_no_space_left_loses_nothing(path: Path) -> None:
    child = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True
    )
    told, message = child.stdout.split("\n", 1)
    assert int(told) > 3
    assert "Free some space" in message
    with Ledger.open(path) as ledger:
        study = ledger.study("x").id
        assert ledger.count(study) == int(told)
        assert ledger.append(study, Kind.NOTE, {}).seq == int(told) + 1


def test_a_full_database_loses_nothing(ledger: Ledger, study: int) -> None:
    with ledger._transaction() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StorageError, match="Free some space"):
        ledger.append(study, Kind.NOTE, {"x": "y" * 100_000})
    assert ledger.count(study) == 0


def test_locked_for_too_long(path: Path) -> None:
    with Ledger.open(path, timeout_s=0.2) as ledger:
        study = ledger.create_study("x", {})
        raw = sqlite3.connect(path, isolation_level=None)
        raw.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match=r"locked by another process.*0.2 s"):
            ledger.append(study, Kind.NOTE, {})
        assert ledger.count(study) == 0  # a reader does not wait
        raw.execute("COMMIT")
        raw.close()
        assert ledger.append(study, Kind.NOTE, {}).seq == 1


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "empty"),
        ("nosuch://x/y", "nosuch"),
        ("://", "not a database URL"),
        ("postgresql+pg8000x://ann:secret@host/x", "pg8000x"),
    ],
)
def test_urls_that_lead_nowhere(url: str, said: str) -> None:
    with pytest.raises(StorageError, match=said) as caught:
        Ledger.open(url)
    assert "secret" not in str(caught.value)
