"""Simulation-based calibration of the particle posterior (Talts et al., 2018).

Parameters are drawn from the prior, readings from the model, and the share of posterior
weight below the true value must be uniform. False-alarm rate of each test: 0.001 divided
by the number of parameters tested (Bonferroni); seeds are fixed and were not chosen.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import stats

from argus_bed.frame import Frame
from argus_bed.hypothesis import catalogue
from argus_bed.inference.belief import Belief
from argus_bed.inference.likelihood import density
from argus_bed.inference.prior import sobol
from argus_bed.probe import Measurement, Reading

FALSE_ALARM = 0.001
SIMULATIONS = 40


@pytest.mark.parametrize("name", ["overlap_lost", "none_of_these"])
def test_ranks_are_uniform(name: str, frame: Frame, contrast: Callable[..., Measurement]) -> None:
    plan = [
        contrast("step_time", family="student", noise=0.02, coincidence=0.02),
        contrast("exposed_comm", family="student", noise=0.15, benign=0.3, coincidence=0.15),
        contrast("overlap_fraction", family="student", noise=0.3, benign=0.3, coincidence=0.15),
    ]
    belief = Belief([catalogue()[name]], frame, seed=0, particles=512)
    model = belief.model(name)
    truth = model.sample_prior(SIMULATIONS, 11)
    said = model.outputs(truth)
    u = torch.as_tensor(np.random.default_rng(12).random((2, SIMULATIONS, len(plan))))
    y = density(plan, said["cells"], said["free"], frame.cell_index).sample(u[0], u[1])
    true = model.constrained(truth)
    ranks: dict[str, list[float]] = {n: [] for n in true}
    for i in range(SIMULATIONS):
        after = belief.update(
            [Reading(m, value) for m, value in zip(plan, y[i].tolist(), strict=True)]
        )
        values, weights = after.samples(name)
        for n, v in values.items():
            ranks[n].append(float(weights @ (v < true[n][i])))
    worst = {n: stats.kstest(r, "uniform").pvalue for n, r in ranks.items()}
    assert min(worst.values()) > FALSE_ALARM / len(worst), worst


def test_sobol_points_fill_the_cube() -> None:
    points = sobol(256, 3, 0)
    assert points.shape == (256, 3)
    assert np.allclose(points.mean(0), 0.5, atol=0.01)
