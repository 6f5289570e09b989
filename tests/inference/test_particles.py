from __future__ import annotations

import torch
from scipy import stats

from argus_bed.inference.particles import hmc, systematic


def test_systematic_resampling_keeps_weights() -> None:
    weights = torch.tensor([0.5, 0.25, 0.125, 0.125], dtype=torch.float64)
    counts = torch.bincount(systematic(weights, 800, 0.3), minlength=4)
    assert counts.tolist() == [400, 200, 100, 100]


def test_hmc_leaves_a_correlated_normal_as_it_is() -> None:
    """KS test of both coordinates; false-alarm rate 0.001 each, seed fixed and not chosen."""
    covariance = torch.tensor([[1.0, 0.8], [0.8, 2.0]], dtype=torch.float64)
    generator = torch.Generator().manual_seed(4)
    root = torch.linalg.cholesky(covariance)
    start = torch.randn(1000, 2, generator=generator, dtype=torch.float64) @ root.T
    inverse = torch.linalg.inv(covariance)
    moved, _ = hmc(start, lambda t: -0.5 * ((t @ inverse) * t).sum(1), 0.8, generator)
    assert not torch.equal(moved, start)
    for i, sd in enumerate((1.0, 2.0**0.5)):
        assert stats.kstest(moved[:, i].numpy(), stats.norm(0, sd).cdf).pvalue > 0.001
