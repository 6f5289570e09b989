"""The options that many commands share, and what they open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from argus_bed.config import Config
    from argus_bed.study.engine import Study

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        envvar="ARGUS_BED_CONFIG",
        show_default="the nearest argus-bed.toml here or above",
        help="Settings of the study.",
    ),
]
StudyOption = Annotated[
    str | None, typer.Option("--study", "-s", help="Name of the study in the ledger.")
]
LedgerOption = Annotated[
    str | None,
    typer.Option("--ledger", help="Path of a SQLite file, or a database address."),
]
WorkloadOption = Annotated[
    str | None,
    typer.Option("--workload", "-w", help="A file, or package.module:name."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override any key: policy.decide_at=0.99."),
]


def read(
    config: Path | None,
    *,
    study: str | None = None,
    ledger: str | None = None,
    workload: str | None = None,
    sets: list[str] | None = None,
) -> Config:
    """The settings of this call. Raises as `config.load`."""
    from argus_bed.config import load

    flags = {"study.name": study, "study.ledger": ledger, "study.workload": workload}
    return load(config, flags=flags, sets=sets or ())


@contextmanager
def opened(settings: Config) -> Iterator[Study]:
    """The study that the settings describe, closed at the end."""
    from argus_bed.study import open_study

    with open_study(
        settings.study.name,
        workload=settings.needed_workload,
        ledger=settings.ledger,
        hypotheses=settings.study.hypotheses,
        probes=settings.study.probes,
        policy=settings.policy,
        seed=settings.study.seed,
        max_causes=settings.study.max_causes,
        target=settings.study.target,
        folders=settings.folders,
    ) as study:
        yield study
