"""``storage``: looking after the ledger."""

from __future__ import annotations

import typer

from argus_bed.cli.output import Format, FormatOption, emit, say
from argus_bed.cli.settings import ConfigOption, LedgerOption, read

storage = typer.Typer(no_args_is_help=True, help="The ledger and its schema.")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(storage, name="storage", rich_help_panel="Library and machine")


@storage.command("upgrade")
def upgrade(
    config: ConfigOption = None,
    ledger: LedgerOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Bring an older ledger to the schema of this argus-bed. A copy is kept."""
    from argus_bed.ledger import Ledger

    where = read(config, ledger=ledger).ledger
    with Ledger.open(where, create=False) as opened:
        before = opened.version
        backup = opened.upgrade()
        after = opened.version
    if format is Format.JSON:
        facts = {"ledger": str(where), "from": before, "to": after, "backup": backup}
        emit("storage-upgrade", facts)
    elif before == after:
        say(f"{where} has schema {after}, the newest; nothing to do")
    else:
        say(f"{where}: schema {before} -> {after}; copy of the old one: {backup or 'none'}")
