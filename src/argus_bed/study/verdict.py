"""When a study stops, and what it may then say.

The verdict never grades itself: an accepted cause needs, beside its probability, a
controlled comparison of the arms in the metric of the question. The rules are applied
in the order in which they stand in `judge`.

What is accepted are causes, each by the probability that it plays a part, alone or
together with another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from argus_bed.contrast import shows_metric
from argus_bed.frame import Frame
from argus_bed.hypothesis import NO_EFFECT, NONE_OF_THESE, SECOND_CAUSE, Hypothesis
from argus_bed.inference.belief import Belief
from argus_bed.probe import Measurement
from argus_bed.records import Run, RunState, Status, Verdict
from argus_bed.study.policy import Policy

INADEQUATE_AT = 0.8
"""Probability of `none_of_these` at which the listed explanations are given up."""

IN_DOUBT_ABOVE = SECOND_CAUSE
"""A cause this probable or less is ruled out as far as a second cause ever is: by nothing
but how rare it is to find two."""

PAIRED_WHEN_NOTHING_FITS = 5
"""So many of the most probable causes are tried in pairs where no single one fits."""


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


def playing_a_part(
    probabilities: Mapping[str, float], hypotheses: Mapping[str, Hypothesis]
) -> dict[str, float]:
    """Probability of each cause that it is at work, alone or with another; likeliest first."""
    found: dict[str, float] = {}
    for name, probability in probabilities.items():
        for cause in hypotheses[name].causes:
            if cause not in (NO_EFFECT, NONE_OF_THESE):
                found[cause] = found.get(cause, 0.0) + probability
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def unconsidered(belief: Belief, decide_at: float) -> tuple[str, ...]:
    """Composites asleep that must be looked at before the belief may count as settled.

    Those with a cause that would be accepted; and, where nothing listed fits, those of
    the most probable causes.
    """
    known = {h.name: h for h in belief.hypotheses}
    shares = belief.probabilities()
    part = playing_a_part(shares, known)
    accepted = {cause for cause, p in part.items() if p >= decide_at}
    nothing_fits = shares.get(NONE_OF_THESE, 0.0) >= 0.5
    near = set(list(part)[:PAIRED_WHEN_NOTHING_FITS]) if nothing_fits else set()
    return tuple(
        h.name for h in belief.asleep if accepted & {*h.causes} or near.issuperset(h.causes)
    )


def judge(standing: Standing) -> Verdict:
    """The verdict as things stand; `Status.OPEN` while a question is worth asking."""
    leader, probability = _ranking(standing)[0]
    compared = _compared(standing)
    settled = _settled(standing)
    causes = _accepted(standing)
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
    elif standing.exhausted and causes and compared:
        status, why = Status.DECIDED, f"it plays a part, whatever else does; {standing.exhausted}"
    elif standing.exhausted:
        status, why = Status.UNDETERMINED, standing.exhausted
        if settled and not compared:
            why += "; nothing was compared in the metric of the question"
    else:
        status, why = Status.OPEN, "a probe is still worth its price"
    return _verdict(standing, status, why, causes if status is Status.DECIDED else ())


def lacks_comparison(standing: Standing) -> bool:
    """Whether the belief is settled but rests on no controlled comparison in the metric."""
    return _settled(standing) and not _compared(standing)


def _ranking(standing: Standing) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(standing.probabilities.items(), key=lambda item: (-item[1], item[0])))


def _accepted(standing: Standing) -> tuple[str, ...]:
    """Causes that are probable enough to be named."""
    part = playing_a_part(standing.probabilities, standing.hypotheses)
    return tuple(c for c, p in part.items() if p >= standing.policy.decide_at)


def _settled(standing: Standing) -> bool:
    """Whether it is known of every cause if it plays a part, or that none does."""
    if standing.probabilities.get(NO_EFFECT, 0.0) >= standing.policy.decide_at:
        return True
    part = playing_a_part(standing.probabilities, standing.hypotheses)
    open_ = [p for p in part.values() if IN_DOUBT_ABOVE < p < standing.policy.decide_at]
    return not open_ and bool(_accepted(standing))


def _compared(standing: Standing) -> bool:
    return any(shows_metric(standing.frame, m) for m in standing.readings)


def _verdict(standing: Standing, status: Status, why: str, causes: tuple[str, ...]) -> Verdict:
    ranking = _ranking(standing)
    part = playing_a_part(standing.probabilities, standing.hypotheses)
    blamed = [standing.hypotheses[c] for c in causes or (ranking[0][0],)]
    done = [r for r in standing.runs if r.state is RunState.DONE and r.gained_bits > 0]
    telling = sorted(done, key=lambda r: (-r.gained_bits, r.number))
    return Verdict(
        status=status,
        causes=causes,
        probability=min((part[c] for c in causes), default=ranking[0][1]),
        ranking=ranking,
        why=why,
        establishes=_establishes(status, blamed),
        leaves_open=_leaves_open(standing, status, causes),
        evidence=tuple(r.number for r in telling[:5]),
        next_action=_next_action(standing, status, blamed),
        part=blamed[0].part if causes else "",
        price_s=standing.spent_s,
        runs=len(standing.runs),
    )


def _establishes(status: Status, blamed: Iterable[Hypothesis]) -> tuple[str, ...]:
    if status is Status.NO_EFFECT:
        return ("the arms take the same time within the resolution of the paired comparison",)
    if status is not Status.DECIDED:
        return ()
    return tuple(
        line
        for hypothesis in blamed
        for line in (
            hypothesis.claim,
            f"it blames a {hypothesis.part}"
            if hypothesis.part != "measurement"
            else "it blames the measurement and not the program",
        )
    )


def _intervened(standing: Standing) -> bool:
    derived = {c.name for c in standing.frame.conditions if not c.is_arm}
    return any(m.cell.condition in derived for m in standing.readings)


def _leaves_open(standing: Standing, status: Status, causes: tuple[str, ...]) -> tuple[str, ...]:
    ranking = _ranking(standing)
    part = playing_a_part(standing.probabilities, standing.hypotheses)
    rivals = [
        f"{name} ({p:.1%})"
        for name, p in ranking
        if name != ranking[0][0]
        and p >= 0.005
        and not {*causes} & {*standing.hypotheses[name].causes}
    ]
    found = [f"not excluded: {', '.join(rivals[:3])}"] if rivals else []
    beside = [f"{c} ({p:.1%})" for c, p in part.items() if c not in causes and p >= 0.005]
    if causes and beside and any(len(standing.hypotheses[n].causes) > 1 for n, _ in ranking):
        found.append(f"may play a part as well: {', '.join(beside[:3])}")
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


def _next_action(standing: Standing, status: Status, blamed: Sequence[Hypothesis]) -> str:
    match status:
        case Status.DECIDED:
            change = "; and ".join(h.intervention for h in blamed)
            return f"{change}; then compare the arms again, paired"
        case Status.NO_EFFECT:
            return "keep the simpler arm, or raise the number of blocks if a smaller effect matters"
        case Status.MODEL_INADEQUATE:
            return "write down a new explanation (one file), then let the study go on"
        case Status.OUT_OF_BUDGET:
            return "raise the budget, or accept that the question stays open"
        case Status.UNDETERMINED:
            names = [name for name, _ in _ranking(standing)[:2]]
            tests = [standing.hypotheses[n].intervention for n in names]
            told = "; ".join(t for t in tests if t)
            return f"offer a probe that parts {' from '.join(names)}: {told}"
        case _:
            return "run the next probe"
