from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from argus_bed.errors import ProbeFailed
from argus_bed.execution import LocalBench
from argus_bed.frame import Cell
from argus_bed.probe import Observation, Plan, Probe, Target, catalogue
from argus_bed.quantity import quantity

sys.path.insert(0, str(Path(__file__).parent))
import toy

PROBES = catalogue()
LEVELS = {"correctness", "log", "trace", "microbenchmark", "end_to_end", "counter", "static"}


@pytest.fixture(scope="module")
def bench() -> Iterator[LocalBench]:
    with LocalBench(toy.workload) as opened:
        yield opened


@pytest.fixture(scope="module")
def target(bench: LocalBench) -> Target:
    return bench.target()


@pytest.fixture(scope="module")
def observed(bench: LocalBench, target: Target) -> dict[str, tuple[Plan, Observation]]:
    """Every plan on the toy, run once."""
    found = {}
    for probe in PROBES.values():
        for plan in probe.plans(target):
            if plan.settings.get("blocks", 0) <= 12:
                found[plan.key] = (plan, probe.run(plan, bench, seed=1))
    return found


def only(observed: Any, probe: str, **settings: Any) -> tuple[Plan, dict[Cell, float]]:
    for plan, read in observed.values():
        if plan.probe == probe and settings.items() <= dict(plan.settings).items():
            return plan, {s.cell: median(s.values) for s in read.samples}
    raise AssertionError(probe)


@pytest.mark.promise("A39")
@pytest.mark.parametrize("name", sorted(PROBES))
def test_every_plan_declares_price_and_locality(name: str, target: Target) -> None:
    probe = PROBES[name]
    assert probe.locality
    assert probe.objective_check
    assert probe.level in LEVELS
    for plan in probe.plans(target):
        assert plan.price.seconds > 0
        assert plan.price.source
        assert plan.measurements
        assert 0 <= plan.price.perturbation < 1
        assert {m.cell for m in plan.measurements} <= set(plan.reads)
        assert {c.condition for c in plan.reads} == set(plan.conditions)
    keys = [p.key for p in probe.plans(target)]
    assert len(set(keys)) == len(keys)


@pytest.mark.promise("A42")
def test_there_are_probes_of_every_level() -> None:
    assert {p.level for p in PROBES.values()} == LEVELS


def test_plans_are_pure(target: Target) -> None:
    for probe in PROBES.values():
        assert list(probe.plans(target)) == list(probe.plans(target))


@pytest.mark.promise("A10")
def test_controlled_variants_and_pairs_are_offered(target: Target) -> None:
    variants = list(PROBES["controlled_variant"].plans(target))
    assert {p.settings["blocks"] for p in variants} == {12, 4}
    variants = [p for p in variants if p.settings["blocks"] == 12]
    assert [(p.conditions, p.risk) for p in variants] == [
        (("candidate:pause=short", "candidate"), "none"),
        (("candidate:both=x", "baseline:both=x"), "concurrency"),
    ]
    assert [p.settings["stage"] for p in PROBES["event_pair"].plans(target)] == ["work", "next"]


def test_every_run_reads_what_it_announced(observed: dict[str, tuple[Plan, Observation]]) -> None:
    for key, (plan, read) in observed.items():
        cells = {s.cell for s in read.samples}
        assert cells <= set(plan.reads), key
        missing = {m.cell for m in plan.measurements} - cells
        assert not missing, (key, missing)
        for sample in read.samples:
            for value in sample.values:
                quantity(sample.cell.quantity).check(value)


def test_the_whole_and_its_parts(observed: Any) -> None:
    _, whole = only(observed, "paired_end_to_end")
    ratio = whole[Cell("step_time", "candidate")] / whole[Cell("step_time", "baseline")]
    assert 1.4 < ratio < 2.2  # (4 + 0.5) over (2 + 0.5) ms and wake-ups
    for probe in ("stage_timer", "event_pair"):
        _, parts = only(observed, probe, **({"stage": "work"} if probe == "event_pair" else {}))
        one, two = (parts[Cell("stage_time", a, "work")] for a in ("baseline", "candidate"))
        assert 1.5 < two / one < 2.4
    _, parts = only(observed, "stage_timer")
    assert 0.5 < parts[Cell("stage_share", "baseline", "work")] < 0.95
    assert 4e-4 < parts[Cell("data_wait", "baseline")] < 2e-3


def test_a_delay_on_the_path_is_seen_in_full(observed: Any) -> None:
    _, slope = only(observed, "delay_injection", share=0.3)
    assert 0.5 < slope[Cell("delay_slope", "baseline", "work")] < 1.5


def test_counters_count(observed: Any) -> None:
    _, found = only(observed, "gc_callbacks")
    assert found[Cell("gc_collections", "candidate")] == 1
    assert found[Cell("gc_collections", "baseline")] == 0
    assert found[Cell("gc_pause", "candidate")] > 0
    _, found = only(observed, "rusage_counters")
    assert found[Cell("voluntary_switches", "baseline")] >= 2  # one a sleep
    _, found = only(observed, "correctness_check")
    assert found[Cell("violations", "candidate")] == 2
    _, found = only(observed, "self_report")
    assert found[Cell("throughput", "candidate")] == 100


def test_alone_and_against_the_bound(observed: Any) -> None:
    _, hot = only(observed, "microbenchmark_hot")
    assert hot[Cell("isolated_time", "candidate", "work")] > STEP_OP_S
    _, bound = only(observed, "bound_check")
    assert bound[Cell("bandwidth_ratio", "candidate", "work")] > 1  # 2 TB/s


STEP_OP_S = 2 * toy.STEP_S / 10


def test_instruments_measure_their_own_disturbance(
    observed: dict[str, tuple[Plan, Observation]],
) -> None:
    for _, read in observed.values():
        assert read.overhead is not None
    for probe in ("gc_callbacks", "rusage_counters", "stage_timer"):
        read = next(r for p, r in observed.values() if p.probe == probe)
        assert abs(read.overhead or 0.0) < 0.25  # a wild value would be a fault, noise is not


def test_a_stage_that_no_step_enters_is_said() -> None:
    from dataclasses import replace

    from argus_bed.frame import Stage

    gone = replace(toy.workload, stages=(Stage("gone", changed=True),), operations={}, claims=())
    with LocalBench(gone) as bench:
        target = bench.target()
        for name in ("stage_timer", "delay_injection"):
            plan = next(iter(PROBES[name].plans(target)))
            with pytest.raises(ProbeFailed, match=r"with stage\('gone'\)"):
                PROBES[name].run(plan, bench, seed=0)


USER = """
from argus_bed.frame import Cell
from argus_bed.probe import Observation, Plan, Price, Probe, Sample


class Twice:
    def start(self, workload, state):
        self.entered = 0

    def enter(self, name):
        self.entered += 1

    def leave(self, name):
        return

    def stop(self, steps):
        return {("launch_count", None): self.entered / steps}


def double(workload, state, value):
    return 2 * value


class StagesEntered(Probe):
    name = "stages_entered"
    question = "How many stages does a step enter?"
    level = "counter"
    establishes = "the number"
    leaves_open = "their time"
    locality = "the step"
    objective_check = "count them"

    def plans(self, target):
        cell = Cell("launch_count", "candidate")
        yield Plan(self.name, {}, ("candidate",), (), Price(0.1), reads=(cell,))

    def run(self, plan, bench, seed):
        taken = bench.interleave(("candidate",), blocks=1, steps=2, instrument=Twice())
        values = taken["candidate"]["launch_count", None]
        twice = bench.call("candidate", f"{__name__}:double", value=values[0])
        return Observation((Sample(plan.reads[0], (*values, twice)),))


stages_entered = StagesEntered()
"""


def test_one_file_in_a_folder_is_a_probe(tmp_path: Path, bench: LocalBench, target: Target) -> None:
    """Its instrument and its functions run in the child, though no package holds them."""
    (tmp_path / "stages_entered.py").write_text(USER)
    probe = catalogue([str(tmp_path)])["stages_entered"]
    assert isinstance(probe, Probe)
    (plan,) = probe.plans(target)
    assert probe.run(plan, bench, seed=0).samples[0].values == (2.0, 4.0)
