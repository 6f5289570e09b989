from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from argus_bed.errors import UsageError, WorkloadFailed
from argus_bed.execution import LocalBench
from argus_bed.execution.bench import rounds
from argus_bed.execution.clocks import examine
from argus_bed.execution.devices import instruments
from argus_bed.execution.environment import environment
from argus_bed.probe import BARE

sys.path.insert(0, str(Path(__file__).parent))
import drifting
import hostile


class Seen:
    """Counts stages entered."""

    def start(self, workload: Any, state: Any) -> None:
        self.entered = 0

    def enter(self, name: str) -> None:
        self.entered += 1

    def leave(self, name: str) -> None:
        return

    def stop(self, steps: int) -> dict[tuple[str, str | None], float]:
        return {("visits", "inner"): self.entered / steps}


@pytest.mark.promise("A24")
def test_rounds_are_counterbalanced() -> None:
    for seed in range(20):
        order = list(rounds(["a", "b", "c"], 10, seed))
        assert all(one == other[::-1] for one, other in zip(order[::2], order[1::2], strict=True))
        place = Counter((name, i) for names in order for i, name in enumerate(names))
        for name in "abc":  # a position and its mirror are taken equally often
            assert place[name, 0] == place[name, 2]
    firsts = Counter(next(rounds(["a", "b"], 1, seed))[0] for seed in range(200))
    assert 60 < firsts["a"] < 140  # binomial, false alarm below 1e-8


@pytest.mark.promise("A24")
def test_a_drift_cancels_in_the_contrast() -> None:
    """Both arms do the same and get 3 % slower with every block that anyone ran."""
    with LocalBench(drifting.workload) as bench:
        taken = bench.interleave(("baseline", "candidate"), blocks=12, steps=1, seed=3)
        base, cand = (taken[arm]["step_time", None] for arm in ("baseline", "candidate"))
        assert cand[-1] / cand[0] > 1.5  # the drift is there
        paired = median(c / b for b, c in zip(base, cand, strict=True))
        assert abs(paired - 1) < 0.02
        assert median(base[6:]) / median(cand[:6]) > 1.2  # what taking one after the other gives


def test_values_come_one_per_block_and_condition() -> None:
    with LocalBench(hostile.make("nothing")) as bench:
        taken = bench.interleave(
            ("baseline", "candidate"), blocks=3, steps=2, instrument=Seen(), bare=True
        )
    for readings in taken.values():
        assert {key: len(v) for key, v in readings.items()} == {
            ("step_time", None): 3,
            ("visits", "inner"): 3,
            BARE: 3,
        }
        assert readings["visits", "inner"] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "wrong", [{"blocks": 0}, {"blocks": 1, "steps": -1}, {"conditions": (), "blocks": 1}]
)
def test_a_run_that_cannot_be_meant_is_refused(wrong: dict[str, Any]) -> None:
    with LocalBench(hostile.make("nothing")) as bench:
        with pytest.raises(UsageError, match="at least one block"):
            bench.interleave(wrong.pop("conditions", ("baseline",)), **wrong)


def test_after_a_failure_the_bench_goes_on() -> None:
    with LocalBench(hostile.make("raise")) as bench:
        with pytest.raises(WorkloadFailed, match="no such batch"):
            bench.interleave(("candidate",), blocks=1)
        taken = bench.interleave(("baseline", "candidate:deed=none"), blocks=1)
        assert len(taken["baseline"]["step_time", None]) == 1


def test_the_target_tells_what_can_be_asked() -> None:
    with LocalBench(hostile.make("nothing")) as bench:
        target = bench.target()
    assert target.step_s >= 0.002
    assert target.capabilities == frozenset()
    assert target.risks == {"candidate:deed=none": "none"}
    assert target.frame.cells == ()


@pytest.mark.promise("A32")
def test_the_environment_of_a_run() -> None:
    found = environment()
    assert {"load", "cores", "python", "torch", "clock", "affinity", "available_bytes"} <= set(
        found
    )


def test_the_clock_is_measured() -> None:
    clock = examine()
    assert clock.monotonic
    assert 0 < clock.resolution_s <= clock.overhead_s < 1e-4


def test_missing_instruments_say_what_they_would_add() -> None:
    found = {i.name: i for i in instruments()}
    assert {
        "cores",
        "perf events",
        "CUDA",
        "ncu",
        "nsys",
        "py-spy",
        "torch.profiler",
        "torch counters",
    } <= set(found)
    assert all(i.found and i.adds for i in found.values())
    assert "CUDA device only" in found["torch counters"].found
