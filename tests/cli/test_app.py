"""How the command line behaves as a whole: help, versions, errors, interruptions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import argus_bed
from argus_bed.cli.app import Commands
from argus_bed.errors import InferenceError, ProbeFailed, StorageError, UsageError

HEAVY = ("torch", "pymc", "pytensor", "arviz", "sqlalchemy", "botorch", "pandas", "matplotlib")


def shell(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from argus_bed.cli import main; main()", *words],
        capture_output=True,
        text=True,
        env={**os.environ, **settings},
        timeout=120,
        check=False,
    )


def test_help_loads_nothing_heavy() -> None:
    script = f"""
import sys
from argus_bed.cli import app
try:
    app(["--help"])
except SystemExit as end:
    assert end.code == 0
print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == "[]"
    for command in ("init", "check", "next", "run", "tell", "status", "why", "report", "demo"):
        assert f" {command} " in ran.stdout


def test_every_command_has_help(argus: Callable[..., object]) -> None:
    from typer.main import get_command

    from argus_bed.cli import app

    def walk(command: object, path: tuple[str, ...]) -> list[tuple[str, ...]]:
        children = getattr(command, "commands", {})
        below = [p for name, child in children.items() for p in walk(child, (*path, name))]
        return [path, *below]

    paths = walk(get_command(app), ())
    assert ("probes", "describe") in paths
    for path in paths:
        result = argus(*path, "--help")
        assert result.code == 0, path  # type: ignore[attr-defined]


def test_version() -> None:
    assert shell("--version").stdout == f"argus-bed {argus_bed.__version__}\n"


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert argus_bed.__version__ == version("argus-bed")


@pytest.mark.parametrize(
    "words", [("nonsense",), ("run", "--max-runs", "0"), ("tell",), ("probes", "--format", "xml")]
)
def test_bad_usage_is_2_without_a_traceback(words: tuple[str, ...], folder: Path) -> None:
    ran = shell(*words)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert "Traceback" not in ran.stderr
    assert "Usage" in ran.stderr


def failing(error: BaseException) -> typer.Typer:
    """An application with the real group and one command that raises."""
    app = typer.Typer(cls=Commands, pretty_exceptions_enable=False)

    @app.callback()
    def settings(debug: bool = False) -> None:
        """Options."""

    @app.command()
    def go() -> None:
        raise error

    return app


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("no such thing"), 2),
        (ProbeFailed("it read nothing"), 4),
        (StorageError("the disk is full"), 5),
        (InferenceError("two ways disagree"), 6),
        (KeyboardInterrupt(), 130),
    ],
)
def test_each_kind_of_error_has_its_code(error: BaseException, code: int) -> None:
    result = CliRunner().invoke(failing(error), ["go"])
    assert result.exit_code == code
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert (str(error) or "interrupted") in result.stderr


def test_the_unforeseen_is_one_line_and_a_file() -> None:
    result = CliRunner().invoke(failing(ZeroDivisionError("by zero")), ["go"])
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert "internal error: ZeroDivisionError: by zero" in line
    log = Path(line.split("all of it in ")[1].split(",")[0])
    assert "Traceback" in log.read_text()
    log.unlink()
    shown = CliRunner().invoke(failing(ZeroDivisionError("by zero")), ["--debug", "go"])
    assert "Traceback" in shown.stderr


def test_errors_are_objects_for_programs(argus: Callable[..., object], folder: Path) -> None:
    result = argus("hypotheses", "describe", "gil_hold", "--format", "json")
    assert result.json == {  # type: ignore[attr-defined]
        "schema": "argus-bed/error/1",
        "error": "UnknownName",
        "message": "unknown hypothesis 'gil_hold'; did you mean 'gil_held'?",
        "exit_code": 2,
    }
    again = argus("hypotheses", "describe", "gil_hold")
    assert again.out == ""  # type: ignore[attr-defined]


def test_a_reader_that_leaves_is_no_error_message(folder: Path) -> None:
    command = f"{sys.executable} -c 'from argus_bed.cli import main; main()' hypotheses list"
    ran = subprocess.run(
        ["bash", "-c", f"{command} | true"], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in ran.stderr
    assert "Exception ignored" not in ran.stderr


def test_an_interrupt_is_130_without_a_traceback() -> None:
    script = (
        "import signal, time, typer\n"
        # a shell that runs its tests in the background lets them inherit an ignored signal
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from argus_bed.cli.app import Commands\n"
        "app = typer.Typer(cls=Commands)\n"
        "@app.callback()\n"
        "def settings(debug: bool = False): ...\n"
        "@app.command()\n"
        "def go():\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
        "app(['go'])\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    try:
        _, errors = child.communicate(timeout=30)
    finally:
        child.kill()
    assert child.returncode == 130
    assert "interrupted" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "--max-runs", "0", "--format", "json"), "--max-runs"),
        (("run", "--format=json", "--bogus"), "--bogus"),
        (("bogus", "--format", "json"), "bogus"),
        (("tell", "step_time=1", "--format", "json"), "--condition"),
    ],
)
def test_bad_usage_is_an_object_for_programs(
    argus: Callable[..., object], words: tuple[str, ...], said: str
) -> None:
    result = argus(*words)
    assert result.code == 2  # type: ignore[attr-defined]
    assert result.json["exit_code"] == 2  # type: ignore[attr-defined]
    assert said in result.json["message"]  # type: ignore[attr-defined]


def test_being_told_to_end_is_an_interruption() -> None:
    script = (
        "import os, signal, sys, time\n"
        "from argus_bed.cli import main, project\n"
        "project.files = lambda name: os.kill(os.getpid(), signal.SIGTERM) or time.sleep(30)\n"
        "sys.argv = ['argus-bed', 'init', 'here']\n"
        "main()\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 130, ran.stderr
    assert "interrupted" in ran.stderr


def test_a_terminal_without_the_characters(folder: Path) -> None:
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ran = shell("init", "m\u00fc \u6f22", **ascii_only)
    assert ran.returncode == 0, ran.stderr
    assert (folder / "m\u00fc \u6f22" / "workload.py").is_file()


def test_names_too_long_to_be_files(argus: Callable[..., object], folder: Path) -> None:
    result = argus("next", "--workload", "x" * 3000 + ".py")
    assert result.code == 2  # type: ignore[attr-defined]
    assert "too long" in result.err  # type: ignore[attr-defined]
    assert len(result.err) < 500  # type: ignore[attr-defined]
    for study, said in (("", "at least 1"), ("x" * 3000, "at most 200")):
        result = argus("status", "--study", study)
        assert result.code == 2  # type: ignore[attr-defined]
        assert result.err.startswith("argus-bed: --study: [study] name")  # type: ignore[attr-defined]
        assert said in result.err  # type: ignore[attr-defined]
        assert len(result.err) < 500  # type: ignore[attr-defined]
