"""Which promises are shown, and by which tests: ``argus-bed-promises``.

A promise is shown when a test that can fail bears ``@pytest.mark.promise("A07")``. The
marks are read from the sources, so that the list takes no time and imports nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from argus_bed.cli.output import Format, FormatOption, emit, rows, say, show
from argus_bed.errors import FileRejected, UnknownName

FOLDERS = ("tests", "benchmarks")


def promises() -> dict[str, str]:
    """Every promise by its number, in a few words."""
    text = (files("argus_bed") / "promises.txt").read_text(encoding="utf-8")
    lines = (line.split(" ", 1) for line in text.splitlines() if line.startswith("A"))
    return {number: words.strip() for number, words in lines}


def marked(root: Path) -> dict[str, list[str]]:
    """Tests by the promise that they show, as ``tests/cli/test_app.py::test_name``.

    Raises
    ------
    FileRejected : there are no tests under ``root``.
    UnknownName : a test is marked with a number that is no promise.
    """
    folders = [root / name for name in FOLDERS if (root / name).is_dir()]
    if not folders:
        raise FileRejected(f"{root.resolve()}: no folder {FOLDERS[0]!r}; run this in a checkout")
    known = promises()
    found: dict[str, list[str]] = {number: [] for number in known}
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
            for number, test in _marks(tree):
                where = path.relative_to(root).as_posix()
                if number not in known:
                    raise UnknownName(f"promise in {where}", number, known)
                found[number].append(f"{where}::{test}" if test else where)
    return {number: list(dict.fromkeys(tests)) for number, tests in found.items()}


def _marks(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, str]]:
    """(promise, test) for each mark; a mark of a class or module counts for that whole."""
    for node in ast.iter_child_nodes(tree):
        name = inside
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{inside}::{node.name}" if inside else node.name
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "promise"
        ):
            for argument in node.args:
                if isinstance(argument, ast.Constant):
                    yield str(argument.value), inside
        yield from _marks(node, name)


def summary(root: Path, format: FormatOption = Format.TABLE, *, only_open: bool = False) -> None:
    """Print the list."""
    known, found = promises(), marked(root)
    shown = sum(bool(tests) for tests in found.values())
    if format is Format.JSON:
        listed = [{"promise": n, "says": known[n], "tests": t} for n, t in found.items()]
        emit("promises", {"shown": shown, "open": len(known) - shown, "promises": listed})
        return
    lines = [
        (number, "shown" if tests else "open", "\n".join((known[number], *tests)))
        for number, tests in found.items()
        if not (tests and only_open)
    ]
    show(rows(("", "", "promise, and the tests that show it"), lines))
    say(f"{shown} of {len(known)} shown, {len(known) - shown} open")


def _command(
    root: Annotated[Path, typer.Argument(help="The checkout.")] = Path(),
    only_open: Annotated[bool, typer.Option("--open", help="Only the open ones.")] = False,
    format: FormatOption = Format.TABLE,
) -> None:
    """List what argus-bed promises, and which tests show it."""
    try:
        summary(root, format, only_open=only_open)
    except (FileRejected, UnknownName) as error:
        say(f"argus-bed-promises: {error}")
        raise typer.Exit(error.exit_code) from error


def main() -> None:
    """Entry point of ``argus-bed-promises``."""
    typer.run(_command)
