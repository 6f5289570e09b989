"""Quasi-random prior draws where the quantile functions are known.

Scrambled Sobol points (Owen, 1997, Annals of Statistics 25) fill the prior evenly, so
that expectations and the evidence are less noisy than with independent draws.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from pymc.pytensorf import constant_fold
from pytensor.graph.traversal import ancestors
from scipy import stats
from scipy.stats import qmc

Array = np.ndarray[Any, np.dtype[np.float64]]
MAX_SOBOL = 1024  # dimensions; far below scipy's limit and far above any mechanism

# PyTensor name of the distribution -> quantile function of its parameters in that order
_QUANTILES: dict[str, Callable[..., Any]] = {
    "normal": lambda u, mu, sigma: stats.norm.ppf(u, mu, sigma),
    "halfnormal": lambda u, loc, sigma: stats.halfnorm.ppf(u, loc, sigma),
    "halfcauchy": lambda u, beta: stats.halfcauchy.ppf(u, scale=beta),
    "lognormal": lambda u, mu, sigma: np.exp(stats.norm.ppf(u, mu, sigma)),
    "uniform": lambda u, low, high: low + u * (high - low),
    "beta": lambda u, a, b: stats.beta.ppf(u, a, b),
    "exponential": lambda u, scale: stats.expon.ppf(u, scale=scale),
    "gamma": lambda u, shape, scale: stats.gamma.ppf(u, shape, scale=scale),
    "t": lambda u, nu, mu, sigma: stats.t.ppf(u, nu, mu, sigma),
}


def sobol(n: int, dim: int, seed: int) -> Array:
    """``n`` scrambled points of the open unit cube, (n, dim)."""
    if dim == 0:
        return np.zeros((n, 0))
    with warnings.catch_warnings():  # a count that is no power of two is fine here
        warnings.simplefilter("ignore", UserWarning)
        points = qmc.Sobol(dim, scramble=True, rng=np.random.default_rng(seed)).random(n)
    inside: Array = np.clip(points, 1e-9, 1 - 1e-9)
    return inside


def prior_quantiles(free: Sequence[Any], n: int, seed: int) -> list[Array] | None:
    """Prior draws (n, ...) of every one of ``free``, or None if one has no simple quantile."""
    rules = []
    for rv in free:
        found = _rule(rv)
        if found is None:
            return None
        rules.append(found)
    sizes = [int(np.prod(shape)) for shape, _, _ in rules]
    if sum(sizes) > MAX_SOBOL:
        return None
    points = sobol(n, sum(sizes), seed)
    drawn, start = [], 0
    for size, (shape, quantile, parameters) in zip(sizes, rules, strict=True):
        u = points[:, start : start + size].reshape(n, *shape)
        drawn.append(np.asarray(quantile(u, *parameters), dtype=float))
        start += size
    return drawn


def _rule(rv: Any) -> tuple[tuple[int, ...], Callable[..., Any], list[Array]] | None:
    """Shape, quantile function and constant parameters of a variable, if it has them."""
    op = rv.owner.op
    quantile = _QUANTILES.get(getattr(op, "name", "") or "")
    if quantile is None or not hasattr(op, "dist_params") or None in rv.type.shape:
        return None
    parameters = list(op.dist_params(rv.owner))
    random = any(
        v.owner is not None and hasattr(v.owner.op, "dist_params") for v in ancestors(parameters)
    )
    if random:
        return None
    folded = constant_fold(parameters, raise_not_constant=False)
    if not all(isinstance(p, np.ndarray | np.generic | float | int) for p in folded):
        return None
    return tuple(int(s) for s in rv.type.shape), quantile, [np.asarray(p) for p in folded]
