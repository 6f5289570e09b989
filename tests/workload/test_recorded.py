"""Recorded cases: what is refused, what is read, and that labels mean nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argus_bed.errors import FileRejected
from argus_bed.frame import BASELINE, CANDIDATE, Cell
from argus_bed.records import Verdict
from argus_bed.study.replay import study_of
from argus_bed.workload.recorded import MAX_BYTES, Case, RecordedSystem, load_case

OWN = sorted((Path(__file__).parents[1] / "cases").glob("*.json"))
SHARED = Path(__file__).parents[3] / "shared" / "cases"
needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason=f"the recorded cases are not at {SHARED}"
)


def raw(name: str = "lock-kept-while-waiting") -> dict[str, Any]:
    path = next(p for p in OWN if p.stem == name)
    return dict(json.loads(path.read_text()))


def loaded(found: dict[str, Any]) -> Case:
    return Case.model_validate(found)


# -- what is refused --------------------------------------------------------------------


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileRejected, match=r"nowhere\.json: No such file"):
        load_case(tmp_path / "nowhere.json")


def test_a_folder_is_no_case(tmp_path):
    with pytest.raises(FileRejected, match="directory"):
        load_case(tmp_path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not a JSON case file"),
        (b"  \n", "not a JSON case file"),
        (b"\x89PNG\r\n\x1a\n\x00\xff\xfe", "not a JSON case file"),
        (b'{"schema": ', "not a JSON case file"),
        (b"[" * 100_000, "not a JSON case file"),
        (b"[]", "the top level"),
        (b"null", "the top level"),
        (b'{"name": "a", "name": "b"}', "'name' stands twice"),
    ],
)
def test_what_is_no_case_file_is_refused(tmp_path, content, says):
    path = tmp_path / "case.json"
    path.write_bytes(content)
    with pytest.raises(FileRejected, match=says) as caught:
        load_case(path)
    assert "case.json" in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_a_huge_file_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(FileRejected, match=str(MAX_BYTES)):
        load_case(path)


def wrong_schema(c: dict[str, Any]) -> None:
    c["schema"] = "argus-bed/case/2"


def no_metric(c: dict[str, Any]) -> None:
    del c["metric"]


def unknown_key(c: dict[str, Any]) -> None:
    c["probes"][0]["colour"] = "blue"


def no_probes(c: dict[str, Any]) -> None:
    c["probes"] = []


def negative_cost(c: dict[str, Any]) -> None:
    c["probes"][1]["cost_s"] = -1


def no_values(c: dict[str, Any]) -> None:
    c["probes"][0]["outcomes"][0]["values"] = []


def words_for_values(c: dict[str, Any]) -> None:
    c["probes"][0]["outcomes"][0]["values"] = ["fast"]


def not_a_number(c: dict[str, Any]) -> None:
    c["probes"][0]["outcomes"][0]["values"] = [float("nan")]


def infinite_cost(c: dict[str, Any]) -> None:
    c["probes"][0]["cost_s"] = float("inf")


def unknown_kind(c: dict[str, Any]) -> None:
    c["stages"]["parse"]["kind"] = "magic"


def too_many_values(c: dict[str, Any]) -> None:
    c["probes"][0]["outcomes"][0]["values"] = [0.1] * 25


@pytest.mark.parametrize(
    ("spoil", "field"),
    [
        (wrong_schema, "schema"),
        (no_metric, "metric"),
        (unknown_key, r"probes\.0\.colour"),
        (no_probes, "probes"),
        (negative_cost, r"probes\.1\.cost_s"),
        (no_values, r"probes\.0\.outcomes\.0\.values"),
        (words_for_values, r"probes\.0\.outcomes\.0\.values"),
        (not_a_number, r"probes\.0\.outcomes\.0\.values|NaN"),
        (infinite_cost, r"probes\.0\.cost_s|Infinity"),
        (unknown_kind, r"stages\.parse\.kind"),
        (too_many_values, r"probes\.0\.outcomes\.0\.values"),
    ],
)
def test_the_message_names_the_field(tmp_path, spoil: Callable[[dict[str, Any]], None], field):
    found = raw()
    spoil(found)
    path = tmp_path / "case.json"
    path.write_text(json.dumps(found))
    with pytest.raises(FileRejected, match=field):
        load_case(path)


def unknown_condition(c: dict[str, Any]) -> None:
    c["probes"][0]["outcomes"][0]["condition"] = "candidat"


def unknown_stage(c: dict[str, Any]) -> None:
    c["probes"][0]["outcomes"][0]["stage"] = "pasre"


def no_arm(c: dict[str, Any]) -> None:
    del c["conditions"]["candidate"]


def no_intervention(c: dict[str, Any]) -> None:
    c["interventions"] = {}


def circular(c: dict[str, Any]) -> None:
    c["interventions"]["released"]["of"] = "released"


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (unknown_condition, "did you mean 'candidate'"),
        (unknown_stage, "did you mean 'parse'"),
        (no_arm, "no condition 'candidate'"),
        (no_intervention, "'released' has no intervention"),
        (circular, "'released' has no intervention"),
    ],
)
def test_a_case_that_contradicts_itself_is_refused(spoil, says):
    found = raw()
    spoil(found)
    with pytest.raises(FileRejected, match=says):
        RecordedSystem(loaded(found))


def unknown_quantity(c: dict[str, Any]) -> None:
    c["probes"][0]["outcomes"][0]["quantity"] = "step_tim"


def wrong_unit(c: dict[str, Any]) -> None:
    c["probes"][0]["outcomes"][0]["unit"] = "kg"


def unknown_need(c: dict[str, Any]) -> None:
    c["probes"][0]["needs"] = ["nobody's probe"]


def doubled_probe(c: dict[str, Any]) -> None:
    c["probes"][1]["name"] = c["probes"][0]["name"]


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (unknown_quantity, "step_time"),
        (wrong_unit, "kg"),
        (unknown_need, "nobody's probe"),
        (doubled_probe, "arms in turns"),
    ],
)
def test_a_case_that_could_not_be_played_is_refused_before_it_starts(spoil, says):
    found = raw()
    spoil(found)
    with pytest.raises(FileRejected, match=says):
        RecordedSystem(loaded(found))


# -- what is read -------------------------------------------------------------------------


def test_only_what_was_paid_for_is_seen():
    system = RecordedSystem(loaded(raw()))
    plans = {p.probe: p for p in system.plans({}, ())}
    assert set(plans) == {p["name"] for p in raw()["probes"]}
    found = raw()
    for probe in found["probes"]:
        for outcome in probe["outcomes"]:
            outcome["values"] = [v * 3 for v in outcome["values"]]
    other = RecordedSystem(loaded(found))
    assert other.plans({}, ()) == system.plans({}, ())  # a plan knows no outcome
    plan = plans["collector"]
    seen = {s.cell: s.values for s in system.execute(plan, 0).samples}
    assert seen == {
        Cell("gc_pause", BASELINE): (0.0002, 0.0001, 0.0002),
        Cell("gc_pause", CANDIDATE): (0.0002, 0.0002, 0.0001),
    }
    assert "collector" not in {p.probe for p in system.plans({}, ("collector",))}


def test_values_are_read_in_their_unit():
    found = raw()
    outcome = found["probes"][0]["outcomes"][0]
    outcome.update(unit="ms", values=[100.0, 101.0])
    system = RecordedSystem(loaded(found))
    plan = system.plans({}, ())[0]
    assert system.execute(plan, 0).samples[0].values == pytest.approx((0.1, 0.101))


def test_what_rests_on_others_waits_for_them():
    found = raw()
    found["probes"][0]["needs"] = ["collector"]
    system = RecordedSystem(loaded(found))
    assert "arms in turns" not in {p.probe for p in system.plans({}, ())}
    assert "arms in turns" in {p.probe for p in system.plans({}, ("collector",))}


@needs_shared
def test_every_shared_case_is_read():
    paths = sorted(SHARED.glob("*.json"))
    assert len(paths) == 12
    for path in paths:
        case = load_case(path)
        system = RecordedSystem(case)
        assert case.name == path.stem
        assert system.plans({}, ())
        assert {"no_effect", "none_of_these"} <= set(case.hypotheses)


# -- labels mean nothing --------------------------------------------------------------------


def relabel(case: Case, seed: int = 1) -> tuple[Case, dict[str, str]]:
    """The case with every label replaced and its prose dropped; and probe names, new to old.

    New labels sort in another order than the old ones. The arms keep their names.
    """
    rng = random.Random(seed)

    def renamed(old: list[str]) -> dict[str, str]:
        codes = [f"{rng.randrange(16**6):06x}" for _ in old]
        return dict(zip(old, codes, strict=True))

    conditions = renamed([c for c in case.conditions if c not in (BASELINE, CANDIDATE)])
    conditions |= {BASELINE: BASELINE, CANDIDATE: CANDIDATE}
    stages = renamed(list(case.stages))
    probes = renamed([p.name for p in case.probes])
    turned = list(case.interventions.values())
    knobs = renamed(sorted({i.knob for i in turned}))
    values = renamed(sorted({i.value for i in turned}))
    systems = renamed(sorted({i.system for i in turned if i.system}))

    def circumstance(when: str) -> str:
        words = when.split()
        if len(words) >= 4 and words[0] == "setting" and words[2] == "is":
            return " ".join((words[0], stages.get(words[1], words[1]), *words[2:]))
        return when

    plain = case.model_dump(by_alias=True)
    plain |= {
        "name": "x",
        "question": "?",
        "source": "",
        "verdict": {**plain["verdict"], "why": ""},
    }
    plain["conditions"] = {conditions[c]: "" for c in case.conditions}
    plain["stages"] = {stages[n]: {**s, "what": ""} for n, s in plain["stages"].items()}
    plain["interventions"] = {
        conditions[n]: {
            **i,
            "of": conditions[i["of"]],
            "knob": knobs[i["knob"]],
            "value": values[i["value"]],
            "system": systems.get(i["system"]),
        }
        for n, i in plain["interventions"].items()
    }
    for probe in plain["probes"]:
        probe["name"] = probes[probe["name"]]
        probe["note"] = ""
        probe["needs"] = [probes[n] for n in probe["needs"]]
        for effect in probe["side_effects"]:
            effect["when"] = circumstance(effect["when"])
        for outcome in probe["outcomes"]:
            outcome["condition"] = conditions[outcome["condition"]]
            outcome["stage"] = stages.get(outcome["stage"])
    return Case.model_validate(plain), {new: old for old, new in probes.items()}


def played(case: Case) -> tuple[Verdict, list[str]]:
    asked: list[str] = []
    with study_of(case)[0] as study:
        verdict = study.run(
            on_event=lambda kind, p: asked.append(p.probe) if kind == "proposal" else None
        )
    return verdict, asked


def test_nothing_of_the_labels_is_left():
    case = load_case(OWN[0])
    text = relabel(case)[0].model_dump_json()
    for probe in case.probes:
        assert probe.name not in text
    for condition in set(case.conditions) - {BASELINE, CANDIDATE}:
        assert f'"{condition}"' not in text


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=[] if "causes" in p.stem else pytest.mark.slow) for p in OWN],
    ids=lambda p: p.stem,
)
def test_other_labels_give_the_same_decisions(path):
    case = load_case(path)
    other, old = relabel(case)
    verdict, asked = played(case)
    again, asked_again = played(other)
    assert (again.status, again.causes) == (verdict.status, verdict.causes)
    kind = {p.name: p.kind for p in case.probes}
    assert [kind[old[p]] for p in asked_again] == [kind[p] for p in asked]
    assert dict(again.ranking) == pytest.approx(dict(verdict.ranking), abs=0.02)
    recorded = case.verdict
    assert (verdict.status.value, verdict.causes) == (recorded.status, recorded.causes)


@pytest.mark.slow
@needs_shared
@pytest.mark.parametrize(
    "path", sorted(SHARED.glob("*.json")) if SHARED.is_dir() else [], ids=lambda p: p.stem
)
def test_other_labels_give_the_same_verdict_on_shared_cases(path):
    case = load_case(path)
    verdict, _ = played(case)
    again, _ = played(relabel(case)[0])
    assert (again.status, again.causes) == (verdict.status, verdict.causes)


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(SHARED.glob("*.json")), ids=lambda p: p.stem)
def test_other_labels_give_the_same_verdict(path):
    """Plans that tie go by their key, so the order of asking may differ; the answer not."""
    case = load_case(path)
    verdict, _ = played(case)
    again, _ = played(relabel(case)[0])
    assert (again.status, set(again.causes)) == (verdict.status, set(verdict.causes))
