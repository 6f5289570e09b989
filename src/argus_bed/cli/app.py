"""The application: its commands by name, and how each kind of error leaves it."""

from __future__ import annotations

import io
import os
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from argus_bed.cli import cases, lists, loop, output, project, storage
from argus_bed.errors import ArgusBedError, UsageError

INTERRUPTED = 130
INTERNAL = 1

# Typer's own complaints (a bad flag, an exit) pass through: typer words them. Their base
# class is not exported under a public name.
_TYPER: tuple[type[BaseException], ...] = (
    typer.Exit,
    typer.Abort,
    next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException"),
)


class Commands(TyperGroup):
    """The top-level group. No traceback reaches a user for something foreseen."""

    def invoke(self, ctx: Any) -> Any:
        output.reset()
        words = [*ctx._protected_args, *ctx.args]
        try:
            return super().invoke(ctx)
        except ArgusBedError as error:
            if ctx.params.get("debug"):
                traceback.print_exc()
            output.fail(error, error.exit_code)
            raise typer.Exit(error.exit_code) from error
        except KeyboardInterrupt as error:
            output.say("argus-bed: interrupted; what had been told is kept")
            raise typer.Exit(INTERRUPTED) from error
        except BrokenPipeError as error:
            # whoever read our output has gone; nobody is left to tell
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(INTERNAL) from error
        except _TYPER as error:
            if output.wants_json(words) and (said := getattr(error, "format_message", None)):
                output.complain(UsageError(said()), UsageError.exit_code)
            raise
        except Exception as error:
            self._unforeseen(error, debug=bool(ctx.params.get("debug")))
            raise typer.Exit(INTERNAL) from error

    @staticmethod
    def _unforeseen(error: Exception, *, debug: bool) -> None:
        summary = f"{type(error).__name__}: {error}".splitlines()[0]
        if debug:
            traceback.print_exc()
            output.fail(RuntimeError(f"internal error: {summary}"), INTERNAL)
            return
        handle, name = tempfile.mkstemp(prefix="argus-bed-", suffix=".log")
        with os.fdopen(handle, "w") as log:
            log.write(f"{sys.argv}\n\n{traceback.format_exc()}")
        text = f"internal error: {summary} (all of it in {Path(name)}, or with --debug)"
        output.fail(RuntimeError(text), INTERNAL)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help=(
        "Why is it slow? Rival explanations become models of what could be measured; "
        "the measurement that separates them best for its price is run, until there is "
        "a verdict or an honest 'cannot be told'."
    ),
    epilog="Start with [bold]argus-bed demo[/bold], or [bold]argus-bed init[/bold] in your folder.",
)


def _version(wanted: bool) -> None:
    if wanted:
        from argus_bed import __version__

        typer.echo(f"argus-bed {__version__}")
        raise typer.Exit


@app.callback()
def _settings(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="ARGUS_BED_DEBUG", help="Show tracebacks.")
    ] = False,
) -> None:
    """Options of every command."""


project.register(app)
loop.register(app)
cases.register(app)
lists.register(app)
storage.register(app)


def main() -> None:
    """Entry point of ``argus-bed``. Being told to end is an interruption like any other."""
    for name in ("SIGTERM", "SIGHUP"):
        if signal.getsignal(getattr(signal, name)) is signal.SIG_DFL:  # nohup ignores one
            signal.signal(getattr(signal, name), signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that has no such character
            stream.reconfigure(errors="replace")
    app(prog_name="argus-bed")
