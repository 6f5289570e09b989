"""``probes`` and ``hypotheses``: the library and the user's own folders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argus_bed.errors import ConfigError

Argus = Callable[..., Any]

OWN = """
from argus_bed import hypothesis

@hypothesis(claim="Mine alone.", part="thread", confused_with=["gil_held"])
def mine_alone(step):
    step.extends(step.positive("extra", median=0.1, spread=1.0))
"""


@pytest.fixture
def own(folder: Path) -> Path:
    (folder / "mine").mkdir()
    (folder / "argus-bed.toml").write_text('[study]\nfolders = ["mine"]\n')
    return folder / "mine"


@pytest.mark.parametrize("what", ["probes", "hypotheses"])
def test_lists_are_tables_and_objects(argus: Argus, folder: Path, what: str) -> None:
    listed = argus(what, "list", "--format", "json").json
    assert listed["schema"] == f"argus-bed/{what}/1"
    names = [entry["name"] for entry in listed[what]]
    assert names == sorted(names)
    table = argus(what, "list")
    assert table.code == 0
    assert table.err == ""
    for name in names:
        assert name in table.out


def test_describe_says_everything(argus: Argus, folder: Path) -> None:
    facts = argus("hypotheses", "describe", "gil_held", "--format", "json").json
    assert facts["schema"] == "argus-bed/hypothesis/1"
    assert facts["name"] == "gil_held"
    table = argus("hypotheses", "describe", "gil_held").out
    for word in ("claim", "signature", "intervention", "sources"):
        assert word in table


def test_the_format_can_come_from_the_environment(
    argus: Argus, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGUS_BED_FORMAT", "json")
    assert argus("hypotheses", "describe", "gc_pause").json["name"] == "gc_pause"


def test_own_files_are_found(argus: Argus, own: Path) -> None:
    (own / "mine_alone.py").write_text(OWN)
    facts = argus("hypotheses", "describe", "mine_alone", "--format", "json").json
    assert facts["confused_with"] == ["gil_held"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def broken(:\n    pass\n", "broken.py, line 1: invalid syntax"),
        ("\nimport nothing_of_that_name\n", "broken.py, line 2: ModuleNotFoundError"),
        ("raise RuntimeError('boom')\n", "broken.py, line 1: RuntimeError: boom"),
        (
            "from argus_bed import hypothesis\n@hypothesis(claim=' ', part='none')\n"
            "def broken(step): ...\n",
            "a hypothesis needs a claim",
        ),
    ],
)
@pytest.mark.parametrize("what", ["probes", "hypotheses"])
def test_a_file_that_does_not_load_is_named(
    argus: Argus, own: Path, what: str, text: str, said: str
) -> None:
    (own / "broken.py").write_text(text)
    result = argus(what, "list")
    assert result.code == 2
    assert said in result.err
    assert "Traceback" not in result.err
    assert result.out == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("hypotheses", "describe", "gil_hold"), "did you mean 'gil_held'?"),
        (("probes", "describe", "nothing_like_it"), "unknown probe 'nothing_like_it'"),
        (("probes", "list", "--config", "none.toml"), "none.toml: no such file"),
        (("probes", "list", "--set", "study.folder=x"), "did you mean 'study.folders'?"),
        (("probes", "list", "--set", "folders=nowhere"), "no such folder"),
    ],
)
def test_names_that_nothing_bears(
    argus: Argus, folder: Path, words: tuple[str, ...], said: str
) -> None:
    result = argus(*words)
    assert result.code == 2
    assert said in result.err


@pytest.mark.parametrize(("text", "said"), [("x = (\n", "line 1"), ("\n\n1/0\n", "line 3: Zero")])
def test_a_file_of_ones_own_that_does_not_load(
    argus: Callable[..., Any], folder: Path, text: str, said: str
) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "bad.py").write_text(text)
    result = argus("probes", "list", "--set", "study.folders=mine")
    assert result.code == 2
    assert said in result.err


def test_the_line_is_named_for_a_relative_folder(folder: Path) -> None:
    from argus_bed.discovery import load_file

    (folder / "bad.py").write_text("\n\nraise ValueError('one\\ntwo')\n")
    with pytest.raises(ConfigError, match=r"^bad\.py, line 3: ValueError: one two$"):
        load_file(Path("bad.py"))


def test_a_hypothesis_that_does_not_build_is_named() -> None:
    from argus_bed.anatomy import Anatomy
    from argus_bed.frame import BASELINE, CANDIDATE, Condition, Frame
    from argus_bed.hypothesis import hypothesis

    @hypothesis(claim="It breaks.", part="thread")
    def broken(step: Anatomy) -> None:
        raise ValueError("one\ntwo")

    frame = Frame("step_time", (Condition(BASELINE), Condition(CANDIDATE)), (), ())
    with pytest.raises(
        ConfigError, match=r"hypothesis 'broken' does not build: ValueError: one two, at .*line"
    ):
        broken.model(frame)
