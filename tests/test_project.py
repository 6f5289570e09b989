"""The house rules: public names, which room may use which, one file an extension."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import argus_bed
from argus_bed import hypothesis as decorator
from argus_bed import promises
from argus_bed.doctor import HYPOTHESIS_TEXTS, PROBE_TEXTS, blanks
from argus_bed.frame import Cell, Condition, Frame
from argus_bed.hypothesis import Hypothesis
from argus_bed.hypothesis import catalogue as hypotheses
from argus_bed.probe import Probe, Target
from argus_bed.probe import catalogue as probes

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "argus_bed"
HEAVY = ("torch", "pymc", "pytensor", "arviz", "sqlalchemy", "botorch", "nutpie")

# From the top floor to the ground; a room may use its own floor's neighbours and what lies
# below, never what lies above.
FLOORS = (
    {"cli", "mcp", "config", "doctor", "promises", "__init__"},
    {"study", "zoo", "testing"},
    {"design", "inference", "execution", "ledger", "report", "readers"},
    {
        "anatomy",
        "frame",
        "contrast",
        "hypothesis",
        "probe",
        "workload",
        "discovery",
        "models",
        "probes",
    },
    {"quantity", "errors"},
)
# Records of a study are plain data that the ledger keeps and the report shows; like the
# vocabulary they belong to every floor above it.
GROUND = {"records"}


def _floor(room: str) -> int:
    for level, rooms in enumerate(FLOORS):
        if room in rooms:
            return level
    raise AssertionError(f"{room} has no floor; say where it belongs in FLOORS")


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _files() -> list[tuple[str, Path]]:
    """(room, file) of everything that ships."""
    inside = [
        (path.relative_to(SOURCE).parts[0].removesuffix(".py"), path)
        for path in sorted(SOURCE.rglob("*.py"))
        if "templates" not in path.parts
    ]
    outside = [(room, p) for room in ("models", "probes") for p in (ROOT / room).glob("*.py")]
    return inside + outside


def test_imports_run_one_way() -> None:
    wrong = []
    for room, path in _files():
        for module in _imports(ast.parse(path.read_text(encoding="utf-8"))):
            parts = module.split(".")
            if parts[0] != "argus_bed" or len(parts) == 1 or ".".join(parts[1:3]) in GROUND:
                continue
            if room != parts[1] and _floor(parts[1]) < _floor(room):
                wrong.append(f"{path.relative_to(ROOT)} imports {module}")
    assert not wrong, "\n".join(wrong)


def test_hypotheses_and_probes_import_only_the_vocabulary() -> None:
    vocabulary = {"quantity", "anatomy", "frame", "hypothesis", "probe", "errors", "contrast"}
    for room, path in _files():
        if room not in ("models", "probes"):
            continue
        for module in _imports(ast.parse(path.read_text(encoding="utf-8"))):
            parts = module.split(".")
            own = room == "probes" and parts[:2] == ["argus_bed", "probes"]
            if parts[0] == "argus_bed" and not own:
                assert parts[1] in vocabulary | {"workload"}, f"{path.name} imports {module}"


def test_public_names_are_those_announced() -> None:
    for name in argus_bed.__all__:
        assert getattr(argus_bed, name) is not None, name
    assert sorted(argus_bed.__all__) == dir(argus_bed)
    assert len(argus_bed.__all__) <= 24
    with pytest.raises(AttributeError, match="no attribute 'Studdy'"):
        _ = argus_bed.Studdy


def test_the_decorator_is_not_hidden_by_its_module() -> None:
    assert callable(decorator)
    script = "import argus_bed.hypothesis; from argus_bed import hypothesis; hypothesis(claim='x')"
    script = script.replace("'x'", "'x', part='none'")
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("module", ["argus_bed", "argus_bed.cli", "argus_bed.workload"])
def test_import_is_light(module: str) -> None:
    script = f"import sys, {module}; print(*(m for m in {HEAVY!r} if m in sys.modules))"
    ran = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert ran.stdout.strip() == ""


def test_every_room_is_packaged() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = set(project["tool"]["setuptools"]["packages"])
    rooms = {
        ".".join(("argus_bed", *path.parent.relative_to(SOURCE).parts))
        for path in SOURCE.rglob("*.py")
        if "templates" not in path.parts
    } | {"argus_bed.models", "argus_bed.probes"}
    assert listed == rooms


@pytest.mark.slow
def test_the_wheel_holds_everything(tmp_path: Path) -> None:
    """Built from a copy, because setuptools leaves a build folder in its source."""
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    for name in filter(None, tracked):
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    subprocess.run(["uv", "build", "--wheel", "-q", "-o", "out"], cwd=tmp_path, check=True)
    (wheel,) = (tmp_path / "out").glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    for name in filter(None, tracked):
        top, _, rest = name.partition("/")
        if top in ("models", "probes"):
            assert f"argus_bed/{name}" in packed, name
        elif name.startswith("src/argus_bed/"):
            assert rest in packed, name


def test_what_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    declared = {re.split(r"[<>=~!\[]", d)[0] for d in project["project"]["dependencies"]}
    spelled = {"pynvml": "nvidia-ml-py"}
    used = {
        module.split(".")[0]: path.relative_to(ROOT)
        for _, path in _files()
        for module in _imports(ast.parse(path.read_text(encoding="utf-8")))
    }
    outside = {m: p for m, p in used.items() if m not in sys.stdlib_module_names | {"argus_bed"}}
    missing = {m: str(p) for m, p in outside.items() if spelled.get(m, m) not in declared}
    assert not missing


def test_every_tested_version_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pinned = {
        c.partition("==")[0].lower() for c in project["tool"]["uv"]["constraint-dependencies"]
    }
    wanted = project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    missing = {w.partition(">=")[0].lower() for w in wanted} - pinned
    assert not missing


@pytest.mark.promise("A38")
@pytest.mark.promise("A39")
def test_every_probe_declares_all_its_texts() -> None:
    known = probes()
    assert len(known) >= 10
    assert blanks(known, PROBE_TEXTS) == []
    assert all(p.level for p in known.values())


@pytest.mark.promise("A38")
def test_every_hypothesis_declares_all_its_texts() -> None:
    known = hypotheses()
    assert len(known) >= 16
    special = ("no_effect", "none_of_these")
    ordinary = {n: h for n, h in known.items() if n not in special}
    assert blanks(ordinary, HYPOTHESIS_TEXTS) == []
    assert all(known[name].claim for name in special)
    assert all(rival in known for h in known.values() for rival in h.confused_with)


def test_a_blank_text_is_found() -> None:
    blank = Hypothesis("x", claim="", changes=lambda step: None, part="none")
    assert "x.claim" in blanks({"x": blank}, HYPOTHESIS_TEXTS)


def _code(document: str) -> dict[str, str]:
    """Python blocks of a document by the file that their first line names."""
    text = (ROOT / document).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n# (\S+)\n(.*?)```", text, flags=re.DOTALL)
    return {Path(name).name: code for name, code in blocks}


def test_one_new_file_is_a_new_hypothesis_or_probe(tmp_path: Path) -> None:
    """The examples of CONTRIBUTING, saved in a user's folder; nothing else is edited."""
    for name, code in _code("CONTRIBUTING.md").items():
        (tmp_path / name).write_text(code)
    (tmp_path / "_notes.py").write_text("raise RuntimeError('never read')")
    found = hypotheses([str(tmp_path)])["cold_after_deploy"]
    assert isinstance(found, Hypothesis)
    assert found.part == "memory path"
    assert blanks({found.name: found}, HYPOTHESIS_TEXTS) == []
    probe = probes([str(tmp_path)])["load_average"]
    assert isinstance(probe, Probe)
    assert blanks({probe.name: probe}, PROBE_TEXTS) == []
    assert "cold_after_deploy" not in hypotheses()


def test_the_example_hypothesis_is_a_model(tmp_path: Path) -> None:
    path = tmp_path / "cold_after_deploy.py"
    path.write_text(_code("CONTRIBUTING.md")[path.name])
    arms = (Condition("baseline"), Condition("candidate"))
    cells = tuple(Cell("fault_time", arm.name) for arm in arms)
    frame = Frame("step_time", arms, cells=cells)
    model = hypotheses([str(tmp_path)])["cold_after_deploy"].model(frame)
    assert model["cells"].type.ndim == 1
    assert "cold_after_deploy_extra" in model.named_vars or "extra" in str(model.free_RVs)


def test_the_example_probe_reads_what_it_announced(tmp_path: Path) -> None:
    path = tmp_path / "load_average.py"
    path.write_text(_code("CONTRIBUTING.md")[path.name])
    probe = probes([str(tmp_path)])["load_average"]
    arms = (Condition("baseline"), Condition("candidate"))
    (plan,) = probe.plans(Target(Frame("step_time", arms), step_s=0.01))
    read = probe.run(plan, None, seed=0)  # type: ignore[arg-type] - it needs no workload
    assert [s.cell for s in read.samples] == [m.cell for m in plan.measurements]


def test_promises_are_numbered_without_a_gap() -> None:
    assert list(promises.promises()) == [f"A{i:02d}" for i in range(1, 75)]
    shown = promises.marked(ROOT)
    assert "tests/test_project.py::test_every_probe_declares_all_its_texts" in shown["A38"]


def test_a_mark_for_no_promise_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    source = 'import pytest\n@pytest.mark.promise("A99")\ndef test_x(): ...\n'
    (tmp_path / "tests" / "test_x.py").write_text(source)
    with pytest.raises(argus_bed.errors.UnknownName, match="A99"):
        promises.marked(tmp_path)
