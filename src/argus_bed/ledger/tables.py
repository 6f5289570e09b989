"""The tables, as SQLAlchemy sees them. `versions` creates them; the two must agree (tested)."""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData()

studies = sa.Table(
    "studies",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(200), nullable=False, unique=True),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("spec", sa.Text, nullable=False),
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.String(40), nullable=False),
    sa.Column("key", sa.String(200), nullable=True),
    sa.Column("payload", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.UniqueConstraint("study_id", "key", name="one_event_per_key"),
    sa.Index("events_by_kind", "study_id", "kind"),
)

leases = sa.Table(
    "leases",
    metadata,
    sa.Column("study_id", sa.Integer, sa.ForeignKey("studies.id"), primary_key=True),
    sa.Column("run", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("token", sa.String(32), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("place", sa.String(255), nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("born", sa.Double, nullable=False),
    sa.Column("expires_at", sa.Double, nullable=False),
)
"""The only rows that change: who works on which run right now. No knowledge is lost with them."""
