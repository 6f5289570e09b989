"""Plays a recorded case through the engine and compares its verdict with the recorded one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from argus_bed.design.policies import Chooser, gain_per_price
from argus_bed.hypothesis import NO_EFFECT, NONE_OF_THESE, Hypothesis, catalogue, select
from argus_bed.inference.belief import Belief
from argus_bed.ledger import Ledger
from argus_bed.records import Status, Verdict
from argus_bed.study.engine import Listener, Study, _silent
from argus_bed.study.policy import Policy
from argus_bed.workload.recorded import Case, RecordedSystem, load_case


@dataclass(frozen=True)
class Replay:
    """What a replay gave.

    missing : hypotheses that the case lists and the library lacks.
    price_s, price_of_all_s : paid, and the sum over all probes of the file.
    matches : whether the verdict is the recorded one.
    wrong : whether a cause was accepted that is not the recorded one.
    """

    case: str
    verdict: Verdict
    recorded: tuple[str, tuple[str, ...]]
    missing: tuple[str, ...]
    price_s: float
    price_of_all_s: float
    matches: bool
    wrong: bool


def study_of(
    case: Case,
    *,
    seed: int = 0,
    ledger: Ledger | None = None,
    policy: Policy | None = None,
    known: dict[str, Hypothesis] | None = None,
    max_causes: int = 2,
    choose: Chooser = gain_per_price,
    belief: Belief | None = None,
) -> tuple[Study, tuple[str, ...]]:
    """A study over a recorded case, and the names of the hypotheses that are missing.

    choose, belief : see `Study`.
    """
    library = known or catalogue()
    listed = [h for h in case.hypotheses if h not in (NO_EFFECT, NONE_OF_THESE)]
    present = [h for h in listed if h in library]
    total = sum(p.cost_s * (1 + min(p.perturbation, 3.0)) for p in case.probes)
    study = Study(
        case.name,
        RecordedSystem(case),
        select(present, library, max_causes),
        ledger or Ledger.open("sqlite://"),
        policy=policy or Policy(budget_s=max(1.0, 2 * total), max_runs=2 * len(case.probes)),
        seed=seed,
        spec={"case": case.name, "seed": seed},
        choose=choose,
        belief=belief,
    )
    return study, tuple(h for h in listed if h not in library)


def replay(
    path: str | Path, *, seed: int = 0, on_event: Listener = _silent, max_causes: int = 2
) -> Replay:
    """Play the case at ``path``. Raises `FileRejected` if it is not a case file."""
    return replay_case(load_case(path), seed=seed, on_event=on_event, max_causes=max_causes)


def replay_case(
    case: Case, *, seed: int = 0, on_event: Listener = _silent, max_causes: int = 2
) -> Replay:
    """Play a case that was loaded before."""
    study, missing = study_of(case, seed=seed, max_causes=max_causes)
    with study:
        verdict = study.run(on_event=on_event)
        paid = study.spent_s
    truth = case.verdict
    decided = verdict.status is Status.DECIDED
    same = verdict.status.value == truth.status and (
        not decided or set(verdict.causes) == set(truth.causes)
    )
    if verdict.status in (Status.MODEL_INADEQUATE, Status.UNDETERMINED):
        same = truth.status == "undetermined"
    accepted = decided or verdict.status is Status.NO_EFFECT
    wrong = accepted and not (
        decided and truth.status == "decided" and set(verdict.causes) <= set(truth.causes)
    )
    if verdict.status.value == truth.status == "no_effect":
        wrong = False
    return Replay(
        case=case.name,
        verdict=verdict,
        recorded=(truth.status, truth.causes),
        missing=missing,
        price_s=paid,
        price_of_all_s=sum(p.cost_s * (1 + min(p.perturbation, 3.0)) for p in case.probes),
        matches=same,
        wrong=wrong,
    )
