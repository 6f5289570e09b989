"""The loop of a study: ``next``, ``run``, ``tell``, and what came of it."""

from __future__ import annotations

import getpass
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argus_bed.cli.output import Format, FormatOption, emit, say, show
from argus_bed.cli.settings import (
    ConfigOption,
    LedgerOption,
    SetOption,
    StudyOption,
    WorkloadOption,
    opened,
    read,
)
from argus_bed.errors import UsageError, ValueRejected

if TYPE_CHECKING:
    from argus_bed.config import Config
    from argus_bed.records import Verdict

PANEL = "A study"
NOTHING_LEFT = 3
PROBE_FAILED = 4


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("next", rich_help_panel=PANEL)(next_)
    for command in (run, tell, status, why, report, export):
        app.command(command.__name__, rich_help_panel=PANEL)(command)


def next_(
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many.")] = 1,
    config: ConfigOption = None,
    study: StudyOption = None,
    ledger: LedgerOption = None,
    workload: WorkloadOption = None,
    sets: SetOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Say what is worth measuring next, and why."""
    settings = read(config, study=study, ledger=ledger, workload=workload, sets=sets)
    with opened(settings) as found:
        proposals = found.ask(count)
        verdict = found.verdict()
        belief = found.probabilities()
    if format is Format.JSON:
        emit("next", {"study": settings.study.name, "proposals": proposals, "verdict": verdict})
    elif proposals:
        from argus_bed.cli.watch import in_focus
        from argus_bed.report import terminal

        focused = [in_focus(p, belief) for p in proposals]
        show(*(terminal.proposal(p, names=names) for p, names in focused))
        say(f"`argus-bed run --max-runs {len(proposals)}` does it; `argus-bed tell` takes yours")
    else:
        from argus_bed.report import terminal

        show(terminal.verdict(verdict))
    if not proposals:
        raise typer.Exit(NOTHING_LEFT)


def run(
    max_price: Annotated[
        str | None, typer.Option(metavar="DURATION", help="What this call may cost: 90, 2min.")
    ] = None,
    max_runs: Annotated[int | None, typer.Option(min=1, help="How many measurements.")] = None,
    timeout: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Wall time after which no measurement starts."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Only go on with a study that exists.")
    ] = False,
    approve: Annotated[
        list[str] | None,
        typer.Option(help="Let this plan run, though it changes more than time.", metavar="PLAN"),
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="Who approves.", show_default="you, by login name")
    ] = None,
    config: ConfigOption = None,
    study: StudyOption = None,
    ledger: LedgerOption = None,
    workload: WorkloadOption = None,
    sets: SetOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Measure until the question is settled or nothing is worth its price."""
    from argus_bed.cli.watch import Watch

    settings = read(config, study=study, ledger=ledger, workload=workload, sets=sets)
    limits: dict[str, Any] = {
        "max_price": duration("--max-price", max_price),
        "max_runs": max_runs,
        "timeout": duration("--timeout", timeout),
    }
    if resume:
        must_exist(settings)
    watch = Watch(format)
    with opened(settings) as found:
        for plan in approve or ():
            found.approve(plan, by or getpass.getuser(), "argus-bed run --approve")
        verdict = found.run(**limits, on_event=watch)
        page = found.report(report_path(settings))
        view = found.view()
    if format is Format.JSON:
        from argus_bed.report.data import as_json

        emit("run", {"study": view.name, **as_json(view), "report": str(page)})
    else:
        from argus_bed.report import terminal

        show(terminal.verdict(verdict, html=str(page)))
    if code := ending(verdict, watch.states):
        raise typer.Exit(code)


def tell(
    values: Annotated[
        list[str],
        typer.Argument(
            metavar="[RUN] QUANTITY=VALUE,...",
            help="step_time=12.3ms,12.1ms; a number first says which proposal it answers.",
        ),
    ],
    condition: Annotated[str, typer.Option(help="The arm or condition that was measured.")],
    stage: Annotated[str | None, typer.Option(help="The stage, if not the whole step.")] = None,
    took: Annotated[
        str | None, typer.Option(metavar="DURATION", help="What the measurement cost.")
    ] = None,
    perturbation: Annotated[
        float, typer.Option(min=0.0, help="Share by which it lengthened a step.")
    ] = 0.0,
    config: ConfigOption = None,
    study: StudyOption = None,
    ledger: LedgerOption = None,
    workload: WorkloadOption = None,
    sets: SetOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Take a result measured by hand, asked for or not."""
    number, readings = told(values)
    settings = read(config, study=study, ledger=ledger, workload=workload, sets=sets)
    if not math.isfinite(perturbation):
        raise ValueRejected(f"--perturbation {perturbation}: a finite number is wanted")
    with opened(settings) as found:
        done = found.tell(
            readings,
            condition=condition,
            stage=stage,
            run=number,
            perturbation=perturbation,
            seconds=duration("--took", took) or 0.0,
        )
        view = found.view()
    if format is Format.JSON:
        emit("tell", {"study": view.name, "run": done, "probabilities": view.now})
        return
    from argus_bed.report import terminal

    show(terminal.finished_round(view, done))


def status(
    config: ConfigOption = None,
    study: StudyOption = None,
    ledger: LedgerOption = None,
    sets: SetOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Say how the study stands: its runs, what they cost, what is believed."""
    from argus_bed.cli.stored import stored_view
    from argus_bed.report import terminal
    from argus_bed.report.worth import worth_of

    view = stored_view(read(config, study=study, ledger=ledger, sets=sets))
    if format is Format.JSON:
        facts = {
            "study": view.name,
            "status": view.verdict.status,
            "why": view.verdict.why,
            "spent_s": view.spent_s,
            "budget_s": view.budget_s,
            "ranking": view.verdict.ranking,
            "runs": [
                {
                    "run": r.number,
                    "state": r.state,
                    "plan": r.proposal.plan if r.proposal else r.source,
                    **asdict(worth_of(r)),
                }
                for r in view.runs
            ],
            "probes": view.probes,
        }
        emit("status", facts)
        return
    show(terminal.status(view))


def why(
    run: Annotated[int, typer.Argument(help="Number of the run.")],
    config: ConfigOption = None,
    study: StudyOption = None,
    ledger: LedgerOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Say why a run was made, what was expected, and how it changed the belief."""
    from argus_bed.cli.stored import stored_view
    from argus_bed.report import terminal
    from argus_bed.report.worth import worth_of

    view = stored_view(read(config, study=study, ledger=ledger))
    if format is Format.JSON:
        found = view.run(run)
        emit("why", {"study": view.name, "run": found, "worth": worth_of(found)})
        return
    show(terminal.why(view, run))


def report(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", show_default=".argus-bed/NAME.html", help="Where to."),
    ] = None,
    config: ConfigOption = None,
    study: StudyOption = None,
    ledger: LedgerOption = None,
    workload: WorkloadOption = None,
    sets: SetOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Write the study as one HTML page, and its posterior as NetCDF beside it."""
    settings = read(config, study=study, ledger=ledger, workload=workload, sets=sets)
    must_exist(settings)
    with opened(settings) as found:
        page = found.report(output or report_path(settings))
    if format is Format.JSON:
        emit("report", {"study": settings.study.name, "html": str(page)})
    else:
        say(f"report: {page}")


def export(
    config: ConfigOption = None,
    study: StudyOption = None,
    ledger: LedgerOption = None,
    format: FormatOption = Format.JSON,
) -> None:
    """Write everything about the study as one JSON object."""
    from argus_bed.cli.stored import stored_view
    from argus_bed.report.data import as_json

    if format is not Format.JSON:
        raise UsageError("export writes JSON only; `argus-bed status` shows a table")
    emit("study", as_json(stored_view(read(config, study=study, ledger=ledger))))


# -- shared -------------------------------------------------------------------------


def told(words: list[str]) -> tuple[int | None, dict[str, list[str | float]]]:
    """Take ``["7", "step_time=12.3ms,12.1ms"]`` apart: run number and values by quantity.

    Raises
    ------
    UsageError : a word is neither a leading run number nor ``quantity=value``.
    """
    number = int(words[0]) if words and words[0].isdecimal() else None
    found: dict[str, list[str | float]] = {}
    for word in words[number is not None :]:
        name, equals, text = word.partition("=")
        values = [part.strip() for part in text.split(",")]
        if not equals or not name.strip() or not all(values):
            raise UsageError(f"{word!r}: write QUANTITY=VALUE, such as step_time=12.3ms,12.1ms")
        found.setdefault(name.strip(), []).extend(values)
    if not found:
        raise UsageError("nothing was told; write for example step_time=12.3ms,12.1ms")
    return number, found


def duration(flag: str, text: str | None) -> float | None:
    """A duration on the command line: seconds, or with a unit. Raises `UsageError`."""
    from argus_bed.quantity import parse

    if text is None:
        return None
    try:
        return parse(text, "step_time")
    except UsageError as error:
        raise UsageError(f"{flag} {text}: write seconds above zero, or for example 2min") from error


def must_exist(settings: Config) -> None:
    """Raise `UnknownName` or `StorageError` unless the ledger holds the study."""
    from argus_bed.ledger import Ledger

    with Ledger.open(settings.ledger, create=False) as ledger:
        ledger.study(settings.study.name)


def report_path(settings: Config) -> Path:
    """Where a study's page goes by default: beside a SQLite ledger, else here."""
    ledger = settings.ledger
    folder = ledger.parent if isinstance(ledger, Path) else Path(".argus-bed")
    folder.mkdir(parents=True, exist_ok=True)
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in settings.study.name)
    return folder / f"{safe}.html"


def ending(verdict: Verdict, states: list[str]) -> int:
    """Exit code of a run: 3 if the question stays open for want of means, 4 if all failed."""
    from argus_bed.records import Status

    if states and all(state == "failed" for state in states):
        return PROBE_FAILED
    stuck = (Status.UNDETERMINED, Status.OUT_OF_BUDGET)
    return NOTHING_LEFT if verdict.status in stuck else 0
