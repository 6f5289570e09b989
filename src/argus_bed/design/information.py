"""Mutual information between what is unknown and what would be read.

Everything here works on a `Density` whose particles are ``hypotheses x particles`` in
that order, equally weighted within a hypothesis, and on the probabilities of the
hypotheses. With Y the outcome, H the hypothesis and theta its parameters

    cause       I(H; Y)          = sum_h p(h) E[ KL( p(.|Y) || p(.) ) | h ]
    parameters  I(theta; Y | H)  = sum_h p(h) E[ log p(Y|theta,h) - log p(Y|h) | h ]
    joint       I(H, theta; Y)   = cause + parameters            (chain rule)

(Lindley, 1956, Annals of Mathematical Statistics 27; Rainforth et al., 2024, Statistical
Science 39). ``p(y|h)`` is the average over particles, so the parameters are summed out
exactly as far as the particles go (Rao-Blackwell).

Three ways to integrate over outcomes:

* ``quadrature`` for one continuous reading: three-point Gauss-Legendre on intervals of
  about equal predictive mass;
* ``enumeration`` for flags: all outcomes;
* ``sobol`` otherwise: scrambled Sobol points, stratified by hypothesis and particle, the
  same for every plan of one size (common random numbers).

An outcome drawn from a particle makes that particle's own density look good. Averages
that include and that exclude it err by +V/(2 n p^2) and -V/(2 n p^2) in ``log p``, with V
the variance of the density over particles, so their mean (the geometric mean of the two
averages) has no error of order 1/n; what is left is part of the stated error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from argus_bed.errors import ValueRejected
from argus_bed.inference.likelihood import Density, log_norm, quantile
from argus_bed.inference.prior import sobol

Method = Literal["quadrature", "enumeration", "sobol", "nothing"]

INTERVALS = 96
EDGE_ROWS = 128
EDGE_LEVELS = 12
MAX_FLAGS = 10
BLOCKS = 8  # into which simulated outcomes are parted for their error
MIN_OUTCOMES = 8  # drawn from each hypothesis, however improbable
MAX_GAP = -1.0  # nats by which leaving the own particle out may count
TAIL_LEVELS = (1e-6, 1e-5, 1e-4, 5e-4, 2e-3)
_GAUSS = (
    (-math.sqrt(0.6), 5 / 18),
    (0.0, 8 / 18),
    (math.sqrt(0.6), 5 / 18),
)  # nodes on (-1, 1), weights that sum to one
_ENTROPY_NODES = 32
UNSEEN = 0.002
"""Share of a gain that quadrature and widening may be off by, which no halving shows."""
WIDENING = 0.75
"""Sd by which a particle is widened, in gaps to its neighbours: equal gaps then leave a
ripple of 2 exp(-2 (0.75 pi)^2) = 3e-5, and slightly unequal ones not much more."""


@dataclass(frozen=True)
class Information:
    """Mutual information in nats and its standard error, by target."""

    cause: tuple[float, float]
    parameters: tuple[float, float]
    method: Method

    @property
    def joint(self) -> tuple[float, float]:
        return (
            self.cause[0] + self.parameters[0],
            math.hypot(self.cause[1], self.parameters[1]),
        )


@dataclass(frozen=True)
class Table:
    """Predictive densities at a set of outcomes, from which all targets follow.

    Attributes
    ----------
    log_p : (outcomes, hypotheses), log p(y|h).
    mass : (outcomes, hypotheses), weights with ``sum_y mass[y, h] f(y)`` about E[f(Y) | h].
    own : (hypotheses,), E[log p(Y|theta,h) | h].
    halves : (2, outcomes, hypotheses), ``log_p`` from every other particle; empty if drawn.
    drawn : (outcomes,), the hypothesis an outcome was drawn from; empty if not drawn.
    mine : (outcomes,), log density of a drawn outcome under the particle it came from.
    gap : (outcomes,), nats that leaving that particle out makes.
    method : how the outcomes were chosen.
    """

    log_p: Tensor
    mass: Tensor
    own: Tensor
    halves: Tensor
    drawn: Tensor
    mine: Tensor
    gap: Tensor
    method: Method

    def information(self, probability: Tensor) -> Information:
        """All targets for hypotheses of ``probability`` (hypotheses,)."""
        cause, parameters = self._both(self.log_p, self.mass, probability)
        if self.method == "sobol":
            errors = self._errors(probability)
        else:
            # every other particle: what the thinning itself makes uncertain, and how far
            # twice as few are off, as a bound of how far these are
            parts = [
                self._both(half, self.mass * torch.exp(half - self.log_p), probability)
                for half in self.halves
            ]
            lost = float((probability * (self.mass.sum(0) - 1).abs()).sum())
            errors = (
                _halving(cause, parts[0][0], parts[1][0]) + (lost + UNSEEN) * abs(cause),
                _halving(parameters, parts[0][1], parts[1][1]) + lost + UNSEEN * abs(parameters),
            )
        return Information((cause, errors[0]), (parameters, errors[1]), self.method)

    def _both(self, log_p: Tensor, mass: Tensor, probability: Tensor) -> tuple[float, float]:
        gain = divergence(log_p, probability)
        cause = (probability * (mass * gain[:, None]).sum(0)).sum()
        parameters = (probability * (self.own - (mass * log_p).sum(0))).sum()
        return float(cause), float(parameters)

    def _errors(self, probability: Tensor) -> tuple[float, float]:
        """Standard errors of both targets if outcomes were drawn.

        Half of the correction for the own particle is added: what is left after it is
        smaller. A shift of one log density moves the divergence by less than itself.
        """
        here = self.log_p.gather(1, self.drawn[:, None])[:, 0]
        share = torch.softmax(self.log_p + torch.log(probability), 1)
        rest = 1 - share.gather(1, self.drawn[:, None])[:, 0]
        moved = [self.gap.abs() * rest, self.gap.abs()]
        left = [0.25 * float((self.mass * m[:, None]).sum(0) @ probability) for m in moved]
        gain = divergence(self.log_p, probability)
        drawn = [self._error(v, probability) for v in (gain, self.mine - here)]
        return math.hypot(drawn[0], left[0]), math.hypot(drawn[1], left[1])

    def _error(self, values: Tensor, probability: Tensor) -> float:
        """Standard error of a mean from its spread over blocks of consecutive points.

        A block of a Sobol sequence is itself evenly spread, and blocks balance each
        other: the error is no larger than this, and a third of that of independent points.
        """
        weight = (self.mass * probability).sum(1)
        deviation = weight * (values - (weight * values).sum() / weight.sum())
        return float(BLOCKS * deviation.reshape(BLOCKS, -1).sum(1).std()) / math.sqrt(BLOCKS)

    def pair(self, a: int, b: int) -> float:
        """Information (nats) on which of two equally probable hypotheses it is."""
        half = self.log_p.new_full((2,), 0.5)
        both = replace(self, log_p=self.log_p[:, [a, b]], mass=self.mass[:, [a, b]])
        gain = divergence(both.log_p, half)
        return max(float((half * (both.mass * gain[:, None]).sum(0)).sum()), 0.0)


def _halving(whole: float, one: float, other: float) -> float:
    """Error of a figure from what it is on each half of the particles."""
    return math.hypot(0.5 * (one - other), 0.5 * (one + other) - whole)


def divergence(log_p: Tensor, probability: Tensor) -> Tensor:
    """KL(p(h|y) || p(h)) of each outcome in nats: (outcomes, hypotheses) -> (outcomes,)."""
    log_prior = torch.log(probability)
    log_posterior = torch.log_softmax(log_p + log_prior, dim=1)
    change = torch.where(log_posterior > -80, log_posterior - log_prior, 0.0)
    return (torch.exp(log_posterior) * change).sum(1)


def arrays(
    locations: Tensor | Sequence[object],
    scales: Tensor | Sequence[object] | float,
    dof: float = math.inf,
) -> Density:
    """A `Density` from plain arrays, for closed forms.

    Parameters
    ----------
    locations, scales : (hypotheses, particles, readings), scales broadcastable.
    """
    loc = torch.as_tensor(locations, dtype=torch.float64)
    if loc.ndim != 3:
        raise ValueRejected(
            f"locations of shape {tuple(loc.shape)}: hypotheses x particles x readings"
        )
    flat = loc.reshape(-1, loc.shape[-1])
    scale = torch.as_tensor(scales, dtype=torch.float64).expand(loc.shape).reshape(flat.shape)
    degrees = flat.new_full((2, flat.shape[1]), dof)
    weight = torch.stack([torch.ones_like(flat), torch.zeros_like(flat)])
    flag = torch.zeros(flat.shape[1], dtype=torch.bool)
    return Density(torch.stack([flat, flat]), torch.stack([scale, scale]), weight, degrees, flag)


def flags(odds: Tensor | Sequence[object]) -> Density:
    """A `Density` of flags, from the probability of a one: (hypotheses, particles, readings)."""
    p = torch.as_tensor(odds, dtype=torch.float64)
    found = arrays(p, 1.0)
    return replace(found, flag=torch.ones(p.shape[-1], dtype=torch.bool))


def table(density: Density, probability: Tensor, *, outcomes: int, seed: int = 0) -> Table:
    """Evaluate the densities where it is worth it.

    Parameters
    ----------
    density : of ``hypotheses * particles`` rows.
    probability : (hypotheses,), sums to one; steers where outcomes are placed.
    outcomes : number of simulated outcomes, where they are simulated.
    """
    if bool(density.flag.all()) and density.readings <= MAX_FLAGS:
        return _enumerate(density, len(probability))
    if density.readings == 1:
        return _quadrature(density, probability)
    return _simulate(density, probability, outcomes, seed)


def log_joint(density: Density, y: Tensor) -> Tensor:
    """Log density of outcomes: (outcomes, readings) -> (outcomes, particles).

    As `Density.joint`, in a form that makes few passes over the large array.
    """
    total = y.new_zeros(())
    for m in range(density.readings):
        at = y[:, m, None]
        if bool(density.flag[m]):
            odds = density.loc[0, :, m].clamp(1e-6, 1 - 1e-6)
            total = total + torch.where(at > 0.5, torch.log(odds), torch.log1p(-odds))
            continue
        total = total + torch.log(_curve(density, 0, m, at).add_(_curve(density, 1, m, at)))
    return total


def _curve(density: Density, k: int, m: int, at: Tensor) -> Tensor:
    """Weighted density of one of the two curves, (outcomes, particles)."""
    loc, scale, weight = density.loc[k, :, m], density.scale[k, :, m], density.weight[k, :, m]
    dof = density.dof[k, m]
    top = weight * torch.exp(log_norm(dof)) / scale
    if k == 1 and _constant(loc) and _constant(scale):  # coincidences of a contrast
        squared = ((at - loc[:1]) / scale[:1]).square_()
    else:
        squared = (at * (1 / scale) - loc / scale).square_()
    if math.isinf(float(dof)):
        shape = squared.mul_(-0.5).exp_()
    else:
        shape = squared.div_(dof).log1p_().mul_(-0.5 * (float(dof) + 1)).exp_()
    floor = 1e-37 if at.dtype == torch.float32 else 1e-300
    return shape * top + 0.5 * floor


def _constant(values: Tensor) -> bool:
    return bool((values == values[0]).all())


def _by_hypothesis(log_f: Tensor, hypotheses: int) -> Tensor:
    """Average over particles: (outcomes, hypotheses * particles) -> (outcomes, hypotheses)."""
    n = log_f.shape[1] // hypotheses
    blocks = log_f.reshape(len(log_f), hypotheses, n)
    return (torch.logsumexp(blocks, 2) - math.log(n)).double()


def _halves(log_f: Tensor, hypotheses: int) -> Tensor:
    """`_by_hypothesis` from every other particle, (2, outcomes, hypotheses)."""
    if log_f.shape[1] // hypotheses < 2:
        return _by_hypothesis(log_f, hypotheses)[None].expand(2, -1, -1)
    blocks = log_f.reshape(len(log_f), hypotheses, -1)
    halves = [blocks[:, :, k::2].flatten(1) for k in (0, 1)]
    return torch.stack([_by_hypothesis(h, hypotheses) for h in halves])


def _enumerate(density: Density, hypotheses: int) -> Table:
    """All outcomes of flags."""
    m = density.readings
    y = density.loc.new_tensor(list(product((0.0, 1.0), repeat=m))).reshape(-1, m)
    log_f = log_joint(density, y)
    log_p = _by_hypothesis(log_f, hypotheses)
    own = (torch.exp(log_f) * log_f).sum(0).reshape(hypotheses, -1).mean(1).double()
    none = log_p.new_zeros(0)
    halves = _halves(log_f, hypotheses)
    mass = torch.exp(log_p)
    return Table(log_p, mass, own, halves, none.long(), none, none, "enumeration")


def _quadrature(density: Density, probability: Tensor) -> Table:
    """One continuous reading, on intervals of about equal predictive mass."""
    hypotheses = len(probability)
    smooth = _smoothed(density, hypotheses)
    edges = _edges(smooth, probability)
    middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * (edges[1:] - edges[:-1])
    y = torch.cat([middle + half * node for node, _ in _GAUSS])
    width = torch.cat([2 * half * weight for _, weight in _GAUSS]).double()
    log_f = log_joint(smooth, y[:, None])
    log_p = _by_hypothesis(log_f, hypotheses)
    mass = torch.exp(log_p) * width[:, None]
    own = -_entropy(density).reshape(hypotheses, -1).mean(1).double()
    none = log_p.new_zeros(0)
    halves = _halves(log_f, hypotheses)
    return Table(log_p, mass, own, halves, none.long(), none, none, "quadrature")


def _smoothed(density: Density, hypotheses: int) -> Density:
    """Widen each particle by the gap to its neighbours, in one dimension.

    Where the noise is small against the spacing of the particles, the average would be a
    comb, and its teeth would look like information.
    """
    loc = density.loc[0, :, 0].reshape(hypotheses, -1)
    n = loc.shape[1]
    if n < 8:
        return density
    ordered, index = torch.sort(loc, dim=1)
    reach = 2
    place = torch.arange(n)
    last, first = (place + reach).clamp_max(n - 1), (place - reach).clamp_min(0)
    gap = (ordered[:, last] - ordered[:, first]) / (last - first)
    gap = torch.zeros_like(loc).scatter_(1, index, WIDENING * gap)
    scale = density.scale.clone()
    scale[0, :, 0] = torch.sqrt(scale[0, :, 0] ** 2 + gap.reshape(-1) ** 2)
    return replace(density, scale=scale)


def _edges(density: Density, probability: Tensor) -> Tensor:
    """Ends of the intervals, (intervals + 1,), from quantiles of a sample of the mixture."""
    hypotheses = len(probability)
    n = density.particles // hypotheses
    rows = torch.arange(density.particles).reshape(hypotheses, n)[:, :: max(n // EDGE_ROWS, 1)]
    share = 0.5 * probability + 0.5 / hypotheses
    levels = [
        *TAIL_LEVELS,
        *(np.arange(EDGE_LEVELS) + 0.5) / EDGE_LEVELS,
        *(1 - t for t in reversed(TAIL_LEVELS)),
    ]
    u = density.loc.new_tensor(sorted(levels))
    cells = torch.diff(torch.cat([u.new_zeros(1), 0.5 * (u[1:] + u[:-1]), u.new_ones(1)]))
    places, weights = [], []
    for k in (0, 1):
        flat = rows.reshape(-1)
        if k == 1 and _constant(density.loc[1, :, 0]) and _constant(density.scale[1, :, 0]):
            flat = flat[:: rows.shape[1]]
        per = len(flat) // hypotheses
        q = quantile(u, density.dof[k, 0].expand(len(u)))
        places.append(density.loc[k, flat, 0, None] + density.scale[k, flat, 0, None] * q)
        each = (share / per).repeat_interleave(per).to(u) * density.weight[k, flat, 0]
        weights.append(each[:, None] * cells)
    place, order = torch.sort(torch.cat([p.reshape(-1) for p in places]))
    cumulative = torch.cumsum(torch.cat([w.reshape(-1) for w in weights])[order].double(), 0)
    inner = (torch.arange(INTERVALS + 1, dtype=torch.float64) / INTERVALS)[1:-1]
    tails = torch.tensor(TAIL_LEVELS, dtype=torch.float64)
    aims = torch.cat([tails, inner, 1 - tails]).sort().values * cumulative[-1]
    index = torch.searchsorted(cumulative, aims).clamp_max(len(place) - 1)
    ends = torch.cat([place[:1], place[index], place[-1:]])
    found: Tensor = torch.unique(ends)
    return found


def _entropy(density: Density) -> Tensor:
    """Entropy in nats of a single reading under each particle, (particles,).

    Gauss-Legendre in v, where 3 v^2 - 2 v^3 is the probability u within each of the two
    curves: the logarithm is infinite at both ends, and there dv makes du small.
    """
    x, w = np.polynomial.legendre.leggauss(_ENTROPY_NODES)
    v = 0.5 * (x + 1)
    u = torch.as_tensor(v**2 * (3 - 2 * v))
    share = density.loc.new_tensor(0.5 * w * 6 * v * (1 - v))
    total = density.loc.new_zeros(density.particles)
    for k in (0, 1):
        q = quantile(u, density.dof[k, 0].expand(len(u))).to(density.loc)
        y = density.loc[k, :, 0] + density.scale[k, :, 0] * q[:, None]
        log_f = density.each(y[..., None])[..., 0]
        total = total - density.weight[k, :, 0] * (share @ log_f)
    return total


def _simulate(density: Density, probability: Tensor, outcomes: int, seed: int) -> Table:
    """Vectors: outcomes from every hypothesis, each particle left out of its own average.

    The first Sobol coordinate chooses hypothesis and particle together, so that every
    run of consecutive points holds all hypotheses in proportion, each spread over its
    particles.
    """
    hypotheses = len(probability)
    n, m = density.particles // hypotheses, density.readings
    outcomes = -(-max(outcomes, MIN_OUTCOMES * hypotheses) // BLOCKS) * BLOCKS
    share = probability.clamp_min(MIN_OUTCOMES / outcomes)
    edges = torch.cumsum(share / share.sum(), 0)
    uniform = torch.as_tensor(sobol(outcomes, 2 * m + 1, seed))
    first, points = uniform[:, 0].contiguous(), uniform[:, 1:].to(density.loc)
    drawn = torch.searchsorted(edges / edges[-1], first, right=True).clamp_max(hypotheses - 1)
    width = (share / share.sum())[drawn]
    within = ((first - edges[drawn] + width) / width).clamp(0, 1 - 1e-9)
    row = drawn * n + (within * n).long().clamp_max(n - 1)
    y = density.rows(row).sample(points[:, :m], points[:, m:])
    log_f = log_joint(density, y)
    log_p = _by_hypothesis(log_f, hypotheses)
    mine = log_f.gather(1, row[:, None])[:, 0].double()
    here = log_p.gather(1, drawn[:, None])[:, 0]
    gap = _left_out(here, mine, n)
    log_p = log_p.scatter(1, drawn[:, None], (here + 0.5 * gap)[:, None])
    counts = torch.bincount(drawn, minlength=hypotheses).clamp_min(1).to(log_p)
    mass = torch.zeros_like(log_p)
    mass[torch.arange(outcomes), drawn] = 1.0 / counts[drawn]
    own = (mass * mine[:, None]).sum(0)
    return Table(log_p, mass, own, log_p.new_zeros(0), drawn, mine, gap, "sobol")


def _left_out(here: Tensor, mine: Tensor, n: int) -> Tensor:
    """log of the average without the own particle minus that with it, (outcomes,), capped."""
    if n < 2:
        return torch.zeros_like(here)
    share = torch.exp(mine - here - math.log(n)).clamp_max(1 - 1e-9)
    return (torch.log1p(-share) + math.log(n / (n - 1))).clamp_min(MAX_GAP)
