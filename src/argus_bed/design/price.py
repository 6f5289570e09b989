"""What a run costs in one currency, and information per price.

Seconds of the target's time: those that the run takes, and those that the target loses
to the disturbance meanwhile, weighed by ``harm``. Caps are constraints (`admissible`);
no gain buys its way over them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from argus_bed.design.gain import Gain
from argus_bed.errors import ValueRejected
from argus_bed.probe import Plan, Price

MAX_PERTURBATION = 3.0
"""A target that takes four times as long is as disturbed as it can count."""

RATIO_SD = math.log(2.0)  # assumption: an estimate in the catalogue is right within a factor 2
SPREAD_SD = 0.3  # assumption: sd of the log ratio of two runs of one probe


def price_of(price: Price, *, harm: float = 1.0) -> float:
    """Price in seconds: ``seconds * (1 + harm * min(perturbation, 3))``.

    Raises
    ------
    ValueRejected : a negative or not finite component or harm.
    """
    parts = {
        "setup_s": price.setup_s,
        "run_s": price.run_s,
        "perturbation": price.perturbation,
        "harm": harm,
    }
    for name, value in parts.items():
        if not (math.isfinite(value) and value >= 0):
            raise ValueRejected(f"{name} = {value}: a price is a finite number, zero or more")
    return price.seconds * (1.0 + harm * min(price.perturbation, MAX_PERTURBATION))


def score(gain: Gain | float, price: float) -> float:
    """Bits per second.

    Defined everywhere: a gain of zero or less (an estimate may be) scores zero whatever
    it costs, so no price makes a useless run better than none; a free run that tells
    something scores infinity and so goes first. `order` sorts infinities by their gain.
    """
    bits = gain if isinstance(gain, float | int) else gain.bits
    if not math.isfinite(bits):
        raise ValueRejected(f"gain = {bits}: a gain is a finite number of bits")
    if not price >= 0:
        raise ValueRejected(f"price = {price}: a price is zero or more")
    if bits <= 0 or math.isinf(price):
        return 0.0
    return bits / price if price > 0 else math.inf


@dataclass(frozen=True)
class Scored:
    """A plan (by its key) with what it tells, costs and disturbs."""

    key: str
    gain: Gain
    price_s: float
    perturbation: float = 0.0

    @property
    def score(self) -> float:
        return score(self.gain, self.price_s)


def interval(gain: Gain, price: float, sigmas: float = 2.0) -> tuple[float, float]:
    """Lowest and highest score within ``sigmas`` Monte Carlo errors of the gain."""
    slack = sigmas * gain.error_bits
    return score(gain.bits - slack, price), score(gain.bits + slack, price)


def tied(one: Scored, other: Scored, sigmas: float = 2.0) -> bool:
    """Whether the estimates leave open which of two plans scores higher."""
    low1, high1 = interval(one.gain, one.price_s, sigmas)
    low2, high2 = interval(other.gain, other.price_s, sigmas)
    return low1 <= high2 and low2 <= high1


def order(plans: Iterable[Scored]) -> list[Scored]:
    """Best first.

    By score; among those tied with the best one, by perturbation, then price, then gain,
    then key: what cannot be told apart is decided by how little it disturbs.
    """
    rest = sorted(plans, key=lambda p: (-p.score, -p.gain.bits, p.price_s, p.perturbation, p.key))
    found: list[Scored] = []
    while rest:
        best = rest[0]
        level = [p for p in rest if tied(p, best) and math.isinf(p.score) == math.isinf(best.score)]
        first = min(level, key=lambda p: (p.perturbation, p.price_s, -p.gain.bits, p.key))
        found.append(first)
        rest.remove(first)
    return found


def admissible(
    plan: Plan,
    *,
    budget_s: float = math.inf,
    max_perturbation: float = math.inf,
    harm: float = 1.0,
) -> str:
    """Why a plan breaks a cap, in words; empty if it breaks none."""
    if plan.price.perturbation > max_perturbation:
        return f"disturbs by {plan.price.perturbation:.0%}, over the cap of {max_perturbation:.0%}"
    price = price_of(plan.price, harm=harm)
    if price > budget_s:
        return f"costs {price:.3g} s, over the {max(budget_s, 0.0):.3g} s that are left"
    return ""


@dataclass(frozen=True)
class PriceBelief:
    """How actual seconds compare with expected ones, by probe.

    The log ratio actual / expected of a run is Normal(m, SPREAD_SD^2); m is Normal(0,
    RATIO_SD^2) before the first run of the probe (conjugate, for example Gelman et al.,
    Bayesian Data Analysis, section 2.5).

    logs : (number of runs, sum of log ratios) of each probe.
    disturbed : (number, sum) of measured perturbations of each probe.
    """

    logs: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    disturbed: Mapping[str, tuple[int, float]] = field(default_factory=dict)

    def observe(
        self, probe: str, expected_s: float, actual_s: float, overhead: float | None = None
    ) -> PriceBelief:
        """The belief after a run of ``probe``. A run without a price teaches nothing."""
        found = self
        if expected_s > 0 and actual_s > 0:
            ratio = math.log(actual_s / expected_s)
            found = replace(found, logs=_added(found.logs, probe, ratio))
        if overhead is not None and math.isfinite(overhead):
            found = replace(found, disturbed=_added(found.disturbed, probe, max(overhead, 0.0)))
        return found

    def ratio(self, probe: str) -> tuple[float, float]:
        """Mean and sd of the log ratio of the next run of ``probe``."""
        n, total = self.logs.get(probe, (0, 0.0))
        precision = 1 / RATIO_SD**2 + n / SPREAD_SD**2
        mean = total / SPREAD_SD**2 / precision
        return mean, math.sqrt(1 / precision + SPREAD_SD**2)

    def expect(self, probe: str, price: Price) -> Price:
        """The price as it is now believed: seconds by their median, perturbation by its mean.

        The planned perturbation counts as one measured one.
        """
        factor = math.exp(self.ratio(probe)[0])
        n, total = self.disturbed.get(probe, (0, 0.0))
        perturbation = (price.perturbation + total) / (1 + n)
        known = n > 0 or probe in self.logs
        source = f"{price.source}; measured here" if known else price.source
        return Price(price.setup_s * factor, price.run_s * factor, perturbation, source)


def _added(
    sums: Mapping[str, tuple[int, float]], key: str, value: float
) -> dict[str, tuple[int, float]]:
    n, total = sums.get(key, (0, 0.0))
    return {**sums, key: (n + 1, total + value)}


def cheapest_first(scored: Sequence[Scored]) -> list[Scored]:
    """By price alone: a baseline policy to compare with."""
    return sorted(scored, key=lambda p: (p.price_s, p.perturbation, p.key))
