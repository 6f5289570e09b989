"""Events can only be added; leases say who works on which run."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_MESSAGE = "events are append-only"


def upgrade() -> None:
    op.create_table(
        "leases",
        sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id"), primary_key=True),
        sa.Column("run", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("token", sa.String(32), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("place", sa.String(255), nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("born", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
    )
    op.create_index("events_by_kind", "events", ["study_id", "kind"])
    match op.get_bind().dialect.name:
        case "sqlite":
            _sqlite()
        case "postgresql":
            _postgresql()
        # elsewhere the promise rests on this package's code alone


def _sqlite() -> None:
    for verb in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER events_no_{verb.lower()} BEFORE {verb} ON events "
            f"BEGIN SELECT RAISE(ABORT, '{_MESSAGE}'); END"
        )
    # INSERT OR REPLACE deletes without firing the trigger above
    op.execute(
        "CREATE TRIGGER events_in_order BEFORE INSERT ON events WHEN "
        "NEW.seq IS NOT (SELECT COALESCE(MAX(seq), 0) + 1 FROM events "
        "WHERE study_id = NEW.study_id) "
        "OR (NEW.key IS NOT NULL AND EXISTS "
        "(SELECT 1 FROM events WHERE study_id = NEW.study_id AND key = NEW.key)) "
        f"BEGIN SELECT RAISE(ABORT, '{_MESSAGE}, without gaps, and once per key'); END"
    )


def _postgresql() -> None:
    op.execute(
        "CREATE FUNCTION argus_bed_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{_MESSAGE}'; END $$"
    )
    op.execute(
        "CREATE TRIGGER events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON events "
        "FOR EACH STATEMENT EXECUTE FUNCTION argus_bed_append_only()"
    )
