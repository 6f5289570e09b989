"""Weighted particles of one hypothesis, moved from one body of evidence to the next.

A sequential Monte Carlo sampler over the densities

    prior(theta) L_old(theta)^(1-t) L_new(theta)^t,      t from 0 to 1

(Del Moral, Doucet and Jasra, 2006, JRSS B 68). Readings only change the weights while
the effective sample size stays above half of the particles. Else ``t`` goes in steps
that each bring it down to half (found by bisection), the particles are resampled
systematically, single variables are redrawn from their priors, and Hamiltonian Monte
Carlo moves them all (Neal, 2011), its mass matrix taken from the particles' covariance
and its step size from the acceptance rate. Old and new evidence are bridged as wholes,
because a repeated reading replaces its merged predecessor rather than multiplying the
likelihood.

A precise reading that may also be a coincidence is a needle in a plain: raised to a small
power it has no slope that leads to it. Where the weights collapse, the new readings are
therefore blurred first, and sharpened step by step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from argus_bed.errors import InferenceError
from argus_bed.frame import Cell
from argus_bed.inference import bridging
from argus_bed.inference.bridge import TorchModel
from argus_bed.inference.evidence import Evidence

KEEP = 0.5  # share of the particles to which the effective sample size may fall
LEAPS = 4  # leapfrog steps of a move
ACCEPT = 0.75  # aim of the acceptance rate (Beskos et al., 2013: 0.65 and above)
MIN_MOVES, MAX_MOVES = 3, 10
FORGET = 0.25  # moves go on until particles correlate less than this with where they began
MAX_STAGES = 60
TINY = 1e-8
BLURS = (1.0, 0.3, 0.1, 0.03, 0.01)  # sds added to new readings on the way, link space
NEEDLE = 0.1  # share of effective particles below which a reading is reached by blurring

Potential = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Particles:
    """Posterior of one hypothesis.

    Attributes
    ----------
    theta : (particles, dim), unconstrained.
    log_weight : (particles,), normalised.
    cells, free : (particles, cells), what the model says at ``theta``.
    log_likelihood : (particles,), of all evidence so far.
    log_evidence : log marginal likelihood of all evidence so far, in nats.
    step : step size of the last move, where the next one starts.
    """

    theta: Tensor
    log_weight: Tensor
    cells: Tensor
    free: Tensor
    log_likelihood: Tensor
    log_evidence: float
    step: float

    @property
    def weights(self) -> Tensor:
        return torch.exp(self.log_weight)

    @property
    def effective(self) -> float:
        """Effective sample size, 1 / sum of squared weights."""
        return float(torch.exp(-torch.logsumexp(2 * self.log_weight, 0)))


def start(model: TorchModel, n: int, seed: int) -> Particles:
    """Equally weighted draws from the prior.

    Raises
    ------
    InferenceError : the prior has no finite density at its own draws.
    """
    theta = model.sample_prior(n, seed)
    if not bool(torch.isfinite(model.logp(theta)).all()):
        raise InferenceError(f"the prior density of {model.names} is not finite at its own draws")
    said = model.outputs(theta)
    return Particles(
        theta=theta,
        log_weight=torch.full((n,), -math.log(n), dtype=theta.dtype, device=theta.device),
        cells=said["cells"],
        free=said["free"],
        log_likelihood=theta.new_zeros(n),
        log_evidence=0.0,
        step=0.9 / max(model.dim, 1) ** 0.25,
    )


def advance(
    model: TorchModel,
    particles: Particles,
    old: Evidence,
    new: Evidence,
    index: Mapping[Cell, int],
    seed: int,
) -> Particles:
    """The posterior under ``new`` evidence, from that under ``old``.

    Deterministic given ``seed`` (on one kind of device with one number of threads).

    Raises
    ------
    InferenceError : no particle explains the readings at all, or too many stages.
    """
    generator = torch.Generator(device=particles.theta.device).manual_seed(seed)
    moved = False
    if model.dim and glance(particles, new, index).effective < NEEDLE * len(particles.log_weight):
        finest = min((r.measurement.noise for r in new.merged), default=1.0)
        for noise in (b for b in BLURS if b > finest):
            waypoint = new.blurred(noise, old)
            particles, at_all = _reach(model, particles, old, waypoint, index, generator)
            old, moved = waypoint, moved or at_all
    particles, at_all = _reach(model, particles, old, new, index, generator)
    return _afresh(model, particles, new, index, seed) if moved or at_all else particles


def _reach(
    model: TorchModel,
    particles: Particles,
    old: Evidence,
    new: Evidence,
    index: Mapping[Cell, int],
    generator: torch.Generator,
) -> tuple[Particles, bool]:
    """The posterior under ``new`` evidence by tempering, and whether particles were moved."""
    target = new.log_likelihood(particles.cells, particles.free, index)
    t, moved = 0.0, False
    for _ in range(MAX_STAGES):
        change = torch.nan_to_num(target - particles.log_likelihood, nan=-math.inf)
        if not bool(torch.isfinite(change).any()):
            raise InferenceError("no particle gives the readings a finite density")
        step = _temper(particles.log_weight, change, 1.0 - t)
        particles = _reweight(particles, step * change)
        t = 1.0 if step >= 1.0 - t else t + step
        if t >= 1.0 and particles.effective >= KEEP * len(particles.log_weight):
            return replace(particles, log_likelihood=target), moved
        particles, moved = _resample(particles, generator), True
        particles, target = _move(model, particles, old, new, index, t, generator)
        if t >= 1.0:
            return replace(particles, log_likelihood=target), moved
    raise InferenceError(f"the readings are not reached in {MAX_STAGES} tempering stages")


def glance(particles: Particles, new: Evidence, index: Mapping[Cell, int]) -> Particles:
    """The posterior under ``new`` evidence by weights alone: cheap, and rough where the
    particles are few.
    """
    target = new.log_likelihood(particles.cells, particles.free, index)
    change = torch.nan_to_num(target - particles.log_likelihood, nan=-math.inf)
    return replace(_reweight(particles, change), log_likelihood=target)


def _afresh(
    model: TorchModel,
    particles: Particles,
    evidence: Evidence,
    index: Mapping[Cell, int],
    seed: int,
) -> Particles:
    """Replace the running log evidence by one that depends on no earlier update."""
    if model.dim == 0:
        return particles

    def log_density(theta: Tensor) -> Tensor:
        said = model.outputs(theta)
        return model.logp(theta) + evidence.log_likelihood(said["cells"], said["free"], index)

    equal = particles.theta[systematic(particles.weights, len(particles.theta), 0.5)]
    found = bridging.log_evidence(equal, log_density, _root_covariance(equal), seed)
    return particles if found is None else replace(particles, log_evidence=found)


def _temper(log_weight: Tensor, change: Tensor, most: float) -> float:
    """The largest step in ``t`` that keeps half of the effective sample size."""
    aim = KEEP * len(log_weight)

    def effective(step: float) -> float:
        w = torch.log_softmax(log_weight + step * change, 0)
        return float(torch.exp(-torch.logsumexp(2 * w, 0)))

    # a little below the aim at the very end is cheaper than a stage more
    if effective(most) >= 0.5 * aim:
        return most
    low, high = 0.0, most
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if effective(middle) >= aim else (low, middle)
    return max(low, 1e-6 * most)


def _reweight(particles: Particles, change: Tensor) -> Particles:
    weighted = particles.log_weight + change
    total = torch.logsumexp(weighted, 0)
    return replace(
        particles,
        log_weight=weighted - total,
        log_evidence=particles.log_evidence + float(total),
    )


def systematic(weights: Tensor, n: int, offset: float) -> Tensor:
    """Indices of ``n`` particles by systematic resampling (Kitagawa, 1996), (n,)."""
    edges = torch.cumsum(weights, 0)
    points = (torch.arange(n, dtype=weights.dtype, device=weights.device) + offset) / n
    return torch.searchsorted(edges / edges[-1], points).clamp_max(len(weights) - 1)


def _resample(particles: Particles, generator: torch.Generator) -> Particles:
    n = len(particles.log_weight)
    offset = float(torch.rand((), generator=generator, device=particles.theta.device))
    index = systematic(particles.weights, n, offset)
    return replace(
        particles,
        theta=particles.theta[index],
        log_weight=torch.full_like(particles.log_weight, -math.log(n)),
        cells=particles.cells[index],
        free=particles.free[index],
    )


def _move(
    model: TorchModel,
    particles: Particles,
    old: Evidence,
    new: Evidence,
    index: Mapping[Cell, int],
    t: float,
    generator: torch.Generator,
) -> tuple[Particles, Tensor]:
    """Redraws and HMC at the bridge's point ``t``: the particles and their new log likelihood.

    The particles' own ``log_likelihood`` is that of the old evidence: the next change
    is measured from it.
    """
    if model.dim == 0:
        again = new.log_likelihood(particles.cells, particles.free, index)
        before = old.log_likelihood(particles.cells, particles.free, index)
        return replace(particles, log_likelihood=before), again

    def log_density(theta: Tensor) -> Tensor:
        said = model.outputs(theta)
        value = model.logp(theta) + t * new.log_likelihood(said["cells"], said["free"], index)
        if t < 1.0 and len(old):
            value = value + (1 - t) * old.log_likelihood(said["cells"], said["free"], index)
        return value

    theta = redraw(model, particles.theta, log_density, generator)
    theta, step = hmc(theta, log_density, particles.step, generator)
    said = model.outputs(theta)
    moved = replace(
        particles,
        theta=theta,
        cells=said["cells"],
        free=said["free"],
        log_likelihood=old.log_likelihood(said["cells"], said["free"], index),
        step=step,
    )
    return moved, new.log_likelihood(said["cells"], said["free"], index)


def redraw(
    model: TorchModel, theta: Tensor, log_density: Potential, generator: torch.Generator
) -> Tensor:
    """Each variable in turn proposed anew from its prior, and taken by Metropolis and Hastings.

    This crosses what no gradient leads across: switches, and the way from a coincidence to
    the explanation that fits. With independent priors the ratio of the densities is that of
    the likelihoods.
    """
    pool = model.prior_pool
    if pool is None:
        return theta

    def log_likelihood(place: Tensor) -> Tensor:
        value = log_density(place) - model.logp(place)
        return torch.nan_to_num(value.detach(), nan=-math.inf)

    here = log_likelihood(theta)
    for slot in model.slots:
        rows = torch.randint(len(pool), (len(theta),), generator=generator, device=theta.device)
        proposed = theta.clone()
        proposed[:, slot.start : slot.stop] = pool[rows, slot.start : slot.stop]
        there = log_likelihood(proposed)
        draw = torch.rand(here.shape, generator=generator, dtype=here.dtype, device=here.device)
        taken = torch.log(draw) < there - here
        theta = torch.where(taken[:, None], proposed, theta)
        here = torch.where(taken, there, here)
    return theta


def hmc(
    theta: Tensor, log_density: Potential, step: float, generator: torch.Generator
) -> tuple[Tensor, float]:
    """Move all particles until they have forgotten where they began.

    Parameters
    ----------
    theta : (particles, dim), a sample of the density.

    Returns
    -------
    The moved particles and the adapted step size.
    """
    centre = theta.mean(0)
    root = _root_covariance(theta)
    begun = theta
    value, slope = _gradient(log_density, theta)
    for move in range(MAX_MOVES):
        jitter = 0.8 + 0.4 * float(torch.rand((), generator=generator, device=theta.device))
        theta, value, slope, rate = _hmc_once(
            theta, value, slope, root, step * jitter, log_density, generator
        )
        step = min(max(step * math.exp(0.5 * (rate - ACCEPT)), 1e-3), 1.5)
        if move + 1 >= MIN_MOVES and _memory(begun, theta, centre) < FORGET:
            break
    return theta, step


def _hmc_once(
    theta: Tensor,
    value: Tensor,
    slope: Tensor,
    root: Tensor,
    step: float,
    log_density: Potential,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor, Tensor, float]:
    """One trajectory of `LEAPS` steps for every particle; whitened by ``root`` (dim, dim)."""
    momentum = torch.randn(theta.shape, generator=generator, dtype=theta.dtype, device=theta.device)
    place, gradient, energy = theta, slope, -value + 0.5 * (momentum**2).sum(1)
    speed = momentum + 0.5 * step * gradient @ root
    for leap in range(LEAPS):
        place = place + step * speed @ root.T
        reached, gradient = _gradient(log_density, place)
        speed = speed + (0.5 if leap == LEAPS - 1 else 1.0) * step * gradient @ root
    change = energy - (-reached + 0.5 * (speed**2).sum(1))
    change = torch.nan_to_num(change, nan=-math.inf, posinf=-math.inf)
    draw = torch.rand(change.shape, generator=generator, dtype=theta.dtype, device=theta.device)
    taken = torch.log(draw) < change
    rate = float(torch.exp(change.clamp_max(0.0)).mean())
    keep = taken[:, None]
    return (
        torch.where(keep, place, theta),
        torch.where(taken, reached, value),
        torch.where(keep, gradient, slope),
        rate,
    )


def _gradient(log_density: Potential, theta: Tensor) -> tuple[Tensor, Tensor]:
    """Value (particles,) and gradient (particles, dim); a broken gradient counts as zero."""
    leaf = theta.detach().requires_grad_(True)
    value = log_density(leaf)
    if not value.requires_grad:
        return value, torch.zeros_like(theta)
    (slope,) = torch.autograd.grad(value.sum(), leaf)
    return value.detach(), torch.nan_to_num(slope, nan=0.0, posinf=0.0, neginf=0.0)


def _root_covariance(theta: Tensor) -> Tensor:
    """Lower Cholesky factor of the particles' covariance, (dim, dim)."""
    covariance = torch.cov(theta.T).reshape(theta.shape[1], theta.shape[1])
    scale = covariance.diagonal().clamp_min(TINY)
    ridge = torch.diag(1e-4 * scale + TINY)
    root, failed = torch.linalg.cholesky_ex(covariance + ridge)
    return root if int(failed) == 0 else torch.diag(torch.sqrt(scale))


def _memory(begun: Tensor, now: Tensor, centre: Tensor) -> float:
    """Largest correlation, over coordinates, between where particles began and are."""
    a, b = begun - centre, now - now.mean(0)
    norm = torch.sqrt((a**2).sum(0) * (b**2).sum(0)).clamp_min(TINY)
    return float(((a * b).sum(0) / norm).abs().max())
