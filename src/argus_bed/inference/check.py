"""A second way to the same posterior, sharing nothing with the first but the model.

The likelihood is written again, in PyTensor, from the text of `probe.Measurement`; the
posterior comes from NUTS (nutpie) and the log evidence from `pm.sample_smc`. If the
particles disagree with either, the belief is not to be trusted.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy import stats

from argus_bed.errors import InferenceError
from argus_bed.frame import COINCIDENCE_SPREAD, Frame
from argus_bed.hypothesis import Hypothesis
from argus_bed.probe import Measurement, Reading

TOLERANCE = 0.1  # nats of log evidence
SHIFT = 0.15  # posterior sds of a mean
CONVERGED = 1.02  # split R-hat up to which NUTS is listened to
SIGMAS = 3.0
COINCIDENCE_DOF = 3.0

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Check:
    """How the particles compare.

    Attributes
    ----------
    log_evidence_difference : particles minus sequential Monte Carlo, in nats.
    log_evidence_error : standard error of the latter over its chains.
    mean_differences : particles minus NUTS (where it converged, else SMC), in posterior sds.
    unconverged : variables on which NUTS did not converge.
    ok : whether all differences are within tolerance.
    """

    log_evidence_difference: float
    log_evidence_error: float
    mean_differences: Mapping[str, float]
    unconverged: tuple[str, ...]
    ok: bool

    def require(self, name: str) -> None:
        """Raise `InferenceError` unless the two ways agree; ``name`` is the hypothesis's."""
        if self.ok:
            return
        worst = max(self.mean_differences.items(), key=lambda i: abs(i[1]), default=("-", 0.0))
        raise InferenceError(
            f"hypothesis {name}: the particles and the check disagree: log evidence by "
            f"{self.log_evidence_difference:+.2f} nats, mean of {worst[0]} by {worst[1]:+.2f} sd"
        )


def check(
    hypothesis: Hypothesis,
    frame: Frame,
    readings: Iterable[Reading],
    samples: tuple[Mapping[str, Array], Array],
    log_evidence: float,
    *,
    seed: int = 0,
    draws: int = 1000,
    chains: int = 4,
) -> Check:
    """Recompute a posterior and its log evidence from the readings alone, and compare.

    Takes 10 to 60 s: two samplers are compiled.

    Parameters
    ----------
    samples, log_evidence : from `Belief.samples` and `Belief.log_evidence`.
    """
    model = with_likelihood(hypothesis.model(frame), frame, merged(readings))
    if not model.free_RVs:
        exact = float(model.compile_logp(jacobian=False)({}))
        gap = log_evidence - exact
        return Check(gap, 0.0, {}, (), abs(gap) <= 1e-6 * max(1.0, abs(exact)))
    found, evidence = by_smc(model, seed, draws, chains)
    long, rhat = by_nuts(model, seed, draws, chains)
    gap = log_evidence - float(np.mean(evidence))
    error = float(np.std(evidence, ddof=1) / math.sqrt(len(evidence)))
    unconverged = tuple(n for n, r in rhat.items() if not r <= CONVERGED)
    values, weights = samples
    shifts = {}
    for name, ours in values.items():
        theirs = found[name] if name in unconverged else long[name]
        shifts[name] = _shift(ours, weights, theirs)
    fine = abs(gap) <= TOLERANCE + SIGMAS * error
    fine = fine and all(abs(s) <= SHIFT for s in shifts.values())
    return Check(gap, error, shifts, unconverged, fine)


def _shift(ours: Array, weights: Array, theirs: Array) -> float:
    """Largest difference of means in sds of the other sample, over a variable's entries."""
    here = np.tensordot(weights, ours.reshape(len(ours), -1), 1)
    flat = theirs.reshape(len(theirs), -1)
    shift = (here - flat.mean(0)) / np.maximum(flat.std(0), 1e-12)
    return float(shift[np.argmax(np.abs(shift))])


def merged(readings: Iterable[Reading]) -> list[tuple[Measurement, float, float, float, float]]:
    """Readings of one key as one: (widest measurement, value, noise^2, coincidence, dof)."""
    groups: dict[Any, list[Reading]] = {}
    for r in readings:
        groups.setdefault(r.measurement.key, []).append(r)
    found = []
    for group in groups.values():
        planned = [r.measurement for r in group]
        noise2 = np.array([max(m.noise, 1e-9) ** 2 for m in planned])
        chance = np.array([m.coincidence for m in planned])
        trust = np.maximum(1 - chance, 1e-6) / noise2
        widest = max(planned, key=lambda m: m.benign)
        found.append(
            (
                widest,
                float(np.average([r.value for r in group], weights=trust)),
                float(1 / np.sum(1 / noise2)),
                float(np.average(chance, weights=trust)),
                float(np.average([m.dof for m in planned], weights=trust)),
            )
        )
    return found


def with_likelihood(
    model: pm.Model,
    frame: Frame,
    readings: Sequence[tuple[Measurement, float, float, float, float]],
) -> pm.Model:
    """The model with the log density of the readings as a potential."""
    with model:
        total = pt.as_tensor_variable(0.0)
        for planned, value, noise2, chance, dof in readings:
            total = total + _log_density(model, frame, planned, value, noise2, chance, dof)
        pm.Potential("readings", total)
    return model


def _log_density(
    model: pm.Model,
    frame: Frame,
    planned: Measurement,
    value: float,
    noise2: float,
    chance: float,
    dof: float,
) -> Any:
    cells, free = model["cells"], model["free"]
    here = frame.cell_index[planned.cell]
    mean, variance = cells[here], noise2 + planned.benign**2 + free[here] ** 2
    if planned.against is not None:
        there = frame.cell_index[planned.against]
        mean, variance = mean - cells[there], variance + free[there] ** 2
    if planned.family == "bernoulli":
        one = pm.math.sigmoid(mean / pt.sqrt(1 + np.pi * variance / 8))
        one = (1 - chance) * one + 0.5 * chance
        return value * pt.log(one) + (1 - value) * pt.log(1 - one)
    if planned.family == "normal":
        ordinary = pm.logp(pm.Normal.dist(mean, pt.sqrt(variance)), value)
    else:
        ordinary = pm.logp(pm.StudentT.dist(nu=dof, mu=mean, sigma=pt.sqrt(variance)), value)
    if chance == 0:
        return ordinary
    wide = math.sqrt(COINCIDENCE_SPREAD**2 + noise2 + planned.benign**2)
    elsewhere = pm.logp(pm.StudentT.dist(nu=COINCIDENCE_DOF, mu=0.0, sigma=wide), value)
    return pm.math.logaddexp(math.log1p(-chance) + ordinary, math.log(chance) + elsewhere)


def by_smc(
    model: pm.Model, seed: int, draws: int, chains: int
) -> tuple[dict[str, Array], list[float]]:
    """Draws (chains * draws, ...) and one log evidence a chain, by `pm.sample_smc`.

    The log marginal likelihood is an array of objects whose last entry alone is filled;
    ``cores=1`` because PyMC would fork, which deadlocks with threads.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = pm.sample_smc(
            draws=draws,
            chains=chains,
            cores=1,
            model=model,
            random_seed=seed,
            progressbar=False,
            compute_convergence_checks=False,
        )
    stored = np.asarray(tree["sample_stats"]["log_marginal_likelihood"].values, dtype=object)
    evidence = [float(np.atleast_1d(row)[-1]) for row in stored.reshape(chains, -1)]
    if not np.all(np.isfinite(evidence)):
        raise InferenceError(f"sequential Monte Carlo gave the log evidence {evidence}")
    return _flat(tree, model), evidence


def by_nuts(
    model: pm.Model, seed: int, draws: int, chains: int
) -> tuple[dict[str, Array], dict[str, float]]:
    """Draws (chains * draws, ...) and the split R-hat of each free variable, by nutpie."""
    import nutpie

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = nutpie.compile_pymc_model(model)
        tree = nutpie.sample(
            compiled, draws=draws, tune=draws, chains=chains, cores=2, seed=seed, progress_bar=False
        )
    rhat = {v.name: _split_rhat(tree["posterior"][v.name].values) for v in model.free_RVs}
    return _flat(tree, model), rhat


def _flat(tree: Any, model: pm.Model) -> dict[str, Array]:
    found = {}
    for v in model.free_RVs:
        values = np.asarray(tree["posterior"][v.name].values, dtype=float)
        found[v.name] = values.reshape(-1, *values.shape[2:])
    return found


def _split_rhat(values: Array) -> float:
    """Rank-normalised split R-hat (Vehtari et al., 2021), the largest over entries.

    values : (chains, draws, ...).
    """
    chains, draws = values.shape[0], values.shape[1] // 2 * 2
    halves = values[:, :draws].reshape(2 * chains, draws // 2, -1)
    worst = 1.0
    for i in range(halves.shape[2]):
        ranks = stats.rankdata(halves[:, :, i]).reshape(halves.shape[:2])
        z = stats.norm.ppf((ranks - 0.375) / (ranks.size + 0.25))
        within = z.var(axis=1, ddof=1).mean()
        between = z.mean(axis=1).var(ddof=1)
        worst = max(worst, math.sqrt((between + within * (1 - 2 / draws)) / max(within, 1e-12)))
    return worst
