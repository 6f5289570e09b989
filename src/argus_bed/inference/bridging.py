"""The log evidence again, from where the particles ended.

The product of tempering ratios inherits the error of every stage and of every update
before. Bridge sampling (Meng and Wong, 1996, Statistica Sinica 6) between the particles
and a Student-t fitted to them starts afresh from the whole density, so that errors do
not add up from one update to the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from scipy import stats
from torch import Tensor

from argus_bed.inference.prior import sobol

DOF = 7.0  # heavier tails than the particles', so that no ratio explodes
ROUNDS = 50
MAX_ERROR = 0.1
"""Relative error above which the fit is no use: the posterior is not like a Student-t."""


def log_evidence(
    theta: Tensor, log_density: Callable[[Tensor], Tensor], root: Tensor, seed: int
) -> float | None:
    """Log of the integral of ``exp(log_density)``; None if the fit is too poor.

    Parameters
    ----------
    theta : (particles, dim), equally weighted draws of the density.
    root : Cholesky factor of their covariance, (dim, dim).
    """
    centre = theta.mean(0)
    proposed = centre + _student(len(theta), theta, seed) @ root.T
    here = _ratio(theta, log_density, centre, root)
    there = _ratio(proposed, log_density, centre, root)
    here, there = here[torch.isfinite(here)], there
    if not len(here) or not bool(torch.isfinite(there).any()):
        return None
    level = float(torch.median(here))
    l1, l2 = torch.exp(here - level), torch.exp(there - level)  # exp(-inf) = 0 is meant
    r = 1.0
    for _ in range(ROUNDS):
        above, below = l2 / (l2 + r), 1.0 / (l1 + r)
        new = float(above.mean() / below.mean())
        if not (math.isfinite(new) and new > 0):
            return None
        done = abs(new - r) < 1e-9 * r
        r = new
        if done:
            break
    error = sum(float((f / f.mean()).var() / len(f)) for f in (above, below))
    return level + math.log(r) if math.sqrt(error) <= MAX_ERROR else None


def _ratio(
    theta: Tensor, log_density: Callable[[Tensor], Tensor], centre: Tensor, root: Tensor
) -> Tensor:
    """Log of the density over the fitted Student-t, (particles,)."""
    d = theta.shape[1]
    white = torch.linalg.solve_triangular(root, (theta - centre).T, upper=False).T
    constant = math.lgamma((DOF + d) / 2) - math.lgamma(DOF / 2) - 0.5 * d * math.log(DOF * math.pi)
    constant -= float(torch.log(root.diagonal()).sum())
    fitted = constant - 0.5 * (DOF + d) * torch.log1p((white**2).sum(1) / DOF)
    value = log_density(theta).detach()
    return torch.nan_to_num(value, nan=-math.inf) - fitted


def _student(n: int, like: Tensor, seed: int) -> Tensor:
    """Quasi-random draws of a standard multivariate Student-t, (n, dim)."""
    u = sobol(n, like.shape[1] + 1, seed)
    normal = stats.norm.ppf(u[:, :-1])
    scale = (DOF / stats.chi2.ppf(u[:, -1:], DOF)) ** 0.5
    return torch.as_tensor(normal * scale, dtype=like.dtype, device=like.device)
