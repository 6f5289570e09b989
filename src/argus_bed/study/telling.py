"""Words and plain data for what a study does: reasons, records, effects."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from argus_bed.errors import UnknownName, ValueRejected
from argus_bed.frame import Cell, Condition, Frame
from argus_bed.probe import Measurement, Sample
from argus_bed.quantity import parse, quantity
from argus_bed.records import Prediction, Proposal, ReadingRecord, Run, RunState
from argus_bed.report.describe import value as value_in_words
from argus_bed.study.readings import Read
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


def samples_told(
    frame: Frame,
    values: Mapping[str, Sequence[str | float]],
    condition: str,
    stage: str | None,
) -> list[Sample]:
    """What a person read, by quantity, as samples.

    Raises
    ------
    UnknownName : a quantity, condition or stage that is not known here.
    UnitError, ValueRejected : a value that cannot be meant.
    """
    frame.condition(condition)
    if stage is not None and stage not in frame.stage_index:
        raise UnknownName("stage", stage, frame.stage_index)
    if not values:
        raise ValueRejected("nothing was told; write for example step_time=12.3ms")
    samples = []
    for name, given in values.items():
        quantity(name)
        read = tuple(parse(str(v), name) for v in given)
        if not read:
            raise ValueRejected(f"{name}: no value was given; write for example {name}=12.3")
        samples.append(Sample(Cell(name, condition, stage), read))
    return samples


def told_run(
    samples: Sequence[Sample], *, number: int, seconds: float, perturbation: float, harm: float
) -> Run:
    """A measurement made by hand, before anything is concluded from it.

    Raises
    ------
    ValueRejected : a duration or share that is not finite, or negative.
    """
    for label, given in (("seconds", seconds), ("perturbation", perturbation)):
        if not (math.isfinite(given) and given >= 0):
            raise ValueRejected(f"{label} = {given}: a finite number, zero or more")
    return Run(
        number=number,
        state=RunState.DONE,
        proposal=None,
        samples=samples_of(samples),
        price_s=seconds * (1.0 + harm * perturbation),
        seconds=seconds,
        overhead=perturbation or None,
        source="told",
    )


def record_of(read: Read) -> ReadingRecord:
    """A reading as the ledger and the report keep it."""
    planned = read.measurement if read.reading is None else read.reading.measurement
    value = 0.0 if read.reading is None else read.reading.value
    contrast = planned.against is not None
    words = value_in_words(value, planned.cell.quantity, contrast=contrast)
    return ReadingRecord(
        text=str(planned),
        quantity=planned.cell.quantity,
        condition=planned.cell.condition,
        against=planned.against.condition if planned.against else None,
        stage=planned.cell.stage,
        value=value,
        noise=planned.noise,
        shown="" if read.reading is None else words,
        used=read.reading is not None,
        why_not=read.why_not,
        benign=planned.benign,
        coincidence=planned.coincidence,
        dof=planned.dof,
        family=planned.family,
    )


def in_words(condition: Condition) -> str:
    """What a condition is, for a person."""
    if condition.is_arm:
        return "an arm as it is"
    text = f"{condition.of} with {condition.knob}={condition.value}"
    for verb, names in (("removes", condition.removes), ("adds", condition.adds)):
        if names:
            text += f", which {verb} {', '.join(sorted(names))}"
    return text + (f", on another set-up ({condition.system})" if condition.system else "")


def samples_of(samples: Iterable[Sample]) -> tuple[Mapping[str, Any], ...]:
    """Samples as plain data."""
    return tuple(
        {
            "quantity": s.cell.quantity,
            "condition": s.cell.condition,
            "stage": s.cell.stage,
            "values": list(s.values),
            "paired": s.paired,
            **({"doubt": s.doubt} if s.doubt else {}),
        }
        for s in samples
    )


def to_samples(plain: Iterable[Mapping[str, Any]]) -> list[Sample]:
    """The inverse of `samples_of`."""
    return [
        Sample(
            Cell(p["quantity"], p["condition"], p["stage"]),
            tuple(p["values"]),
            bool(p["paired"]),
            float(p.get("doubt", 0.0)),
        )
        for p in plain
    ]
