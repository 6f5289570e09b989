"""What all tests share: seeds, threads, a clean environment, and the command line."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# Two threads, as CI has. Torch and every BLAS read this when they are loaded.
for _variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_variable, "2")
os.environ.setdefault("MPLBACKEND", "agg")


@pytest.fixture(autouse=True)
def _same_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed the global generators, and hide the developer's own settings."""
    random.seed(0)
    np.random.seed(0)
    for variable in list(os.environ):
        if variable.startswith("ARGUS_BED_"):
            monkeypatch.delenv(variable)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Result:
    """What a command left: exit code, stdout, stderr, and its JSON if it wrote one."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> dict[str, Any]:
        def refuse(constant: str) -> Any:
            raise AssertionError(f"{constant} in the output")

        loaded = json.loads(self.out, parse_constant=refuse)
        assert loaded["schema"].startswith("argus-bed/")
        return dict(loaded)

    def __repr__(self) -> str:
        return f"<exit {self.code}>\n{self.out}\n-- stderr --\n{self.err}"


@pytest.fixture
def argus() -> Callable[..., Result]:
    """Run ``argus-bed`` in this process: ``argus("probes", "list")``."""
    from typer.testing import CliRunner

    from argus_bed.cli import app

    def call(*words: str) -> Result:
        found = CliRunner().invoke(app, list(words), prog_name="argus-bed")
        return Result(found.exit_code, found.stdout, found.stderr)

    return call
