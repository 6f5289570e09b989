"""The notebooks run from top to bottom on recorded data, and come to what they say."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

HOME = Path(__file__).parents[1] / "notebooks"


def printed(notebook: nbformat.NotebookNode) -> str:
    return "".join(
        output.get("text", "")
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_the_gil_case_is_told_as_it_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("gil.ipynb", "gil-case.json"):
        shutil.copy(HOME / name, tmp_path)
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = nbformat.read(tmp_path / "gil.ipynb", as_version=4)
    client = NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    client.execute()
    told = printed(notebook)
    assert "decided gil_held" in told
    assert "establishes" in told
    shares = [float(s) for s in re.findall(r"^gil_held ([\d.]+)%$", told, re.MULTILINE)]
    assert len(shares) == 4
    assert shares[-1] < shares[1] < shares[0]
    pictures = [
        output
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]
    assert len(pictures) == 2


@pytest.mark.parametrize("path", sorted(HOME.glob("*.ipynb")), ids=lambda p: p.name)
def test_outputs_are_not_kept_in_the_repository(path: Path):
    cells = nbformat.read(path, as_version=4).cells
    assert all(not c.get("outputs") and not c.get("execution_count") for c in cells)
