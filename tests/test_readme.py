"""What the documents say can be typed can be typed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(document: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", text(document)):
        if "://" not in target:
            assert (ROOT / target).exists(), target


def test_every_command_named_exists() -> None:
    from typer.main import get_command

    from argus_bed.cli import app

    commands: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
    both = text("README.md") + text("CONTRIBUTING.md")
    named = set(re.findall(r"(?:uv run |`)argus-bed ([a-z]+)", both))
    rows = re.findall(r"(?m)^\| (`.*`) \|", text("README.md"))
    named |= {words.split()[0] for row in rows for words in re.findall(r"`([a-z][^`]*)`", row)}
    named -= {"decided", "no_effect", "undetermined", "model_inadequate", "out_of_budget"}
    assert named <= set(commands), named - set(commands)


def test_ci_runs_the_test_command_of_the_readme() -> None:
    script = text(".ci/run")
    assert "uv run pytest" in text("README.md")
    lines = [line for line in script.splitlines() if line and not line.startswith("#")]
    assert lines[-1] == "uv run pytest"
    assert "://" not in script


@pytest.mark.slow
def test_the_loop_of_the_readme_runs(argus: Callable[..., Any], folder: Path) -> None:
    """The first Python example, in a folder as `init` leaves it."""
    assert argus("init").code == 0
    example, *_ = re.findall(r"```python\n(.*?)```", text("README.md"), flags=re.DOTALL)
    exec(compile(example, "README.md", "exec"), {"__name__": "example"})
    assert argus("status", "--study", "why-slow").code == 0
