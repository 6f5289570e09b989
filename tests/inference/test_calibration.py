"""Simulation-based calibration of the particle posterior (Talts et al., 2018).

Parameters are drawn from the prior, readings from the model, and the share of posterior
weight below the true value must be uniform; likewise a hypothesis is drawn from the prior,
and its posterior probability must be what it says. One hypothesis stands for all whose
models are built alike. Seeds are fixed by the hypotheses' names and were not chosen.

False-alarm rate: `FALSE_ALARM` for each test as a whole (Bonferroni over what it tests).
``benchmarks/agreement.py`` does the same for every hypothesis, with more simulations.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from argus_bed.frame import Frame
from argus_bed.hypothesis import catalogue, compose
from argus_bed.inference.prior import sobol
from benchmarks.agreement import calibration, library_frame, ranks, setting, structures, telling

FALSE_ALARM = 0.01
SIMULATIONS = 4  # of each structure; those of one kind of variable are tested together
STUDIES = 12
PARTICLES = 256

KNOWN = catalogue()
ALIKE = structures(KNOWN.values(), library_frame(KNOWN))
DISTINCT = [KNOWN[names[0]] for names in ALIKE.values()]
PAIR = compose(KNOWN["gil_held"], KNOWN["off_critical_path"])


Ranks = dict[str, list[float]]


@pytest.fixture(scope="module")
def ranked(library: Frame) -> dict[str, Ranks]:
    """Ranks of every variable, by hypothesis."""
    return {
        h.name: ranks(setting(h, library, most=6, blocks=2), SIMULATIONS, PARTICLES)
        for h in (*DISTINCT, PAIR)
    }


@pytest.fixture(scope="module")
def by_kind(ranked: dict[str, Ranks]) -> Ranks:
    """Ranks of all hypotheses together, by a variable's name without that of its mechanism."""
    found: Ranks = {}
    for h in (*DISTINCT, PAIR):
        for variable, r in ranked[h.name].items():
            for cause in h.causes:
                variable = variable.removeprefix(f"{cause}_")
            found.setdefault(variable, []).extend(r)
    return found


def least(found: Ranks) -> float:
    """The smallest p of two tests for uniform ranks: Kolmogorov's, which sees posteriors in
    the wrong place, and of the sum of squared normal scores, which sees the wrong width.
    """
    p = []
    for r in found.values():
        squares = float(np.sum(scores(r) ** 2))
        p.append(float(stats.kstest(r, "uniform").pvalue))
        p.append(2 * min(stats.chi2.cdf(squares, len(r)), stats.chi2.sf(squares, len(r))))
    return min(p)


def scores(r: list[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Normal scores; no rank is finer than half a particle."""
    found: np.ndarray[tuple[int], np.dtype[np.float64]] = stats.norm.ppf(
        np.clip(r, 0.5 / PARTICLES, 1 - 0.5 / PARTICLES)
    )
    return found


def test_ranks_of_each_variable_are_uniform(ranked: dict[str, Ranks]) -> None:
    tested = sum(len(r) for r in ranked.values())
    worst = {name: least(r) for name, r in ranked.items()}
    assert min(worst.values()) > FALSE_ALARM / (2 * tested), worst


def test_ranks_of_each_kind_of_variable_are_uniform(by_kind: Ranks) -> None:
    """With the power that a few simulations have not. ``side`` is the switch between the
    arms, ``together`` that of two causes.
    """
    assert {"extra", "side", "rest_2", "share", "local", "kappa", "together"} <= set(by_kind)
    worst = {v: least({v: r}) for v, r in by_kind.items()}
    assert min(worst.values()) > FALSE_ALARM / (2 * len(by_kind)), worst


def test_wrong_posteriors_are_noticed(by_kind: Ranks) -> None:
    """The test above fails if posteriors are half as wide as they should be, or shifted."""
    z = scores(by_kind["share"])
    for wrong in (2 * z, z + 0.7):
        found = {"share": list(stats.norm.cdf(wrong))}
        assert least(found) < FALSE_ALARM / (2 * len(by_kind))


@pytest.mark.promise("A36")
def test_probabilities_of_hypotheses_are_calibrated(library: Frame) -> None:
    """Their logarithmic and Brier score are what they expect of themselves.

    Two-sided z-tests of both, `FALSE_ALARM` together.
    """
    rivals = DISTINCT[::3]
    z = calibration(rivals, *telling(rivals, library), STUDIES, PARTICLES)
    limit = float(stats.norm.isf(FALSE_ALARM / 4))
    assert abs(z.log_score) < limit, z
    assert abs(z.brier) < limit, z


def test_sobol_points_fill_the_cube() -> None:
    points = sobol(256, 3, 0)
    assert points.shape == (256, 3)
    assert np.allclose(points.mean(0), 0.5, atol=0.01)
