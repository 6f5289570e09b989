"""Bring a database to the schema that this code writes.

Alembic is loaded only to migrate: a ledger that is up to date opens without it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import sqlalchemy as sa

VERSION_TABLE = "argus_bed_version"
"""Not alembic's default name: a PostgreSQL database may hold other programs' tables."""
_HERE = Path(__file__).parent
_version = sa.table(VERSION_TABLE, sa.column("version_num", sa.String))


@cache
def known() -> frozenset[str]:
    """Every schema version that this code can upgrade from, by the names of its files."""
    found = (_HERE / "versions").glob("v[0-9][0-9][0-9][0-9]_*.py")
    return frozenset(path.name[1:5] for path in found)


def head() -> str:
    """The schema version that this code writes."""
    return max(known())


def version(connection: sa.Connection) -> str | None:
    """The schema version of a database, None if it has none."""
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(sa.select(_version.c.version_num)).scalar_one_or_none()


def upgrade(connection: sa.Connection, to: str = "head") -> None:
    """Migrate within the transaction that is open on ``connection``."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_HERE).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    config.attributes["version_table"] = VERSION_TABLE
    command.upgrade(config, to)
