"""What a study learns of the scatter of its own readings."""

from __future__ import annotations

import math

import numpy as np
import pytest

from argus_bed.frame import BASELINE, CANDIDATE, Cell
from argus_bed.probe import Measurement, Sample
from argus_bed.study.scatter import UNSEEN, Spread, noise_of_median, spread_of

MINE, THEIRS = Cell("step_time", CANDIDATE), Cell("step_time", BASELINE)


def pair(values: np.ndarray) -> list[Sample]:
    """Samples of two arms whose paired differences are ``values`` in link space."""
    level = np.full(len(values), 0.1)
    return [
        Sample(THEIRS, tuple(level), paired=True),
        Sample(MINE, tuple(level * np.exp(values)), paired=True),
    ]


def test_spreads_pool_as_variances_by_their_degrees_of_freedom() -> None:
    assert Spread(3.0, 1.0).pooled(Spread(1.0, 3.0)) == Spread(math.sqrt(3.0), 4.0)


@pytest.mark.parametrize("n", [2, 3, 5, 8, 12, 40])
def test_the_spread_of_few_normal_readings_is_unbiased(n: int) -> None:
    sets = np.random.default_rng(0).normal(0.0, 2.0, (4000, n))
    found = [spread.sd for row in sets if (spread := spread_of(row)) is not None]
    assert np.mean(found) == pytest.approx(2.0, rel=0.05)  # 2 % Monte Carlo error at n = 2


def test_one_reading_shows_no_spread_and_keeps_that_of_its_plan() -> None:
    assert spread_of([1.0]) is None
    assert noise_of_median([1.0], Spread(0.2, 2.0))[0] == pytest.approx(0.2)


def test_a_plan_expects_what_quiet_runs_showed() -> None:
    plan = Measurement(MINE, THEIRS, noise=0.02, n=12)
    quiet = UNSEEN.after(pair(np.random.default_rng(1).normal(0.0, 0.002, 40)))
    (expected,) = quiet.expects([plan])
    assert expected.noise < plan.noise / 2
    assert UNSEEN.expects([plan]) == (plan,)


def test_readings_that_are_not_paired_teach_nothing_of_it() -> None:
    one, other = pair(np.array([0.0, 0.1, 0.2]))
    loose = [Sample(s.cell, s.values, paired=False) for s in (one, other)]
    assert UNSEEN.after(loose) == UNSEEN
