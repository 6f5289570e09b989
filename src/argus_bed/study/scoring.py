"""Every way to measure, with what it is expected to tell and what it costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from argus_bed.contrast import shows_metric
from argus_bed.design.gain import CHEAP, DEFAULT, Gain, gains, race, separations
from argus_bed.design.price import Scored, order, price_of, tied
from argus_bed.design.price import score as bits_per_second
from argus_bed.frame import Cell, Frame
from argus_bed.inference.belief import Belief
from argus_bed.probe import Measurement, Plan, Sample
from argus_bed.report.view import Pair
from argus_bed.study.policy import Policy
from argus_bed.study.readings import disturbed
from argus_bed.study.system import System

Target = Literal["cause", "parameters", "joint"]


@dataclass(frozen=True)
class ScoredPlan:
    """A plan with its expected information and price.

    measurements : what remains after the instrument's side effects.
    score : bits per second; infinite for a free plan that tells something.
    blocked : why the policy keeps it from running, or empty.
    opens : another plan that becomes informative once this one has run (two-step look).
    """

    plan: Plan
    measurements: tuple[Measurement, ...]
    gain: Gain
    price_s: float
    blocked: str = ""
    opens: str = ""

    def tied(self, other: ScoredPlan) -> bool:
        """Whether the Monte Carlo errors leave open which of the two scores higher."""
        return tied(self._scored(), other._scored())

    def _scored(self) -> Scored:
        name = f"{self.plan.key}>{self.opens}"
        return Scored(name, self.gain, self.price_s, self.plan.price.perturbation)

    @property
    def score(self) -> float:
        return bits_per_second(self.gain, self.price_s)


def score_plans(
    system: System,
    belief: Belief,
    known: Mapping[Cell, Sample],
    done: Iterable[str],
    policy: Policy,
    *,
    left_s: float,
    approved: frozenset[str] = frozenset(),
    target: Target = "cause",
) -> list[ScoredPlan]:
    """All plans, best first."""
    finished = tuple(done)
    plans = system.plans(known, finished)
    cleaned = [disturbed(p.measurements, system.side_effects(p), known) for p in plans]
    prices = [price_of(plan.price, harm=policy.harm) for plan in plans]
    expected = race(belief, cleaned, prices, target=target, rounds=(CHEAP, DEFAULT))
    found = [
        ScoredPlan(plan, measurements, gain, price, blocked(plan, policy, left_s, approved))
        for plan, measurements, gain, price in zip(plans, cleaned, expected, prices, strict=True)
    ]
    if not any(s.gain.bits >= policy.min_gain_bits and not s.blocked for s in found):
        found += _two_steps(system, belief, known, finished, policy, found, target)
    return _ordered(found)


def confirming(frame: Frame, scored: Sequence[ScoredPlan]) -> list[ScoredPlan]:
    """Plans that compare conditions in the metric of the question, cheapest first.

    A verdict needs one of them even where its outcome is all but certain.
    """
    fit = [
        s for s in scored if not s.blocked and any(shows_metric(frame, m) for m in s.measurements)
    ]
    return sorted(fit, key=lambda s: (s.price_s, s.plan.price.perturbation, s.plan.key))


def _ordered(found: Sequence[ScoredPlan]) -> list[ScoredPlan]:
    """Best first; what the estimates cannot part goes by how little it disturbs."""
    named = {s._scored(): s for s in found}
    return [named[scored] for scored in order(named)]


def blocked(plan: Plan, policy: Policy, left_s: float, approved: frozenset[str]) -> str:
    """Why a plan may not run now, in words; empty if it may."""
    if plan.price.perturbation > policy.max_perturbation:
        share, cap = plan.price.perturbation, policy.max_perturbation
        return f"disturbs by {share:.0%}, over the cap of {cap:.0%}"
    price = price_of(plan.price, harm=policy.harm)
    if price > left_s:
        return f"costs {price:.0f} s, over the {max(left_s, 0):.0f} s that are left"
    if plan.risk in policy.approve and plan.key not in approved:
        return f"changes {plan.risk}: waits for approval"
    return ""


def _two_steps(
    system: System,
    belief: Belief,
    known: Mapping[Cell, Sample],
    done: tuple[str, ...],
    policy: Policy,
    singles: Sequence[ScoredPlan],
    target: Target,
) -> list[ScoredPlan]:
    """Before stopping: does one plan make another one tell something?

    A reading that means nothing by itself can be what a later one is compared with.
    """
    pairs: list[tuple[ScoredPlan, Plan, tuple[Measurement, ...]]] = []
    before = {s.plan.key: s.plan.measurements for s in singles}
    for first in singles:
        if first.blocked:
            continue
        reached = {**known, **{c: Sample(c, (1.0,)) for c in first.plan.reads}}
        for second in system.plans(reached, (*done, first.plan.probe)):
            fresh = second.measurements != before.get(second.key, ())
            if (
                second.key == first.plan.key
                or not fresh
                or blocked(second, policy, math.inf, frozenset())
            ):
                continue
            both = (
                *first.measurements,
                *disturbed(second.measurements, system.side_effects(second), known),
            )
            pairs.append((first, second, both))
    if not pairs:
        return []
    expected = gains(belief, [both for _, _, both in pairs], target=target)
    return [
        replace(
            first,
            gain=gain,
            price_s=first.price_s + price_of(second.price, harm=policy.harm),
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
