"""What reaches the terminal: data on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType


class Format(StrEnum):
    """How a command writes its result."""

    TABLE = "table"
    JSON = "json"


class _Chosen:
    """The format of the command that runs, for the case that it ends in an error."""

    format = Format.TABLE


def _choose(value: Format) -> Format:
    _Chosen.format = value
    return value


FormatOption = Annotated[
    Format,
    typer.Option(
        "--format",
        envvar="ARGUS_BED_FORMAT",
        callback=_choose,
        help="table for people, json for programs: one object on stdout.",
    ),
]


def emit(schema: str, payload: Mapping[str, Any]) -> None:
    """Write the one JSON object of a command: ``{"schema": "argus-bed/run/1", ...}``."""
    from argus_bed.report.data import nulled

    facts = {key: value for key, value in nulled(payload).items() if key != "schema"}
    content = {"schema": f"argus-bed/{schema}/1", **facts}
    sys.stdout.write(json.dumps(content, indent=2, allow_nan=False) + "\n")
    sys.stdout.flush()


def show(*parts: RenderableType) -> None:
    """Print for people on stdout."""
    from argus_bed.report import terminal

    terminal.console(sys.stdout).print(*parts, sep="\n")


def rows(
    columns: Sequence[str], content: Iterable[Sequence[object]], *, wide: Sequence[int] = (-1,)
) -> RenderableType:
    """A table without a frame; the columns in ``wide`` share what the others leave."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from argus_bed.report.terminal import text

    made = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, expand=True)
    shares = {index % len(columns) for index in wide}
    for index, name in enumerate(columns):
        made.add_column(name, overflow="fold", ratio=1 if index in shares else None)
    for first, *others in content:
        made.add_row(text(first, "bold"), *(text(cell) for cell in others))
    return made


def fail(error: Exception, code: int) -> None:
    """Say on stderr what went wrong; with ``--format json`` also as an object on stdout."""
    message = str(error) or type(error).__name__
    say(f"argus-bed: {message}")
    if _Chosen.format is Format.JSON:
        complain(error, code)


def complain(error: Exception, code: int) -> None:
    """The one JSON object of a command that failed."""
    message = str(error) or type(error).__name__
    emit("error", {"error": type(error).__name__, "message": message, "exit_code": code})


def wants_json(words: Sequence[str]) -> bool:
    """Whether a command line that could not be read to its end asked for JSON."""
    said = [b for a, b in pairwise(words) if a == "--format"]
    said += [w.removeprefix("--format=") for w in words if w.startswith("--format=")]
    return (said or [os.environ.get("ARGUS_BED_FORMAT", "")])[-1] == Format.JSON


def reset() -> None:
    """Forget the format of an earlier command in this process."""
    _Chosen.format = Format.TABLE


def say(text: str) -> None:
    """A line for people on stderr."""
    typer.echo(text, err=True)
