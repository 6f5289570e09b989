"""``init``, ``check`` and ``doctor``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Argus = Callable[..., Any]


def test_init_writes_two_files_once(argus: Argus, folder: Path) -> None:
    facts = argus("init", "--format", "json").json
    assert facts["written"] == ["argus-bed.toml", "workload.py"]
    (folder / "workload.py").write_text("mine")
    (folder / "argus-bed.toml").unlink()
    again = argus("init")
    assert again.code == 2
    assert "workload.py exists already; nothing was written" in again.err
    assert not (folder / "argus-bed.toml").exists()
    assert (folder / "workload.py").read_text() == "mine"
    assert argus("init", "--force").code == 0
    assert (folder / "workload.py").read_text() != "mine"


def test_init_makes_the_folder(argus: Argus, folder: Path) -> None:
    assert argus("init", "new/er").code == 0
    assert (folder / "new" / "er" / "argus-bed.toml").is_file()


def test_init_where_nothing_can_be_written(argus: Argus, folder: Path) -> None:
    (folder / "file").write_text("")
    for where in ("file", "file/below", "/proc/nowhere"):
        result = argus("init", where)
        assert result.code == 5, result
        assert "cannot write into" in result.err
