"""Every way to measure, with what it is expected to tell and what it costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from argus_bed.contrast import shows_metric
from argus_bed.design.gain import CHEAP, DEFAULT, Gain, gains, predictive, race, separations
from argus_bed.design.policies import Chooser, Option, gain_per_price
from argus_bed.design.price import (
    PriceBelief,
    Scored,
    as_announced,
    expected_price,
    over_a_cap,
    tied,
)
from argus_bed.design.price import score as bits_per_second
from argus_bed.frame import Frame
from argus_bed.inference.belief import Belief
from argus_bed.probe import Measurement, Plan, Sample
from argus_bed.records import PriceBasis, Run, RunState
from argus_bed.report.view import Pair
from argus_bed.study.knowledge import Knowledge
from argus_bed.study.policy import Policy
from argus_bed.study.readings import disturbed, doubted
from argus_bed.study.system import System

Target = Literal["cause", "parameters", "joint"]


@dataclass(frozen=True)
class ScoredPlan:
    """A plan with its expected information and price.

    measurements : what remains after the instrument's side effects.
    gain : information of a reading. price_s : expected seconds that a reading costs.
    basis : what the price is made from.
    score : bits per second; infinite for a free plan that tells something.
    blocked : why the policy keeps it from running, or empty.
    opens : another plan that becomes informative once this one has run (two-step look).
    """

    plan: Plan
    measurements: tuple[Measurement, ...]
    gain: Gain
    price_s: float
    basis: PriceBasis
    blocked: str = ""
    opens: str = ""

    @property
    def perturbation(self) -> float:
        """Share by which a step is expected to get longer meanwhile."""
        return self.basis.perturbation

    def tied(self, other: ScoredPlan) -> bool:
        """Whether the Monte Carlo errors leave open which of the two scores higher."""
        return tied(self._scored(), other._scored())

    def _scored(self) -> Scored:
        name = f"{self.plan.key}>{self.opens}"
        return Scored(name, self.gain, self.price_s, self.perturbation)

    def option(self, belief: Belief) -> Option:
        """What a policy may see of it."""
        seen = self._scored()
        return Option(
            seen.key,
            seen.gain,
            seen.price_s,
            seen.perturbation,
            self.plan.kind or self.plan.probe,
            None if self.opens else partial(predictive, belief, self.measurements),
        )

    @property
    def score(self) -> float:
        return bits_per_second(self.gain, self.price_s)


@dataclass(frozen=True)
class Means:
    """What a study may spend, and at which prices.

    left_s : budget that is left, seconds of the target's time.
    approved : keys of plans that a person lets run.
    prices : learned from earlier runs; None where prices are exact.
    """

    policy: Policy
    left_s: float = math.inf
    approved: frozenset[str] = frozenset()
    prices: PriceBelief | None = None

    def basis(self, plan: Plan) -> PriceBasis:
        """What the plan's price is made from."""
        if self.prices is None:
            return as_announced(plan.price)
        return self.prices.expect(plan.probe, plan.price)

    def price(self, plan: Plan) -> float:
        """Expected seconds of the target's time for a reading."""
        return expected_price(self.basis(plan), harm=self.policy.harm)

    def blocked(self, plan: Plan) -> str:
        """Why a plan may not run now, in words; empty if it may."""
        cap = over_a_cap(
            self.price(plan),
            self.basis(plan).perturbation,
            budget_s=self.left_s,
            max_perturbation=self.policy.max_perturbation,
        )
        if not cap and plan.risk in self.policy.approve and plan.key not in self.approved:
            return f"changes {plan.risk}: waits for approval"
        return cap


def score_plans(
    system: System,
    knows: Knowledge,
    done: Iterable[str],
    means: Means,
    *,
    target: Target = "cause",
    choose: Chooser = gain_per_price,
) -> list[ScoredPlan]:
    """All plans in the order of ``choose``, best first."""
    finished = tuple(done)
    belief = knows.belief
    plans = system.plans(knows.known, finished)
    cleaned = [_useful(system, knows, plan) for plan in plans]
    prices = [means.price(plan) for plan in plans]
    expected = race(belief, cleaned, prices, target=target, rounds=(CHEAP, DEFAULT))
    found = [
        ScoredPlan(plan, measurements, gain, price, means.basis(plan), means.blocked(plan))
        for plan, measurements, gain, price in zip(plans, cleaned, expected, prices, strict=True)
    ]
    if not any(s.gain.bits >= means.policy.min_gain_bits and not s.blocked for s in found):
        found += _two_steps(system, knows, finished, means, found, target)
    return _ordered(found, belief, choose)


def _useful(system: System, knows: Knowledge, plan: Plan) -> tuple[Measurement, ...]:
    """What a plan is expected to read, with the noise and doubt that are known by now."""
    kept = disturbed(plan.measurements, system.side_effects(plan), knows.known)
    return knows.scatter.expects(kept)


def worth_running(scored: Iterable[ScoredPlan], policy: Policy) -> list[ScoredPlan]:
    """Plans that tell enough and may run."""
    return [s for s in scored if s.gain.bits >= policy.min_gain_bits and not s.blocked]


def why_nothing(scored: Iterable[ScoredPlan], policy: Policy) -> str:
    """Why no plan is worth running, in words: what the best one waits for, if one does."""
    for s in scored:
        if s.gain.bits >= policy.min_gain_bits:
            return f"{s.plan.key} would tell more, but {s.blocked}"
    return f"no probe is expected to tell {policy.min_gain_bits:g} bits or more"


def one_a_plan(scored: Iterable[ScoredPlan]) -> list[ScoredPlan]:
    """The first entry of every plan: one may stand there with several that it opens."""
    first: dict[str, ScoredPlan] = {}
    for s in scored:
        first.setdefault(s.plan.key, s)
    return list(first.values())


def confirming(frame: Frame, scored: Sequence[ScoredPlan]) -> list[ScoredPlan]:
    """Plans that compare conditions in the metric of the question, cheapest first.

    A verdict needs one of them even where its outcome is all but certain.
    """
    fit = [
        s for s in scored if not s.blocked and any(shows_metric(frame, m) for m in s.measurements)
    ]
    return sorted(fit, key=lambda s: (s.price_s, s.perturbation, s.plan.key))


def after_a_failure(worth: Sequence[ScoredPlan], last: Run | None) -> list[ScoredPlan]:
    """Plans worth their price, with what the last run showed to fail at the end.

    First other probes, then other plans of the probe that failed, then its plan: whatever
    made it fail may pass while another one runs. Only the very last run counts, so the
    plan is soon tried again, at the price that its failure taught.
    """
    if last is None or last.state is RunState.DONE or last.proposal is None:
        return list(worth)
    failed = last.proposal
    return sorted(worth, key=lambda s: (s.plan.probe == failed.probe, s.plan.key == failed.plan))


def _ordered(found: Sequence[ScoredPlan], belief: Belief, choose: Chooser) -> list[ScoredPlan]:
    """Best first, as the policy sees it."""
    named = {s.option(belief): s for s in found}
    return [named[option] for option in choose(list(named))]


def _two_steps(
    system: System,
    knows: Knowledge,
    done: tuple[str, ...],
    means: Means,
    singles: Sequence[ScoredPlan],
    target: Target,
) -> list[ScoredPlan]:
    """Before stopping: does one plan make another one tell something?

    A reading that means nothing by itself can be what a later one is compared with.
    """
    pairs: list[tuple[ScoredPlan, Plan, tuple[Measurement, ...]]] = []
    before = {s.plan.key: s.plan.measurements for s in singles}
    unlimited = replace(means, left_s=math.inf, approved=frozenset())
    for first in singles:
        if first.blocked:
            continue
        read = [Sample(c, (1.0,)) for c in first.plan.reads]
        read = doubted(read, system.side_effects(first.plan), knows.known)
        reached = {**knows.known, **{s.cell: s for s in read}}
        for second in system.plans(reached, (*done, first.plan.probe)):
            fresh = second.measurements != before.get(second.key, ())
            if second.key == first.plan.key or not fresh or unlimited.blocked(second):
                continue
            both = (*first.measurements, *_useful(system, knows, second))
            pairs.append((first, second, both))
    if not pairs:
        return []
    expected = gains(knows.belief, [both for _, _, both in pairs], target=target)
    return [
        replace(
            first,
            gain=gain,
            price_s=first.price_s + means.price(second),
            opens=second.key,
        )
        for (first, second, _), gain in zip(pairs, expected, strict=True)
    ]


def best_separations(
    belief: Belief, plans: Sequence[ScoredPlan], names: Sequence[str]
) -> tuple[Pair, ...]:
    """For each pair of hypotheses the plan that parts it best, both equally likely.

    With the plan comes what both expect of the reading on which they differ most.
    """
    best: dict[tuple[str, str], tuple[float, float, ScoredPlan]] = {}
    for scored in plans:
        for pair, bits in separations(belief, scored.measurements, names).items():
            if pair not in best or (bits, -scored.price_s) > best[pair][:2]:
                best[pair] = (bits, -scored.price_s, scored)
    found = []
    for (one, other), (bits, _, scored) in best.items():
        expected = belief.predict(scored.measurements)
        (mean, sd), (mean2, sd2) = expected[one], expected[other]
        i = int(np.argmax(abs(mean - mean2) / np.sqrt(sd**2 + sd2**2)))
        found.append(
            Pair(
                one,
                other,
                scored.plan.key,
                bits,
                scored.price_s,
                str(scored.measurements[i]),
                ((float(mean[i]), float(sd[i])), (float(mean2[i]), float(sd2[i]))),
            )
        )
    return tuple(found)
