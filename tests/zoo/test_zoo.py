from __future__ import annotations

import ast
import inspect
from dataclasses import fields
from statistics import median

import pytest

from argus_bed.execution import LocalBench
from argus_bed.hypothesis import catalogue
from argus_bed.probe import catalogue as probes
from argus_bed.zoo import ZOO


@pytest.mark.parametrize("name", sorted(ZOO))
def test_an_entry_and_its_twin_ask_the_same(name: str) -> None:
    entry = ZOO[name]
    faulty, twin = entry.load(), entry.load(fault_free=True)
    assert faulty.source == f"argus_bed.zoo.{name}:workload"
    assert faulty.arms != twin.arms
    same = {f.name for f in fields(faulty)} - {"arms", "source"}
    assert all(getattr(faulty, f) == getattr(twin, f) for f in same)
    known = catalogue()
    assert {entry.cause, *entry.plausible_wrong} <= set(known)
    assert entry.cause not in entry.plausible_wrong
    declared = {m for knob in faulty.knobs for m in knob.removes | knob.adds}
    assert declared <= set(known)


@pytest.mark.parametrize("name", sorted(ZOO))
def test_nothing_that_is_seen_names_the_cause(name: str) -> None:
    entry = ZOO[name]
    workload = entry.load()
    seen = [workload.name, workload.question, *workload.operations]
    seen += [text for s in workload.stages for text in (s.name, s.what)]
    seen += [text for k in workload.knobs for text in (k.name, k.value, *k.settings)]
    seen += [str(text) for arm in workload.arms.values() for text in (*arm, *arm.values())]
    words = " ".join(seen).lower().replace("-", " ").replace("_", " ").split()
    telling = {"gil", "gc", "starved", "starvation", "churn", "evict", "flat", "lock", "fault"}
    assert not telling & set(words)
    assert entry.cause.replace("_", " ") not in " ".join(words)


# Only what does not depend on how busy the machine is: the others are measured by hand.
LEAST_EFFECT = {"gil": 1.12, "starve": 1.12, "gc": 1.1, "churn": 1.2, "oversubscribe": 1.1}


@pytest.mark.parametrize("name", sorted(LEAST_EFFECT))
def test_the_cause_is_at_work(name: str) -> None:
    with LocalBench(ZOO[name].load()) as bench:
        taken = bench.interleave(("baseline", "candidate"), blocks=6, seed=1)
    base, cand = (taken[arm]["step_time", None] for arm in ("baseline", "candidate"))
    assert median(c / b for b, c in zip(base, cand, strict=True)) > LEAST_EFFECT[name]


def test_ticks_stop_where_the_wait_keeps_the_lock() -> None:
    probe = probes()["gil_ticks"]
    with LocalBench(ZOO["gil"].load()) as bench:
        plan = next(iter(probe.plans(bench.target())))
        read = {s.cell: median(s.values) for s in probe.run(plan, bench, 1).samples}
    found = {(c.quantity, c.condition): v for c, v in read.items()}
    assert found["gil_wait", "candidate"] > 10 * found["gil_wait", "baseline"]
    assert found["progress_rate", "candidate"] < 0.7 * found["progress_rate", "baseline"]


def test_every_workload_is_a_file_with_both_twins() -> None:
    for entry in ZOO.values():
        module = inspect.getmodule(entry.load().setup)
        assert module is not None
        assert module.__name__ == f"argus_bed.zoo.{entry.name}"
        assert ast.get_docstring(ast.parse(inspect.getsource(module)))
