"""How much each plan is expected to tell, under a belief."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from argus_bed.design.information import Information, Method, Table, table
from argus_bed.design.policies import Predictive
from argus_bed.errors import UsageError, ValueRejected
from argus_bed.inference.belief import Belief
from argus_bed.inference.evidence import merge
from argus_bed.inference.likelihood import Density
from argus_bed.inference.threads import one_thread
from argus_bed.probe import Measurement, Reading

Target = Literal["cause", "parameters", "joint"]

NEGLIGIBLE = 1e-4
"""Hypotheses less probable than this are left out: they cannot matter by 0.002 bits."""

MIN_OUTCOMES_ALONE = 64
"""Outcomes of the least probable hypothesis where each is looked at by itself."""


@dataclass(frozen=True)
class Gain:
    """Expected information in bits with its standard error, and how it was found."""

    bits: float
    error_bits: float
    method: Method


@dataclass(frozen=True)
class Effort:
    """What an estimate may cost.

    particles : of each hypothesis, for a plan of one reading.
    outcomes : simulated ones of a plan with several readings.
    several : particles of each hypothesis there. The error is made of outcomes first, so
        that there are fewer particles and more of those.
    """

    particles: int = 128
    outcomes: int = 2048
    several: int = 64

    def times(self, factor: float) -> Effort:
        """More or less of all; outcomes first, because they are what the error is made of."""
        return Effort(
            max(32, round(self.particles * factor**0.5)),
            max(64, round(self.outcomes * factor)),
            max(32, round(self.several * factor**0.5)),
        )


DEFAULT = Effort()
CHEAP = Effort(particles=64, outcomes=256)
THOROUGH = Effort(particles=256, outcomes=8192, several=128)


@dataclass(frozen=True)
class Lens:
    """A belief seen from the front: the hypotheses that matter, all particles in one stack.

    cells, free : (hypotheses * particles, cells).
    weight : (hypotheses, particles), each row sums to one.
    probability : (hypotheses,).
    """

    belief: Belief
    names: tuple[str, ...]
    probability: Tensor
    weight: Tensor
    cells: Tensor
    free: Tensor

    def only(self, h: int) -> Lens:
        """One of the hypotheses."""
        n = self.weight.shape[1]
        rows = slice(h * n, (h + 1) * n)
        return Lens(
            self.belief,
            self.names[h : h + 1],
            torch.ones_like(self.probability[:1]),
            self.weight[h : h + 1],
            self.cells[rows],
            self.free[rows],
        )

    def density(self, measurements: Sequence[Measurement], particles: int) -> Density:
        """Density of the readings of one plan, thinned for it to so many particles."""
        whole = self.belief.evidence.predictive(
            measurements, self.cells, self.free, self.belief.frame.cell_index
        )
        return thinned(whole, self.weight, particles).to(torch.float32)


def lens(belief: Belief, names: Sequence[str] | None = None) -> Lens:
    """The hypotheses worth looking at; with ``names`` these alone, equally probable."""
    shares = belief.probabilities()
    if names is None:
        kept = tuple(n for n, p in shares.items() if p >= NEGLIGIBLE)
        chosen = torch.tensor([shares[n] for n in kept], dtype=torch.float64)
    else:
        kept = tuple(names)
        chosen = torch.ones(len(kept), dtype=torch.float64)
    held = [belief.particles(name) for name in kept]
    return Lens(
        belief,
        kept,
        chosen / chosen.sum(),
        torch.stack([h.weights for h in held]).cpu(),
        torch.cat([h.cells for h in held]).cpu(),
        torch.cat([h.free for h in held]).cpu(),
    )


def thinned(density: Density, weight: Tensor, particles: int) -> Density:
    """So many particles of every hypothesis, of equal weight, that stand for all of them.

    Within each hypothesis the particles are put in order along the direction in which
    their predictions vary most, and one is taken at the middle of each of so many equal
    steps of weight: a stratified sample, far less noisy than a random one. (Not by their
    place in memory: every eighth point of a Sobol sequence fills an eighth of its range.)

    For a single reading the middle is moved to the mean of its step: the outermost step
    reaches far, and its middle would make the tails too short.

    Parameters
    ----------
    density : (hypotheses * all particles) rows. weight : (hypotheses, all particles).

    Returns
    -------
    A density of (hypotheses * particles) rows.
    """
    hypotheses, n = weight.shape
    order = _order(density, weight)
    edges = torch.cumsum(weight.gather(1, order), 1)
    edges = edges / edges[:, -1:]
    middles = ((torch.arange(particles, dtype=weight.dtype) + 0.5) / particles).expand(
        hypotheses, -1
    )
    taken = order.gather(1, torch.searchsorted(edges, middles.contiguous()).clamp_max(n - 1))
    found = density.rows((taken + torch.arange(hypotheses)[:, None] * n).reshape(-1))
    if density.readings > 1 or bool(density.flag.any()) or particles >= n:
        return found
    loc = density.loc[0, :, 0].reshape(hypotheses, n).gather(1, order)
    return replace(found, loc=torch.stack([_step_means(loc, edges, particles), found.loc[1]]))


def _order(density: Density, weight: Tensor) -> Tensor:
    """Particles of each hypothesis along the principal axis of their predictions.

    A prediction is a place, in units of its typical scale, and the logarithm of its scale.

    Returns
    -------
    (hypotheses, all particles)
    """
    hypotheses, n = weight.shape
    scale = torch.log(density.scale[0]).reshape(hypotheses, n, -1)
    typical = torch.exp((weight[..., None] * scale).sum(1, keepdim=True))
    place = density.loc[0].reshape(hypotheses, n, -1) / typical
    both = torch.cat([place, scale], 2)
    both = both - (weight[..., None] * both).sum(1, keepdim=True)
    covariance = torch.einsum("hn,hni,hnj->hij", weight, both, both)
    axis = torch.linalg.eigh(covariance).eigenvectors[:, :, -1]
    return torch.argsort(torch.einsum("hni,hi->hn", both, axis), dim=1, stable=True)


def _step_means(values: Tensor, edges: Tensor, steps: int) -> Tensor:
    """Means of a step function over equal steps of weight.

    Parameters
    ----------
    values : (hypotheses, n), in order. edges : (hypotheses, n), cumulative weights up to 1.

    Returns
    -------
    (hypotheses * steps, 1)
    """
    hypotheses, n = values.shape
    zero = values.new_zeros(hypotheses, 1)
    below = torch.cat([zero, edges[:, :-1]], 1)
    total = torch.cat([zero, torch.cumsum(values * (edges - below), 1)], 1)
    aims = torch.linspace(0, 1, steps + 1, dtype=values.dtype).expand(hypotheses, -1).contiguous()
    index = torch.searchsorted(edges, aims).clamp_max(n - 1)
    at = total.gather(1, index) + values.gather(1, index) * (aims - below.gather(1, index))
    return (steps * torch.diff(at, dim=1)).reshape(-1, 1)


@one_thread()
def gains(
    belief: Belief,
    plans: Sequence[Sequence[Measurement]],
    *,
    target: Target = "cause",
    effort: Effort = DEFAULT,
) -> list[Gain]:
    """Expected information of each plan, given everything that the belief has read.

    Readings of a key that was read before are predicted from it: asking again for what
    is known tells next to nothing.

    Raises
    ------
    UsageError : an unknown target.
    UnknownName : a measurement of a cell outside the belief's frame.
    """
    if target not in ("cause", "parameters", "joint"):
        raise UsageError(f"target={target!r}: 'cause', 'parameters' or 'joint'")
    look = lens(belief)
    return [_gain(look, plan, target, effort) for plan in plans]


def _gain(look: Lens, plan: Sequence[Measurement], target: Target, effort: Effort) -> Gain:
    distinct = once(plan)
    alone = len(look.names) == 1 and target == "cause"
    if not distinct or alone:
        return Gain(0.0, 0.0, "nothing")
    particles = effort.several if len(distinct) > 1 else effort.particles
    found = _table(look, distinct, particles, effort.outcomes).information(look.probability)
    if found.method == "sobol" and target != "cause":
        found = replace(found, parameters=_parameters(look, distinct, effort.outcomes))
    return to_gain(found, target)


def _table(look: Lens, plan: Sequence[Measurement], particles: int, outcomes: int) -> Table:
    # one seed for all: plans of one size are compared on the same random numbers
    return table(
        look.density(plan, particles),
        look.probability,
        outcomes=outcomes,
        seed=look.belief.seed,
    )


def _parameters(look: Lens, plan: Sequence[Measurement], outcomes: int) -> tuple[float, float]:
    """I(theta; Y | H) in nats and its error, for several readings.

    Each hypothesis by itself, so that all of its particles can be afforded: in more than
    one dimension a few dozen do not fill the space between them.
    """
    total, error2 = 0.0, 0.0
    one = look.probability.new_ones(1)
    for h, share in enumerate(look.probability.tolist()):
        alone = look.only(h)
        found = table(
            alone.density(plan, alone.weight.shape[1]),
            one,
            outcomes=max(round(outcomes * share), MIN_OUTCOMES_ALONE),
            seed=look.belief.seed,
        ).information(one)
        total += share * found.parameters[0]
        error2 += (share * found.parameters[1]) ** 2
    return total, math.sqrt(error2)


@one_thread()
def predictive(
    belief: Belief, measurements: Sequence[Measurement], *, effort: Effort = CHEAP
) -> Predictive:
    """What the hypotheses expect of a plan's outcomes, given everything that was read.

    The same outcomes as for `gains` of that effort. A plan that reads nothing has one
    outcome, which leaves everything as it is.
    """
    look, distinct = lens(belief), once(measurements)
    prior = look.probability
    if not distinct:
        return Predictive(prior.numpy(), np.ones(1), prior.numpy()[None])
    particles = effort.several if len(distinct) > 1 else effort.particles
    found = _table(look, distinct, particles, effort.outcomes)
    weight = (found.mass * prior).sum(1)
    posterior = torch.softmax(found.log_p + torch.log(prior), 1)
    return Predictive(prior.numpy(), (weight / weight.sum()).numpy(), posterior.numpy())


def to_gain(found: Information, target: Target) -> Gain:
    """One target of an `Information` in bits."""
    nats, error = {
        "cause": found.cause,
        "parameters": found.parameters,
        "joint": found.joint,
    }[target]
    return Gain(nats / math.log(2), error / math.log(2), found.method)


def once(plan: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """A plan's measurements with repeats of one key merged, in the plan's order."""
    groups: dict[object, list[Measurement]] = {}
    for m in plan:
        groups.setdefault(m.key, []).append(m)
    return tuple(merge([Reading(m, 0.0) for m in group]).measurement for group in groups.values())


@one_thread()
def race(
    belief: Belief,
    plans: Sequence[Sequence[Measurement]],
    prices: Sequence[float],
    *,
    target: Target = "cause",
    rounds: Sequence[Effort] = (CHEAP, DEFAULT, THOROUGH),
    sigmas: float = 3.0,
) -> list[Gain]:
    """Gains, with effort only where the best gain per price is still open.

    All plans get the first round. Each further round is for those whose score could,
    within ``sigmas`` errors, still be the best, as long as there are two of them.

    Raises
    ------
    ValueRejected : as many prices as plans are needed, none negative.
    """
    if len(prices) != len(plans) or any(not p >= 0 for p in prices):
        raise ValueRejected(f"prices = {list(prices)}: one of zero or more for each plan")
    found = gains(belief, plans, target=target, effort=rounds[0])
    for effort in rounds[1:]:
        open_ = contenders(found, prices, sigmas)
        if len(open_) < 2:
            break
        better = gains(belief, [plans[i] for i in open_], target=target, effort=effort)
        for i, gain in zip(open_, better, strict=True):
            found[i] = gain
    return found


def contenders(found: Sequence[Gain], prices: Sequence[float], sigmas: float = 3.0) -> list[int]:
    """Plans whose gain per price could still be the best."""

    def per_price(bits: float, price: float) -> float:
        if bits <= 0:
            return 0.0
        return bits / price if price > 0 else math.inf

    # an exact method still rests on few particles in a cheap round
    slack = [sigmas * max(g.error_bits, 0.01 * abs(g.bits)) for g in found]
    low = [per_price(g.bits - s, p) for g, s, p in zip(found, slack, prices, strict=True)]
    high = [per_price(g.bits + s, p) for g, s, p in zip(found, slack, prices, strict=True)]
    best = max(low, default=0.0)
    return [i for i, h in enumerate(high) if h >= best and h > 0]


def separation(
    belief: Belief, measurements: Sequence[Measurement], a: str, b: str, *, effort: Effort = DEFAULT
) -> float:
    """Bits that a plan gives about which of two hypotheses it is, both equally probable.

    The Jensen-Shannon divergence of their predictions: 0 if they agree, 1 if one reading
    decides. The probability of deciding wrongly is at most (1 - bits) / 2 (Hellman and
    Raviv, 1970, IEEE Transactions on Information Theory 16).
    """
    return separations(belief, measurements, (a, b), effort=effort)[a, b]


@one_thread()
def separations(
    belief: Belief,
    measurements: Sequence[Measurement],
    names: Sequence[str] | None = None,
    *,
    effort: Effort = DEFAULT,
) -> dict[tuple[str, str], float]:
    """`separation` of every pair of ``names`` (all hypotheses), from one set of outcomes."""
    chosen = tuple(belief.probabilities() if names is None else names)
    distinct = once(measurements)
    if not distinct:
        return dict.fromkeys(combinations(chosen, 2), 0.0)
    look = lens(belief, chosen)
    outcomes = max(effort.outcomes, 64 * len(chosen))
    particles = effort.several if len(distinct) > 1 else effort.particles
    found = _table(look, distinct, particles, outcomes)
    pairs = combinations(range(len(chosen)), 2)
    return {(chosen[i], chosen[j]): min(found.pair(i, j) / math.log(2), 1.0) for i, j in pairs}
