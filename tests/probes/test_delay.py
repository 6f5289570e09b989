"""Delays that sleep and delays that compute."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from argus_bed.execution import LocalBench
from argus_bed.execution.vetting import measured
from argus_bed.frame import Stage
from argus_bed.probe import catalogue

sys.path.insert(0, str(Path(__file__).parent))
import beside
import toy

PROBE = catalogue()["delay_injection"]


def slope(bench: LocalBench, how: str, share: float = 0.3) -> float:
    plan = next(p for p in PROBE.plans(bench.target()) if p.settings["share"] == share)
    plan = replace(plan, settings={**plan.settings, "delay": how})
    (sample,) = measured(PROBE, plan, bench, seed=1).samples
    return median(sample.values)


@pytest.mark.parametrize(
    ("kind", "how"),
    [("host", "spin"), ("compute", "sleep"), ("communication", "sleep"), ("wait", "sleep")],
)
def test_a_stage_is_delayed_as_its_kind_works(kind: str, how: str) -> None:
    system = replace(
        toy.workload,
        stages=(Stage("work", kind, changed=True),),  # type: ignore[arg-type]
        operations={},
        claims=(),
    )
    with LocalBench(system) as bench:
        assert {p.settings["delay"] for p in PROBE.plans(bench.target())} == {how}


def test_a_sleeping_delay_lets_other_threads_run_and_a_spinning_one_does_not() -> None:
    """The stage ends before the Python work beside it; only the lock ties them together."""
    with LocalBench(beside.workload) as bench:
        sleeping, spinning = slope(bench, "sleep"), slope(bench, "spin")
    assert sleeping < 0.5 < spinning
    assert spinning - sleeping > 0.4


def test_on_the_path_both_are_seen_in_full() -> None:
    """A thread that has computed waits longer for its next turn on a core that others use."""
    with LocalBench(toy.workload) as bench:
        for how, most in (("sleep", 1.5), ("spin", 3.0)):
            assert 0.5 < slope(bench, how) < most
