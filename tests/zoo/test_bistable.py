"""Two states of one program, and neither of them an arm's."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest

from argus_bed.zoo import bistable


def placed(monkeypatch: pytest.MonkeyPatch, drawn: int, place: str = "any") -> bistable.State:
    monkeypatch.setattr(os, "urandom", lambda count: bytes([drawn] * count))
    return bistable.setup("first", place=place)


def test_a_start_draws_its_state_and_the_arm_has_no_part_in_it() -> None:
    starts = [bistable._pitch("any") for _ in range(2000)]
    fast = starts.count(bistable.PAGE + bistable.LINE) / len(starts)
    # catalogue: 7 to 20 %; 1 in 8 here, and 4 sd of 2000 draws are 3 %
    assert 0.095 < fast < 0.155
    assert {bistable._pitch("own") for _ in range(50)} == {bistable.PAGE}
    baseline, candidate = bistable.workload.arms.values()
    assert {k: v for k, v in baseline.items() if k != "build"} == {
        k: v for k, v in candidate.items() if k != "build"
    }


def test_the_states_lie_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    fast, slow = (placed(monkeypatch, drawn) for drawn in (0, 1))
    times: tuple[list[float], list[float]] = ([], [])
    for i in range(200):
        for which in (0, 1) if i % 2 else (1, 0):
            begin = time.perf_counter()
            bistable.step((fast, slow)[which])
            times[which].append(time.perf_counter() - begin)
    # of the steps that nothing else on the machine held up
    quickest = [sorted(taken)[len(taken) // 10] for taken in times]
    assert 1.04 < quickest[1] / quickest[0] < 1.5  # catalogue: 4 %
    assert np.array_equal(fast.columns, slow.columns)
