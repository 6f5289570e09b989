"""Every way to measure, with what it is expected to tell and what it costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from argus_bed.anatomy import Cell
from argus_bed.design.gain import Gain, gains, separation
from argus_bed.design.price import price_of
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

    @property
    def score(self) -> float:
        if self.gain.bits <= 0:
            return 0.0
        return self.gain.bits / self.price_s if self.price_s > 0 else math.inf


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
    """All plans, best score first; ties in the order of the plan's key."""
    finished = tuple(done)
    plans = system.plans(known, finished)
    cleaned = [disturbed(p.measurements, system.side_effects(p), known) for p in plans]
    found = [
        ScoredPlan(
            plan,
            measurements,
            gain,
            price_of(plan.price, harm=policy.harm),
            blocked(plan, policy, left_s, approved),
        )
        for plan, measurements, gain in zip(
            plans, cleaned, gains(belief, cleaned, target=target), strict=True
        )
    ]
    if not any(s.gain.bits >= policy.min_gain_bits and not s.blocked for s in found):
        found += _two_steps(system, belief, known, finished, policy, found, target)
    return sorted(found, key=lambda s: (-s.score, s.price_s, s.plan.price.perturbation, s.plan.key))


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


def best_separation(
    belief: Belief, plans: Sequence[ScoredPlan], first: str, second: str
) -> Pair | None:
    """The plan that parts two hypotheses best, both taken as equally likely."""
    rated = [(separation(belief, s.measurements, first, second), s) for s in plans]
    if not rated:
        return None
    bits, best = max(rated, key=lambda pair: (pair[0], -pair[1].price_s))
    return Pair(first, second, best.plan.key, bits, best.price_s)
