"""Bring a database to the schema that this code writes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import sqlalchemy as sa
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

VERSION_TABLE = "argus_bed_version"
"""Not alembic's default name: a PostgreSQL database may hold other programs' tables."""


def _config() -> Config:
    config = Config()
    config.set_main_option(
        "script_location", str(Path(__file__).parent).replace("%", "%%")
    )
    config.set_main_option("path_separator", "os")
    return config


@cache
def head() -> str:
    """The schema version that this code writes."""
    found = ScriptDirectory.from_config(_config()).get_current_head()
    assert found is not None, "the package ships without its migrations"
    return found


@cache
def known() -> frozenset[str]:
    """Every schema version that this code can upgrade from."""
    return frozenset(
        s.revision for s in ScriptDirectory.from_config(_config()).walk_revisions()
    )


def version(connection: sa.Connection) -> str | None:
    """The schema version of a database, None if it has none."""
    return MigrationContext.configure(
        connection, opts={"version_table": VERSION_TABLE}
    ).get_current_revision()


def upgrade(connection: sa.Connection, to: str = "head") -> None:
    """Migrate within the transaction that is open on ``connection``."""
    from alembic import command

    config = _config()
    config.attributes["connection"] = connection
    config.attributes["version_table"] = VERSION_TABLE
    command.upgrade(config, to)
