"""Settings: precedence, and a clear word about everything that cannot be meant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from argus_bed.config import FILE_NAME, MAX_BYTES, Config, find, load
from argus_bed.errors import ArgusBedError, ConfigError, FileRejected


def write(folder: Path, text: str) -> Path:
    path = folder / FILE_NAME
    path.write_text(text, encoding="utf-8")
    return path


def loaded(folder: Path, text: str) -> Config:
    return load(write(folder, text), environ={})


def test_flags_beat_environment_beats_file_beats_defaults(folder: Path) -> None:
    path = write(folder, '[study]\nname = "file"\nseed = 1\n[policy]\nmax_runs = 5\n')
    environ = {"ARGUS_BED_SEED": "2", "ARGUS_BED_MAX_RUNS": "6", "HOME": "/x"}
    config = load(path, environ=environ, sets=["max_runs=7"], flags={"study.ledger": None})
    assert (config.study.name, config.study.seed) == ("file", 2)
    assert config.policy.max_runs == 7
    assert config.policy.decide_at == 0.95
    assert load(path, environ=environ, flags={"study.name": "flag"}).study.name == "flag"


def test_nothing_given_is_all_defaults(folder: Path) -> None:
    config = load(environ={})
    assert config.file is None
    assert config.study.name == "study"
    assert config.workload is None
    assert Path(config.ledger) == Path(".argus-bed/ledger.db")


def test_the_file_is_found_above_and_its_paths_start_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, '[study]\nworkload = "work/load.py"\nfolders = ["mine"]\n')
    (folder / "mine").mkdir()
    (folder / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(folder / "deep" / "er")
    config = load(environ={})
    assert Path(str(config.workload)).resolve() == (folder / "work" / "load.py").resolve()
    assert Path(config.folders[0]).resolve() == (folder / "mine").resolve()
    flagged = load(environ={}, flags={"study.workload": "here.py:mine"})
    assert Path(str(flagged.workload)).resolve() == Path("here.py:mine").resolve()
    assert find(Path(folder.anchor)) is None


def test_a_module_and_an_address_stay_as_they_are(folder: Path) -> None:
    text = '[study]\nworkload = "package.module:name"\nledger = "postgresql://host/db"\n'
    config = loaded(folder, text)
    assert config.workload == "package.module:name"
    assert config.ledger == "postgresql://host/db"


def test_durations_take_a_unit(folder: Path) -> None:
    assert loaded(folder, '[policy]\nbudget_s = "10min"\n').policy.budget_s == 600
    assert load(environ={"ARGUS_BED_BUDGET_S": "90"}, start=folder / "none").policy.budget_s == 90
    assert load(environ={}, sets=["policy.budget_s=2 h"]).policy.budget_s == 7200


def test_lists_are_written_with_commas_outside_the_file(folder: Path) -> None:
    environ = {"ARGUS_BED_HYPOTHESES": "gil_held, gc_pause", "ARGUS_BED_APPROVE": ""}
    config = load(environ=environ)
    assert config.study.hypotheses == ["gil_held", "gc_pause"]
    assert config.policy.approve == frozenset()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[studdy]\n", "line 1: unknown section 'studdy'; did you mean 'study'?"),
        ("[study]\n\nworklod = 'a.py'\n", "line 3: unknown key 'worklod' in [study]; did you mean"),
        ("seed = 3\n", "line 1: unknown key 'seed'; 'seed' goes under [study]"),
        ("[study]\nmax_runs = 3\n", "line 2: unknown key 'max_runs' in [study]; it goes under"),
        ("study = 3\n", "'study' is a section; write [study]"),
        ("[study]\nseed = 'three'\n", "line 2: [study] seed = 'three': a whole number is wanted"),
        ("[study]\nseed = true\n", "[study] seed = True: a whole number is wanted"),
        ("[study]\nseed = -1\n", "[study] seed = -1: it must be greater than or equal to 0"),
        ("[study]\nname = ''\n", "[study] name = ''"),
        ("[study]\nhypotheses = 'gil_held'\n", "a list is wanted"),
        ("[study]\nfolders = ['nowhere']\n", "no such folder"),
        ("[study]\nmax_causes = 3\n", "[study] max_causes = 3: it must be 1 or 2"),
        ("[study]\ntarget = 'caus'\n", "it must be 'cause', 'parameters' or 'joint'"),
        ("[policy]\nbudget_s = nan\n", "line 2: [policy] budget_s = nan"),
        ("[policy]\nbudget_s = inf\n", "[policy] budget_s = inf"),
        ("[policy]\nbudget_s = -3\n", "[policy] budget_s = -3: it must be greater than 0"),
        ("[policy]\nbudget_s = '3 apples'\n", "not a duration"),
        ("[policy]\ndecide_at = 1.5\n", "[policy] decide_at = 1.5: it must be less than 1"),
        ("[policy]\napprove = ['fire']\n", "[policy] approve"),
        ("[study\n", "not valid TOML"),
        ("[study]\nseed = 1\nseed = 2\n", "not valid TOML"),
        ("", "is empty; write [study]"),
        ("  \n", "is empty"),
    ],
)
def test_what_cannot_be_meant_is_said(folder: Path, text: str, said: str) -> None:
    with pytest.raises(ArgusBedError) as caught:
        _ = loaded(folder, text).folders
    assert said in str(caught.value)
    assert FILE_NAME in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("environ", "sets", "said"),
    [
        ({"ARGUS_BED_LEGDER": "x"}, [], "ARGUS_BED_LEGDER in the environment; did you mean ARG"),
        ({"ARGUS_BED_SEED": "x"}, [], "ARGUS_BED_SEED: [study] seed = 'x': a whole number"),
        ({}, ["seed"], "write --set section.key=value"),
        ({}, ["policy.sed=1"], "unknown key 'policy.sed'"),
        ({}, ["policy.seed=1"], "did you mean 'study.seed'?"),
        ({}, ["study.seed=1.5"], "--set study.seed: [study] seed = 1.5: a whole number"),
        ({}, ["decide_at=high"], "--set decide_at: [policy] decide_at = 'high': a number"),
    ],
)  # fmt: skip
def test_flags_and_environment_are_named(
    folder: Path, environ: dict[str, str], sets: list[str], said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(environ=environ, sets=sets)
    assert said in str(caught.value)


def test_files_that_are_none(folder: Path) -> None:
    path = folder / FILE_NAME
    path.mkdir()
    with pytest.raises(FileRejected, match="is a folder"):
        load(environ={})
    path.rmdir()
    path.write_bytes(b"[study]\nname = '\xff'\n")
    with pytest.raises(FileRejected, match="not UTF-8 text: byte 16 is 0xff"):
        load(environ={})
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(FileRejected, match="more than 1,000,000 are not read"):
        load(environ={})
    path.unlink()
    path.symlink_to(path)
    with pytest.raises(FileRejected, match="too many levels"):
        load(environ={})
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(FileRejected, match="not an ordinary file"):
        load(environ={})
    path.unlink()
    write(folder, "[study]\n")
    with pytest.raises(FileRejected, match=r"no such file; did you mean 'argus-bed.toml'"):
        load(folder / "argusbed.toml", environ={})


def test_a_byte_order_mark_is_passed_over(folder: Path) -> None:
    (folder / FILE_NAME).write_bytes(b"\xef\xbb\xbf[study]\nseed = 4\n")
    assert load(environ={}).study.seed == 4


def test_the_template_is_valid_and_shows_the_defaults(folder: Path) -> None:
    import re

    from argus_bed import config as module

    template = Path(module.__file__).parent / "templates" / FILE_NAME
    text = template.read_text(encoding="utf-8")
    (folder / "mine").mkdir()
    plain = loaded(folder, text)
    assert plain.study.workload == "workload.py"
    everything = loaded(folder, re.sub(r"(?m)^# (?=\w+ = )", "", text))
    fields = {**everything.study.model_dump(), **everything.policy.model_dump()}
    spelled = set(re.findall(r"(?m)^(?:# )?(\w+) = ", text))
    assert spelled <= set(fields)
    shown = {k: v for k, v in fields.items() if k in spelled}
    defaults = {
        key: value
        for kind in module.SECTIONS.values()
        for key, value in kind().model_dump().items()
    }
    differs = {k for k, v in shown.items() if v != defaults[k]}
    assert differs == {"workload", "hypotheses", "probes", "folders", "budget_s"}
