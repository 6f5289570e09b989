"""When a study stops, and what it may then say.

The verdict never grades itself: an accepted cause needs, beside its probability, a
controlled comparison of the arms in the metric of the question. The rules are applied
in the order in which they stand in `judge`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from argus_bed.contrast import shows_metric
from argus_bed.frame import Frame
from argus_bed.hypothesis import NO_EFFECT, NONE_OF_THESE, Hypothesis
from argus_bed.probe import Measurement
from argus_bed.records import Run, RunState, Status, Verdict
from argus_bed.study.policy import Policy

INADEQUATE_AT = 0.8
"""Probability of `none_of_these` at which the listed explanations are given up."""


@dataclass(frozen=True)
class Standing:
    """Everything that a verdict may look at."""

    frame: Frame
    hypotheses: Mapping[str, Hypothesis]
    probabilities: Mapping[str, float]
    runs: Sequence[Run]
    readings: Sequence[Measurement]
    policy: Policy
    spent_s: float
    exhausted: str = ""  # why nothing more can be asked, if so


def judge(standing: Standing) -> Verdict:
    """The verdict as things stand; `Status.OPEN` while a question is worth asking."""
    ranking = tuple(sorted(standing.probabilities.items(), key=lambda item: (-item[1], item[0])))
    leader, probability = ranking[0]
    compared = _compared(standing)
    settled = probability >= standing.policy.decide_at
    if leader == NONE_OF_THESE and probability >= INADEQUATE_AT and compared:
        status, why = Status.MODEL_INADEQUATE, "no listed explanation fits what was read"
    elif settled and compared and leader == NO_EFFECT:
        status, why = Status.NO_EFFECT, "paired arms agree, and nothing else differs"
    elif settled and compared:
        status, why = Status.DECIDED, "one explanation fits what was read and its rivals do not"
    elif standing.spent_s >= standing.policy.budget_s:
        status, why = Status.OUT_OF_BUDGET, f"the budget of {standing.policy.budget_s:g} s is spent"
    elif len(standing.runs) >= standing.policy.max_runs:
        status, why = Status.OUT_OF_BUDGET, f"{standing.policy.max_runs} runs were made"
    elif standing.exhausted:
        status, why = Status.UNDETERMINED, standing.exhausted
        if settled and not compared:
            why += "; nothing was compared in the metric of the question"
    else:
        status, why = Status.OPEN, "a probe is still worth its price"
    return _verdict(standing, status, why, ranking)


def lacks_comparison(standing: Standing) -> bool:
    """Whether the belief is settled but rests on no controlled comparison in the metric."""
    settled = max(standing.probabilities.values()) >= standing.policy.decide_at
    return settled and not _compared(standing)


def _compared(standing: Standing) -> bool:
    return any(shows_metric(standing.frame, m) for m in standing.readings)


def _verdict(
    standing: Standing, status: Status, why: str, ranking: tuple[tuple[str, float], ...]
) -> Verdict:
    leader, probability = ranking[0]
    hypothesis = standing.hypotheses[leader]
    decided = status is Status.DECIDED
    done = [r for r in standing.runs if r.state is RunState.DONE and r.gained_bits > 0]
    telling = sorted(done, key=lambda r: (-r.gained_bits, r.number))
    return Verdict(
        status=status,
        causes=hypothesis.causes if decided else (),
        probability=probability,
        ranking=ranking,
        why=why,
        establishes=_establishes(standing, status, hypothesis),
        leaves_open=_leaves_open(standing, status, ranking),
        evidence=tuple(r.number for r in telling[:5]),
        next_action=_next_action(standing, status, hypothesis, ranking),
        part=hypothesis.part if decided else "",
        price_s=standing.spent_s,
        runs=len(standing.runs),
    )


def _establishes(standing: Standing, status: Status, hypothesis: Hypothesis) -> tuple[str, ...]:
    if status is Status.DECIDED:
        return (
            hypothesis.claim,
            f"it blames a {hypothesis.part}"
            if hypothesis.part != "measurement"
            else "it blames the measurement and not the program",
        )
    if status is Status.NO_EFFECT:
        return ("the arms take the same time within the resolution of the paired comparison",)
    return ()


def _intervened(standing: Standing) -> bool:
    derived = {c.name for c in standing.frame.conditions if not c.is_arm}
    return any(m.cell.condition in derived for m in standing.readings)


def _leaves_open(
    standing: Standing, status: Status, ranking: tuple[tuple[str, float], ...]
) -> tuple[str, ...]:
    rivals = [f"{name} ({p:.1%})" for name, p in ranking[1:4] if p >= 0.005]
    found = [f"not excluded: {', '.join(rivals)}"] if rivals else []
    if status is Status.DECIDED and not _intervened(standing):
        found.append("no knob was turned: the cause rests on what was observed in the two arms")
    if status is Status.NO_EFFECT:
        found.append("effects below the resolution, and other loads, inputs and machines")
    if status is Status.DECIDED:
        found.append("other loads, inputs and machines")
    failed = [str(r.number) for r in standing.runs if r.state is RunState.FAILED]
    if failed:
        found.append(f"run {', '.join(failed)} failed and told nothing")
    return tuple(found)


def _next_action(
    standing: Standing,
    status: Status,
    hypothesis: Hypothesis,
    ranking: tuple[tuple[str, float], ...],
) -> str:
    match status:
        case Status.DECIDED:
            return f"{hypothesis.intervention}; then compare the arms again, paired"
        case Status.NO_EFFECT:
            return "keep the simpler arm, or raise the number of blocks if a smaller effect matters"
        case Status.MODEL_INADEQUATE:
            return "write down a new explanation (one file), then let the study go on"
        case Status.OUT_OF_BUDGET:
            return "raise the budget, or accept that the question stays open"
        case Status.UNDETERMINED:
            names = [name for name, _ in ranking[:2]]
            tests = [standing.hypotheses[n].intervention for n in names]
            told = "; ".join(t for t in tests if t)
            return f"offer a probe that parts {' from '.join(names)}: {told}"
        case _:
            return "run the next probe"
