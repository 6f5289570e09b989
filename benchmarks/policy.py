"""Which way to choose probes gets to a right answer at the lowest price.

    uv run python benchmarks/policy.py --json OUT [--quick] [--studies N] [--zoo]

Recorded cases (``../shared/cases`` where it is there, else ``tests/cases``), simulated
studies drawn from the priors and from distorted models, and with ``--zoo`` the workloads
that are really run. All policies see the same systems, the same readings and one rule for
stopping. Everything but the zoo is fixed by ``--seed``. A simulated study took 12 s for each
measurement on a shared core (8 hypotheses of 1024 particles), 85 % of it spent on
moving particles: ask for what there is time for (``--max-s``, ``--workers``).

right    the verdict is the true cause, or `no_effect` where there is none; where no listed
         hypothesis is right: no cause is accepted
wrong    a cause, or `no_effect`, was accepted that is not the truth
abstain  neither was accepted
price    of the runs made, over that of every probe once
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from simulated import DISTORTIONS, FEW, HYPOTHESES, UNLISTED, bench

from argus_bed import open_study
from argus_bed.design.policies import POLICIES, policy
from argus_bed.design.price import price_of
from argus_bed.hypothesis import NO_EFFECT, NONE_OF_THESE, catalogue, select
from argus_bed.inference.belief import Belief
from argus_bed.ledger import Ledger
from argus_bed.records import Run, RunState, Status, Verdict
from argus_bed.study.engine import Study
from argus_bed.study.knowledge import starting_belief
from argus_bed.study.policy import Policy
from argus_bed.study.replay import study_of
from argus_bed.workload.recorded import load_case
from argus_bed.workload.simulated import (
    Distortion,
    SimulatedSystem,
    Truth,
    draw_truths,
    unlisted,
)
from argus_bed.zoo import ZOO

ROOT = Path(__file__).parents[1]
ALL = (*POLICIES, "random")
BINS = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
WELL = "well specified"
NOT_LISTED = "none is right"
CASES = "recorded cases"
COLUMNS = (
    *("policy", "n", "right", "abstain", "wrong", "Brier", "said", "held", "ECE"),
    *("price / all (90 %)", "price s", "probes", "lost s"),
)


@dataclass(frozen=True)
class Task:
    """One study under one policy; plain data, so that another process can do it.

    group : what it belongs to in the table. item : which one of the group.
    """

    group: str
    item: str
    policy: str
    seed: int
    names: tuple[str, ...] = ()
    decide_at: float = 0.95
    particles: int = 1024


@dataclass(frozen=True)
class Outcome:
    """How a study ended.

    truth : causes; empty where no cause may be accepted.
    leader, leader_p : most probable hypothesis and its probability.
    brier : sum over hypotheses of (probability - truth)^2; None for recorded cases of which
        the truth is open or more than one cause.
    share : price over that of every probe. lost_s : seconds lost to disturbance.
    first : the probes in the order in which they ran.
    """

    group: str
    item: str
    policy: str
    truth: tuple[str, ...]
    status: str
    causes: tuple[str, ...]
    leader: str
    leader_p: float
    accepted_p: float | None
    right: bool
    wrong: bool
    brier: float | None
    price_s: float
    share: float
    runs: int
    lost_s: float
    wall_s: float
    first: tuple[str, ...] = field(default=())


# -- one study ---------------------------------------------------------------------------


def perform(task: Task) -> Outcome:
    """Run the study to its end."""
    started = time.perf_counter()
    make = {CASES: _recorded, "zoo": _zoo}.get(task.group, _simulated)
    study, truth, everything = make(task)
    with study:
        verdict = study.run()
        shares = study.probabilities()
        ended = [study.why(n) for n in range(1, verdict.runs + 1)]
    return _outcome(task, verdict, shares, truth, ended, everything, time.perf_counter() - started)


def _outcome(
    task: Task,
    verdict: Verdict,
    shares: dict[str, float],
    truth: tuple[str, ...],
    runs: Sequence[Run],
    everything: float,
    wall_s: float,
) -> Outcome:
    said: tuple[str, ...] = ()
    if verdict.status is Status.DECIDED:
        said = verdict.causes
    elif verdict.status is Status.NO_EFFECT:
        said = (NO_EFFECT,)
    nothing_fits = truth in ((), (NONE_OF_THESE,))
    right = not said if nothing_fits else set(said) == set(truth)
    if truth == (NONE_OF_THESE,):  # there it can be known, and to abstain is only that
        right = verdict.status is Status.MODEL_INADEQUATE
    leader, leader_p = verdict.ranking[0]
    true = truth[0] if len(truth) == 1 else NONE_OF_THESE if not truth else ""
    brier = None
    if true in shares and not (task.group == CASES and not truth):
        brier = math.fsum((p - (n == true)) ** 2 for n, p in shares.items())
    done = [r for r in runs if r.state is RunState.DONE and r.proposal is not None]
    return Outcome(
        group=task.group,
        item=task.item,
        policy=task.policy,
        truth=truth,
        status=verdict.status.value,
        causes=verdict.causes,
        leader=leader,
        leader_p=leader_p,
        accepted_p=verdict.probability if said else None,
        right=right,
        wrong=bool(said) and not set(said) <= set(truth),
        brier=brier,
        price_s=verdict.price_s,
        share=verdict.price_s / everything,
        runs=verdict.runs,
        lost_s=math.fsum(r.seconds * r.proposal.perturbation for r in done if r.proposal),
        wall_s=wall_s,
        first=tuple(r.proposal.probe for r in done if r.proposal),
    )


# -- the systems --------------------------------------------------------------------------


@cache
def _start(names: tuple[str, ...], particles: int) -> Belief:
    """Converting the models takes seconds; once a process is enough."""
    return Belief(select(names, catalogue()), bench(names)[0], seed=0, particles=particles)


@cache
def _truths(names: tuple[str, ...], seed: int, n: int) -> tuple[Truth, ...]:
    return draw_truths(select(names, catalogue()), bench(names)[0], n, seed)


TRUTHS = 1024
"""Drawn at once, so that the truth of a study does not depend on how many there are."""


def _simulated(task: Task) -> tuple[Study, tuple[str, ...], float]:
    frame, probes = bench(task.names)
    number = int(task.item)
    if task.group == NOT_LISTED:
        truth = unlisted(frame, UNLISTED[number % len(UNLISTED)])
        answer: tuple[str, ...] = ()
    else:
        truth = _truths(task.names, task.seed, TRUTHS)[number]
        answer = (truth.hypothesis,)
    system = SimulatedSystem(
        frame,
        truth,
        probes,
        seed=int(np.random.SeedSequence([task.seed, number]).generate_state(1)[0]),
        distortion=DISTORTIONS.get(task.group, Distortion()),
    )
    rules = Policy(budget_s=1e6, max_runs=len(probes), decide_at=task.decide_at)
    study = Study(
        f"{task.group}-{task.item}",
        system,
        select(task.names, catalogue()),
        Ledger.open("sqlite://"),
        policy=rules,
        seed=0,
        choose=policy(task.policy, task.seed + number),
        belief=_start(task.names, task.particles),
    )
    return study, answer, math.fsum(price_of(p.price, harm=rules.harm) for p in probes)


@cache
def _case_belief(path: str) -> Belief:
    study, _ = study_of(load_case(path))
    with study:
        return starting_belief(tuple(study.hypotheses.values()), study.frame, 0)


def _recorded(task: Task) -> tuple[Study, tuple[str, ...], float]:
    case = load_case(task.item)
    study, _ = study_of(case, choose=policy(task.policy, task.seed), belief=_case_belief(task.item))
    answer = case.verdict.causes
    if case.verdict.status == "no_effect":
        answer = (NO_EFFECT,)
    everything = sum(p.cost_s * (1 + min(p.perturbation, 3.0)) for p in case.probes)
    return study, answer, everything


def _zoo(task: Task) -> tuple[Study, tuple[str, ...], float]:
    name, _, twin = task.item.partition("/")
    entry = ZOO[name]
    study = open_study(name, workload=entry.load(bool(twin)), ledger="sqlite://", seed=task.seed)
    study.choose = policy(task.policy, task.seed)
    everything = math.fsum(price_of(p.price) for p in study.system.plans({}, ()))
    return study, (NO_EFFECT,) if twin else (entry.cause,), everything


# -- what came of it ------------------------------------------------------------------------


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Shares, scores, and medians with central 90 % intervals over studies."""
    n = len(outcomes)
    accepted = [o for o in outcomes if o.accepted_p is not None]
    briers = [o.brier for o in outcomes if o.brier is not None]
    return {
        "studies": n,
        "right": sum(o.right for o in outcomes) / n,
        "abstained": (n - len(accepted)) / n,
        "wrong": sum(o.wrong for o in outcomes) / n,
        "brier": statistics.fmean(briers) if briers else None,
        "accepted": reliability([(float(o.accepted_p or 0), not o.wrong) for o in accepted]),
        "leader": reliability(
            [(o.leader_p, {*o.leader.split("+")} <= {*o.truth}) for o in outcomes if o.truth]
        ),
        "price_share": _spread([o.share for o in outcomes]),
        "price_s": _spread([o.price_s for o in outcomes]),
        "total_price_s": math.fsum(o.price_s for o in outcomes),
        "probes": _spread([o.runs for o in outcomes]),
        "lost_s": _spread([o.lost_s for o in outcomes]),
        "inadequate": sum(o.status == "model_inadequate" for o in outcomes) / n,
    }


def reliability(pairs: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    """Reliability bins of (probability, whether it held), and the expected calibration
    error: the mean distance of both in the bins, weighed by how many lie there.
    """
    bins = []
    for low, high in pairwise(BINS):
        inside = [(p, t) for p, t in pairs if low <= p < high or (p == high == 1.0)]
        if inside:
            said = statistics.fmean(p for p, _ in inside)
            held = statistics.fmean(t for _, t in inside)
            bins.append({"from": low, "to": high, "n": len(inside), "said": said, "held": held})
    total = sum(b["n"] for b in bins) or 1
    return {
        "n": len(pairs),
        "said": statistics.fmean(p for p, _ in pairs) if pairs else None,
        "held": statistics.fmean(t for _, t in pairs) if pairs else None,
        "calibration_error": sum(b["n"] * abs(b["said"] - b["held"]) for b in bins) / total,
        "bins": bins,
    }


def _spread(values: Sequence[float]) -> dict[str, float]:
    low, mid, high = np.quantile(values, (0.05, 0.5, 0.95)).tolist()
    return {"median": mid, "low": low, "high": high}


def table(found: dict[str, dict[str, Any]], title: str) -> Table:
    """One row a policy."""
    shown = Table(title=title, title_justify="left")
    for column in COLUMNS:
        shown.add_column(column, justify="left" if column == "policy" else "right")
    for name, s in found.items():
        a, share = s["accepted"], s["price_share"]
        shown.add_row(
            name,
            str(s["studies"]),
            *(f"{s[k]:.0%}" for k in ("right", "abstained", "wrong")),
            _short(s["brier"]),
            *(_short(a[k]) for k in ("said", "held")),
            _short(s["leader"]["calibration_error"]),
            f"{share['median']:.3f} ({share['low']:.3f}-{share['high']:.3f})",
            f"{s['price_s']['median']:.0f}",
            f"{s['probes']['median']:.0f}",
            f"{s['lost_s']['median']:.2g}",
        )
    return shown


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


# -- which studies ----------------------------------------------------------------------------


def tasks(
    policies: Iterable[str], names: tuple[str, ...], groups: dict[str, int], base: Task
) -> list[Task]:
    """Every study of every group under every policy, studies first so that a run that is
    cut short has all policies on the same ones.
    """
    found = []
    for group, n in groups.items():
        for i in range(n):
            found += [
                replace(base, group=group, item=str(i), policy=p, names=names) for p in policies
            ]
    return found


def _cases() -> list[Path]:
    shared = ROOT.parent / "shared" / "cases"
    return sorted((shared if shared.is_dir() else ROOT / "tests" / "cases").glob("*.json"))


def _in_turn(todo: Sequence[Task], workers: int) -> Iterable[Outcome]:
    if workers == 1:
        return map(perform, todo)
    return _by_others(todo, workers)


def _by_others(todo: Sequence[Task], workers: int) -> Iterator[Outcome]:
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        try:
            yield from pool.map(perform, todo)
        finally:
            pool.shutdown(cancel_futures=True)


def main(
    out: Annotated[Path | None, typer.Option("--json", help="Write the figures here.")] = None,
    quick: Annotated[bool, typer.Option(help="Few studies of few hypotheses.")] = False,
    studies: Annotated[int | None, typer.Option(min=0, help="Well-specified ones.")] = None,
    misspecified: Annotated[int | None, typer.Option(min=0, help="Of every kind.")] = None,
    policies: Annotated[str, typer.Option(help="Names, with commas.")] = ",".join(ALL),
    recorded: Annotated[bool, typer.Option(help="Play the recorded cases.")] = True,
    zoo: Annotated[bool, typer.Option(help="Really run the zoo's workloads.")] = False,
    decide_at: Annotated[float, typer.Option(help="Probability of an acceptance.")] = 0.95,
    max_s: Annotated[float, typer.Option(help="Start no study after so many seconds.")] = 1e9,
    particles: Annotated[int, typer.Option(min=64, help="Of each simulated hypothesis.")] = 512,
    workers: Annotated[int, typer.Option(min=1, help="Processes; the zoo takes one.")] = 1,
    seed: int = 0,
) -> None:
    """Compare the policies."""
    chosen = tuple(policies.split(","))
    for name in chosen:
        policy(name)
    names = FEW if quick else HYPOTHESES
    well = studies if studies is not None else 6 if quick else 300
    wrong = misspecified if misspecified is not None else 2 if quick else 40
    groups = {WELL: well, **dict.fromkeys((*DISTORTIONS, NOT_LISTED), wrong)}
    base = Task("", "", "", seed, decide_at=decide_at, particles=particles)
    todo = tasks(chosen, names, groups, base)
    if recorded:
        paths = _cases()[: 3 if quick else None]
        todo += [replace(base, group=CASES, item=str(p), policy=n) for p in paths for n in chosen]
    started = time.monotonic()
    done: list[Outcome] = []
    try:
        for outcome in _in_turn(todo, workers):
            done.append(outcome)
            if time.monotonic() - started > max_s:
                break
    except KeyboardInterrupt:  # what is done by then is worth having
        pass
    if zoo:
        items = [i for n in ZOO for i in (n, f"{n}/twin")]
        done += [
            perform(replace(base, group="zoo", item=i, policy=n)) for i in items for n in chosen
        ]
    found = report(done)
    wide = Console(width=150)
    for group, rows in found.items():
        wide.print(table(rows, group))
    if out is not None:
        text = {
            "schema": "argus-bed/benchmark-policy/1",
            "seed": seed,
            "hypotheses": list(names),
            "decide_at": decide_at,
            "particles": particles,
            "wall_s": time.monotonic() - started,
            "summary": found,
            "studies": [asdict(o) for o in done],
        }
        out.write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")


def report(done: Sequence[Outcome]) -> dict[str, dict[str, Any]]:
    """Summaries by group and policy, in the order of the studies."""
    found: dict[str, dict[str, list[Outcome]]] = {}
    for o in done:
        found.setdefault(o.group, {}).setdefault(o.policy, []).append(o)
    return {g: {p: summary(os) for p, os in by.items()} for g, by in found.items()}


if __name__ == "__main__":
    typer.run(main)
