"""How much each plan is expected to tell, under a belief."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import torch
from torch import Tensor

from argus_bed.design.information import Information, Method, Table, table
from argus_bed.errors import UsageError, ValueRejected
from argus_bed.inference.belief import Belief
from argus_bed.inference.evidence import merge
from argus_bed.inference.likelihood import Density
from argus_bed.inference.threads import one_thread
from argus_bed.probe import Measurement, Reading

Target = Literal["cause", "parameters", "joint"]

NEGLIGIBLE = 1e-4
"""Hypotheses less probable than this are left out: they cannot matter by 0.002 bits."""


@dataclass(frozen=True)
class Gain:
    """Expected information in bits with its standard error, and how it was found."""

    bits: float
    error_bits: float
    method: Method


@dataclass(frozen=True)
class Effort:
    """What an estimate may cost.

    particles : of each hypothesis. outcomes : simulated ones of a plan with several readings.
    """

    particles: int = 128
    outcomes: int = 1024

    def times(self, factor: float) -> Effort:
        """More or less of both; outcomes first, because they are what the error is made of."""
        return Effort(
            max(32, round(self.particles * factor**0.5)), max(64, round(self.outcomes * factor))
        )


DEFAULT = Effort()
CHEAP = Effort(particles=64, outcomes=256)
THOROUGH = Effort(particles=256, outcomes=4096)


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

    def density(self, measurements: Sequence[Measurement], particles: int) -> Density:
        """Density of the readings of one plan, thinned for it to so many particles."""
        whole = self.belief.evidence.predictive(
            measurements, self.cells, self.free, self.belief.frame.cell_index
        )
        return whole.rows(spread_out(whole, self.weight, particles)).to(torch.float32)


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


def spread_out(density: Density, weight: Tensor, particles: int) -> Tensor:
    """Rows of so many particles of every hypothesis, of equal weight, evenly spread.

    Within each hypothesis the particles are put in the order of their predictions, along
    the direction in which these vary most (in units of their own scale), and taken at
    equal steps of weight: a stratified sample, far less noisy than a random one.
    Particles are not thinned by their place in memory, because every eighth point of a
    Sobol sequence fills an eighth of its range.

    Parameters
    ----------
    density : (hypotheses * all particles) rows. weight : (hypotheses, all particles).

    Returns
    -------
    (hypotheses * particles,)
    """
    hypotheses, n = weight.shape
    scaled = (density.loc[0] / density.scale[0]).reshape(hypotheses, n, -1)
    centred = scaled - (weight[..., None] * scaled).sum(1, keepdim=True)
    if density.readings > 1:
        covariance = torch.einsum("hn,hni,hnj->hij", weight, centred, centred)
        axis = torch.linalg.eigh(covariance).eigenvectors[:, :, -1]
        centred = torch.einsum("hni,hi->hn", centred, axis)[..., None]
    order = torch.argsort(centred[..., 0], dim=1, stable=True)
    edges = torch.cumsum(weight.gather(1, order), 1)
    steps = (torch.arange(particles, dtype=weight.dtype) + 0.5) / particles
    aims = steps * edges[:, -1:]
    taken = order.gather(1, torch.searchsorted(edges, aims).clamp_max(n - 1))
    return (taken + torch.arange(hypotheses)[:, None] * n).reshape(-1)


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
    found = _table(look, distinct, effort).information(look.probability)
    return to_gain(found, target)


def _table(look: Lens, plan: Sequence[Measurement], effort: Effort) -> Table:
    # one seed for all: plans of one size are compared on the same random numbers
    return table(
        look.density(plan, effort.particles),
        look.probability,
        outcomes=effort.outcomes,
        seed=look.belief.seed,
    )


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
    found = _table(look, distinct, Effort(effort.particles, outcomes))
    pairs = combinations(range(len(chosen)), 2)
    return {(chosen[i], chosen[j]): min(found.pair(i, j) / math.log(2), 1.0) for i, j in pairs}
