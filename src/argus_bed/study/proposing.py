"""A chosen plan with everything that a person needs to judge the choice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from argus_bed.probe import Measurement
from argus_bed.records import Prediction, Proposal
from argus_bed.study.scoring import ScoredPlan

if TYPE_CHECKING:
    from argus_bed.inference.belief import Belief


def reason_for(best: ScoredPlan, others: Sequence[ScoredPlan]) -> str:
    """Why this plan: what it is expected to tell for its price, and what comes next."""
    price = f"{best.price_s:.3g} s" if best.price_s > 0 else "nothing"
    text = f"{best.gain.bits:.2f} bits expected for {price}"
    if best.opens:
        text = f"two steps, with {best.opens} after it: {text}"
    if others:
        second = others[0]
        text += (
            f"; next best {second.plan.key}: {second.gain.bits:.2f} bits for {second.price_s:.3g} s"
        )
    return text


def proposal_of(
    best: ScoredPlan,
    scored: Sequence[ScoredPlan],
    *,
    question: str,
    target: str,
    predictions: tuple[Prediction, ...],
) -> Proposal:
    """The chosen plan with the reason for it; its number comes from the ledger.

    scored : every plan, best first.
    """
    others = [s for s in scored if s.plan.key != best.plan.key and s.gain.bits > 0]
    plan = best.plan
    return Proposal(
        run=0,
        plan=plan.key,
        probe=plan.probe,
        settings=dict(plan.settings),
        conditions=plan.conditions,
        question=question,
        gain_bits=best.gain.bits,
        gain_error=best.gain.error_bits,
        price_s=best.price_s,
        perturbation=best.perturbation,
        score=_finite(best.score),
        reason=reason_for(best, others),
        target=target,
        predictions=predictions,
        runners_up=tuple(
            (s.plan.key, s.gain.bits, s.price_s, _finite(s.score)) for s in others[:3]
        ),
        tied_with=tuple(s.plan.key for s in others if best.tied(s)),
        risk=plan.risk,
        needs_approval=False,
        basis=best.basis,
    )


def _finite(score: float) -> float:
    """A score for the ledger, which keeps no infinity: that of a free plan is left out."""
    return score if math.isfinite(score) else 0.0


def predictions(belief: Belief, measurements: Sequence[Measurement]) -> tuple[Prediction, ...]:
    """What each hypothesis expects of each reading."""
    if not measurements:
        return ()
    expected = belief.predict(measurements)
    return tuple(
        Prediction(
            str(m), {h: (float(mean[i]), float(sd[i])) for h, (mean, sd) in expected.items()}
        )
        for i, m in enumerate(measurements)
    )
