"""What a run costs in one currency, and information per price.

Seconds of the target's time: those that the run takes, and those that the target loses
to the disturbance meanwhile, weighed by ``harm``. Caps are constraints (`over_a_cap`);
no gain buys its way over them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from argus_bed.errors import ValueRejected
from argus_bed.probe import Price
from argus_bed.records import PriceBasis, Run, RunState

if TYPE_CHECKING:  # gains need torch, and whoever reads a ledger need not load that
    from argus_bed.design.gain import Gain

MAX_PERTURBATION = 3.0
"""A target that takes four times as long is as disturbed as it can count."""

RATIO_SD = math.log(2.0)  # assumption: an announced price is right within a factor 2
SPREAD_SD = 0.3  # assumption: sd of the log ratio of two runs of one probe
RATIO_MEAN = -(RATIO_SD**2 + SPREAD_SD**2) / 2
"""Log ratio before the first run, such that an announced price is right on average."""

_ENDED = (RunState.DONE, RunState.FAILED, RunState.VOID)

FAILS = 0.05  # assumption: of probes that apply to a target one run in twenty fails
FAILS_WEIGHT = 2.0  # assumption: that counts as much as two runs that were seen


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


def order[S: Scored](plans: Iterable[S]) -> list[S]:
    """Best first.

    By score; among those tied with the best one, by perturbation, then price, then gain,
    then key: what cannot be told apart is decided by how little it disturbs.
    """
    rest = sorted(plans, key=lambda p: (-p.score, -p.gain.bits, p.price_s, p.perturbation, p.key))
    found: list[S] = []
    while rest:
        best = rest[0]
        level = [p for p in rest if tied(p, best) and math.isinf(p.score) == math.isinf(best.score)]
        first = min(level, key=lambda p: (p.perturbation, p.price_s, -p.gain.bits, p.key))
        found.append(first)
        rest.remove(first)
    return found


def over_a_cap(
    price_s: float,
    perturbation: float,
    *,
    budget_s: float = math.inf,
    max_perturbation: float = math.inf,
) -> str:
    """Which cap a price or a disturbance breaks, in words; empty if none."""
    if perturbation > max_perturbation:
        return f"disturbs by {perturbation:.0%}, over the cap of {max_perturbation:.0%}"
    if price_s > budget_s:
        return f"costs {price_s:.3g} s, over the {max(budget_s, 0.0):.3g} s that are left"
    return ""


@dataclass(frozen=True)
class PriceBelief:
    """What runs really took, disturbed, and how often they failed, by probe.

    Seconds. The log ratio of the actual to the announced seconds of a run is
    Normal(m, SPREAD_SD^2); before the first run of the probe, m is Normal(RATIO_MEAN,
    RATIO_SD^2) (conjugate, for example Gelman et al., Bayesian Data Analysis, section
    2.5). Runs that work and runs that fail have a ratio each: a time-out takes long, an
    instrument that is not there no time at all.

    Failure. The next run of a probe fails with probability q, the mean of a Beta
    posterior; before its first run, Beta(FAILS * FAILS_WEIGHT, (1 - FAILS) * FAILS_WEIGHT).

    Price. ``(E[seconds | works] + q / (1 - q) * E[seconds | fails]) * (1 + harm *
    perturbation)``: the expected seconds that a reading costs, with q / (1 - q) failures
    before it. Gain over this price is the ratio of expectations of the next run,
    ``(1 - q) * gain / ((1 - q) * E[seconds | works] + q * E[seconds | fails])``.

    The priors are assumptions; nobody measured them.

    worked, failed : (number of runs, sum of their log ratios) of each probe.
    ends : (runs that worked, runs that failed) of each probe, with a price or without.
    disturbed : (number, sum) of measured perturbations of each probe.
    """

    worked: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    failed: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    ends: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    disturbed: Mapping[str, tuple[int, float]] = field(default_factory=dict)

    def observe(
        self,
        probe: str,
        announced_s: float,
        actual_s: float,
        overhead: float | None = None,
        *,
        failed: bool = False,
    ) -> PriceBelief:
        """The belief after a run of ``probe``.

        Where nothing was announced, or nothing took time, there is no ratio to learn.
        """
        good, bad = self.ends.get(probe, (0, 0))
        found = replace(self, ends={**self.ends, probe: (good + (not failed), bad + failed)})
        if announced_s > 0 and actual_s > 0:
            ratio = math.log(actual_s / announced_s)
            if failed:
                found = replace(found, failed=_added(found.failed, probe, ratio))
            else:
                found = replace(found, worked=_added(found.worked, probe, ratio))
        if overhead is not None and math.isfinite(overhead):
            found = replace(found, disturbed=_added(found.disturbed, probe, max(overhead, 0.0)))
        return found

    def log_ratio(self, probe: str, *, failed: bool = False) -> tuple[float, float]:
        """Mean and sd of the log ratio of the next run of ``probe`` that works, or fails."""
        n, total = (self.failed if failed else self.worked).get(probe, (0, 0.0))
        precision = 1 / RATIO_SD**2 + n / SPREAD_SD**2
        mean = (RATIO_MEAN / RATIO_SD**2 + total / SPREAD_SD**2) / precision
        return mean, math.sqrt(1 / precision + SPREAD_SD**2)

    def ratio(self, probe: str, *, failed: bool = False) -> float:
        """Expected ratio of actual to announced seconds; 1 before the first run."""
        if probe not in (self.failed if failed else self.worked):
            return 1.0
        mean, sd = self.log_ratio(probe, failed=failed)
        return math.exp(mean + sd**2 / 2)

    def fails(self, probe: str) -> float:
        """Probability that the next run of ``probe`` fails."""
        good, bad = self.ends.get(probe, (0, 0))
        return (FAILS * FAILS_WEIGHT + bad) / (FAILS_WEIGHT + good + bad)

    def expect(self, probe: str, announced: Price) -> PriceBasis:
        """What the next run of ``probe`` is expected to cost: means, not medians.

        The announced perturbation counts as one measured one.
        """
        n, total = self.disturbed.get(probe, (0, 0.0))
        good, bad = self.ends.get(probe, (0, 0))
        return PriceBasis(
            announced_s=announced.seconds,
            expected_s=announced.seconds * self.ratio(probe),
            announced_perturbation=announced.perturbation,
            perturbation=(announced.perturbation + total) / (1 + n),
            fails=self.fails(probe),
            failing_s=announced.seconds * self.ratio(probe, failed=True),
            runs=good + bad,
            failures=bad,
            source=announced.source,
        )


def as_announced(price: Price) -> PriceBasis:
    """A price that is exact, as in a recorded case: nothing is learned and nothing fails."""
    return PriceBasis(
        announced_s=price.seconds,
        expected_s=price.seconds,
        announced_perturbation=price.perturbation,
        perturbation=price.perturbation,
        source=price.source,
    )


def expected_price(basis: PriceBasis, *, harm: float = 1.0) -> float:
    """Expected seconds of the target's time for a reading, failures before it included.

    The formula is in `PriceBelief`. Raises `ValueRejected` as `price_of` does.
    """
    if not 0 <= basis.fails < 1:
        raise ValueRejected(f"fails = {basis.fails}: a probability below one")
    works = Price(0.0, basis.expected_s, basis.perturbation)
    lost = Price(0.0, basis.failing_s, basis.perturbation)
    odds = basis.fails / (1 - basis.fails)
    return price_of(works, harm=harm) + odds * price_of(lost, harm=harm)


def learned_prices(runs: Iterable[Run]) -> PriceBelief:
    """What the ended runs of a ledger say about prices; the same for everybody who reads it.

    A run that was told, and one that never began, say nothing. Ledgers of before prices
    were learned do not say what was announced; their runs count as worked or failed.
    """
    belief = PriceBelief()
    for run in sorted(runs, key=lambda r: r.number):
        if run.proposal is None or run.source == "told" or run.state not in _ENDED:
            continue
        if run.price_s <= 0 and run.state is not RunState.DONE:
            continue  # its plan was gone before anything was tried
        basis = run.proposal.basis
        belief = belief.observe(
            run.proposal.probe,
            basis.announced_s if basis else 0.0,
            run.seconds,
            run.overhead,
            failed=run.state is not RunState.DONE,
        )
    return belief


def _added(
    sums: Mapping[str, tuple[int, float]], key: str, value: float
) -> dict[str, tuple[int, float]]:
    n, total = sums.get(key, (0, 0.0))
    return {**sums, key: (n + 1, total + value)}
