"""``probes`` and ``hypotheses``: what the library and the user's own folders hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argus_bed.cli.output import Format, FormatOption, emit, rows, show
from argus_bed.cli.settings import ConfigOption, SetOption, read
from argus_bed.errors import UnknownName

if TYPE_CHECKING:
    from argus_bed.hypothesis import Hypothesis
    from argus_bed.probe import Probe

PANEL = "Library and machine"

Name = Annotated[str, typer.Argument(help="Its name, as the list shows it.")]

probes = typer.Typer(no_args_is_help=True, help="Ways to measure.")
hypotheses = typer.Typer(no_args_is_help=True, help="Explanations that compete.")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.add_typer(probes, name="probes", rich_help_panel=PANEL)
    app.add_typer(hypotheses, name="hypotheses", rich_help_panel=PANEL)


@probes.command("list")
def probes_list(
    config: ConfigOption = None,
    sets: SetOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Every probe, with the question that it answers."""
    from argus_bed.probe import catalogue

    known = catalogue(read(config, sets=sets).folders)
    if format is Format.JSON:
        emit("probes", {"probes": [describe_probe(p) for p in known.values()]})
        return
    lines = [(p.name, p.level, p.question) for p in known.values()]
    show(rows(("probe", "level", "question"), lines))


@probes.command("describe")
def probes_describe(
    name: Name,
    config: ConfigOption = None,
    sets: SetOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """One probe: what it establishes, what it leaves open, how it disturbs."""
    from argus_bed.probe import catalogue

    probe = _one("probe", name, catalogue(read(config, sets=sets).folders))
    _show("probe", describe_probe(probe), format)


@hypotheses.command("list")
def hypotheses_list(
    config: ConfigOption = None,
    sets: SetOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Every hypothesis, with its claim."""
    from argus_bed.hypothesis import catalogue

    known = catalogue(read(config, sets=sets).folders)
    if format is Format.JSON:
        listed = [describe_hypothesis(h) for h in known.values()]
        emit("hypotheses", {"hypotheses": listed})
        return
    lines = [(h.name, h.part, h.claim) for h in known.values()]
    show(rows(("hypothesis", "blames", "claim"), lines))


@hypotheses.command("describe")
def hypotheses_describe(
    name: Name,
    config: ConfigOption = None,
    sets: SetOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """One hypothesis: its claim, signature, test, rivals and sources."""
    from argus_bed.hypothesis import catalogue

    found = _one("hypothesis", name, catalogue(read(config, sets=sets).folders))
    _show("hypothesis", describe_hypothesis(found), format)


def describe_probe(probe: Probe) -> dict[str, Any]:
    """Everything that a probe declares."""
    return {
        "name": probe.name,
        "question": probe.question,
        "level": probe.level,
        "establishes": probe.establishes,
        "leaves_open": probe.leaves_open,
        "locality": probe.locality,
        "objective_check": probe.objective_check,
        "side_effects": probe.side_effects,
        "excludes": sorted(probe.excludes),
    }


def describe_hypothesis(found: Hypothesis) -> dict[str, Any]:
    """Everything that a hypothesis declares."""
    return {
        "name": found.name,
        "claim": found.claim,
        "part": found.part,
        "signature": found.signature,
        "decisive_probe": found.decisive_probe,
        "intervention": found.intervention,
        "confused_with": found.confused_with,
        "sources": found.sources,
        "weight": found.weight,
        "causes": found.causes,
    }


def _one[T](what: str, name: str, known: Mapping[str, T]) -> T:
    if name not in known:
        raise UnknownName(what, name, known)
    return known[name]


def _show(schema: str, facts: Mapping[str, Any], format: Format) -> None:
    if format is Format.JSON:
        emit(schema, facts)
        return
    show(rows(("", ""), [(k.replace("_", " "), _words(v)) for k, v in facts.items()]))


def _words(value: Any) -> str:
    """A declared fact in words, one line an entry."""
    if isinstance(value, str | int | float):
        return str(value) or "-"
    return "\n".join(_entry(v) for v in value) or "-"


def _entry(value: Any) -> str:
    """A side effect in a line; anything else as it is."""
    if not hasattr(value, "voids"):
        return str(value)
    when = f" when {value.when}" if value.when else ""
    voids = f"; voids {', '.join(sorted(value.voids))}" if value.voids else ""
    return f"{value.kind}{when} (probability {value.probability:g}){voids}"
