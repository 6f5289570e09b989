"""``init``, ``check`` and ``doctor``: getting a folder and a machine ready."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from argus_bed.cli.output import Format, FormatOption, emit, rows, say, show
from argus_bed.cli.settings import ConfigOption, LedgerOption, SetOption, WorkloadOption, read
from argus_bed.errors import StorageError, UsageError

TEMPLATES = ("argus-bed.toml", "workload.py")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("init", rich_help_panel="A study")(init)
    app.command("check", rich_help_panel="A study")(check)
    app.command("doctor", rich_help_panel="Library and machine")(doctor)


def init(
    folder: Annotated[Path, typer.Argument(help="Where to write.")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,
    format: FormatOption = Format.TABLE,
) -> None:
    """Write argus-bed.toml and a commented workload.py that runs as it stands."""
    there = [name for name in TEMPLATES if (folder / name).exists()]
    if there and not force:
        raise UsageError(
            f"{', '.join(str(folder / n) for n in there)} exists already; nothing was written "
            "(--force overwrites)"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in TEMPLATES:
            content = (files("argus_bed") / "templates" / name).read_text(encoding="utf-8")
            (folder / name).write_text(content, encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise StorageError(f"cannot write into {folder}: {reason}") from error
    written = [str(folder / name) for name in TEMPLATES]
    if format is Format.JSON:
        emit("init", {"written": written})
        return
    say(f"wrote {' and '.join(written)}")
    say("next: `argus-bed check`, then `argus-bed run`")


def check(
    config: ConfigOption = None,
    workload: WorkloadOption = None,
    ledger: LedgerOption = None,
    sets: SetOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Say whether settings, workload, hypotheses, probes and units fit together."""
    from argus_bed.doctor import check_study

    settings = read(config, workload=workload, ledger=ledger, sets=sets)
    findings = check_study(settings)
    failed = [f for f in findings if f.ok is False]
    if format is Format.JSON:
        emit("check", {"ok": not failed, "findings": findings})
    else:
        listed = [(_mark(f.ok), f.what, f.says) for f in findings]
        show(rows(("", "what", "found"), listed))
    if failed:
        raise typer.Exit(failed[0].exit_code)


def doctor(
    config: ConfigOption = None,
    ledger: LedgerOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Say what this machine can measure, and what each missing thing would add."""
    from argus_bed.doctor import examine

    findings = examine(read(config, ledger=ledger).ledger)
    if format is Format.JSON:
        emit("doctor", {"findings": findings})
        return
    listed = [(_mark(f.ok), f.what, f.says, f.adds) for f in findings]
    show(rows(("", "what", "found", "what it adds"), listed, wide=(2, 3)))


def _mark(ok: bool | None) -> str:
    return {True: "yes", False: "no", None: "-"}[ok]
