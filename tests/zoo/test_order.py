"""The pipeline: as many messages in every mode, and out of order only in some."""

from __future__ import annotations

from statistics import median

import pytest
from argus_bed.probes.correctness_check import correctness_check

from argus_bed.execution import LocalBench
from argus_bed.frame import Cell
from argus_bed.zoo import order

STEPS = 12
SHARE = order.MESSAGES / 14_000  # of the messages that the catalogue's figures count


def violations(**settings: object) -> float:
    """Messages of 14,000 that come out after a later one of their session."""
    state = order.setup(**settings)  # type: ignore[arg-type]
    for _ in range(STEPS):
        order.step(state)
    return order.report(state)["violations"] / SHARE


@pytest.mark.promise("A73")
def test_only_what_is_put_aside_is_passed() -> None:
    assert violations(again="first") == 0
    # catalogue: 348; 280 are tried again here, and most are passed meanwhile
    assert 348 / 4 < violations(again="second") < 2 * 348
    assert violations(again="second", fails=0.0) == 0


def test_a_pool_lets_messages_pass_whatever_happens_to_retries() -> None:
    assert violations(again="second", lanes="any") > 50  # catalogue: 711
    assert violations(again="second", lanes="any", fails=0.0) > 10  # catalogue: 404


@pytest.mark.promise("A73")
def test_the_throughput_shows_nothing() -> None:
    with LocalBench(order.workload) as bench:
        target = bench.target()
        plan, *variants = correctness_check.plans(target)
        read = correctness_check.run(plan, bench, seed=1)
        removed = next(p for p in variants if p.settings["variant"] == "candidate:again=first")
        mended = correctness_check.run(removed, bench, seed=1)
    found = {(s.cell.quantity, s.cell.condition): s.values for s in read.samples}
    assert set(found["violations", "baseline"]) == {0.0}
    assert min(found["violations", "candidate"]) > 0
    ratios = zip(found["step_time", "candidate"], found["step_time", "baseline"], strict=True)
    # within 0.3 % where the machine keeps up with the pace; it need not while tests run
    assert abs(median(c / b for c, b in ratios) - 1) < 0.15
    assert Cell("violations", "candidate") in plan.reads
    mended_of = {(s.cell.quantity, s.cell.condition): s.values for s in mended.samples}
    assert set(mended_of["violations", "candidate:again=first"]) == {0.0}
    assert min(mended_of["violations", "candidate"]) > 0
