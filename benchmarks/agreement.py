"""Whether the particles agree with NUTS and SMC, and are calibrated, for every hypothesis.

    uv run python benchmarks/agreement.py --json OUT [NAMES...]

For each hypothesis readings are simulated from its own prior, on one frame in which every
mechanism has marks, a rest that its removal leaves, and a side on which it may be. The
posterior is found twice: by the engine's particles, and by `argus_bed.inference.check`
(NUTS, and the log evidence by SMC), which shares nothing with them but the model. Then
simulation-based calibration (Talts et al., 2018): over ``--simulations`` draws from the
prior the ranks of the true values must be uniform. Takes about half a minute a hypothesis.
"""

from __future__ import annotations

import json
import math
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from scipy import stats

from argus_bed.anatomy import Anatomy
from argus_bed.contrast import planned_readings
from argus_bed.frame import CANDIDATE, Cell, Condition, Frame, Stage
from argus_bed.hypothesis import Hypothesis, catalogue
from argus_bed.inference.belief import Belief
from argus_bed.inference.bridge import TorchModel, convert
from argus_bed.inference.check import TOLERANCE, Check, check
from argus_bed.inference.likelihood import density
from argus_bed.probe import Measurement, Reading
from argus_bed.quantity import QUANTITIES, Family

SEED = 0
FALSE_ALARM = 0.01  # of all ranks of all hypotheses together
BLOCKS = 12
"""Values that a run reads of each cell: as many as a paired comparison of the zoo takes."""
STAGES = (
    Stage("part", "compute", changed=True),
    Stage("neighbour", "compute", changed=False),
    Stage("send", "communication", changed=False),
    Stage("move", "copy"),
    Stage("input", "wait"),
    Stage("prepare", "host"),
)
OF_A_STAGE = ("stage_time", "stage_share", "delay_slope")

Array = np.ndarray[Any, np.dtype[np.float64]]


def library_frame(causes: Iterable[str]) -> Frame:
    """Everything that a mechanism can mark, in both arms and with all ``causes`` turned off
    in the candidate and turned on in the baseline.

    So that every mechanism has a rest that its removal leaves, and, because nobody says
    what the change was meant to do, a side on which it may be.
    """
    names = frozenset(causes)
    conditions = (
        Condition("baseline"),
        Condition("candidate"),
        Condition("candidate:without", "candidate", "cause", "without", removes=names),
        Condition("baseline:with", "baseline", "cause", "with", adds=names),
    )
    arms = conditions[:2]
    whole = [q for q in QUANTITIES if q not in (*OF_A_STAGE, "env_flag")]
    cells = [Cell(q, c.name) for q in whole for c in conditions]
    cells += [Cell("stage_time", c.name, s.name) for s in STAGES for c in arms]
    cells += [Cell("isolated_time", c.name, "part") for c in arms]
    cells += [Cell("stage_share", "baseline", "part"), Cell("delay_slope", "candidate", "part")]
    return Frame("step_time", conditions, STAGES, tuple(cells), "unknown")


@dataclass(frozen=True)
class Setting:
    """A hypothesis, the readings on which it has something to say, and a frame of just these.

    Cells that nobody reads would change no posterior and cost most of the time.
    """

    hypothesis: Hypothesis
    frame: Frame
    plan: tuple[Measurement, ...]

    def belief(self, particles: int) -> Belief:
        return Belief([self.hypothesis], self.frame, seed=SEED, particles=particles)


def setting(
    hypothesis: Hypothesis, frame: Frame, most: int | None = None, blocks: int = BLOCKS
) -> Setting:
    """Readings of the cells of ``frame`` in which the hypothesis's prediction varies.

    With ``most`` an even choice of so many, the comparisons of the step time always among
    them.
    """
    model = convert(hypothesis.model(frame), ("cells", "free"))
    said = model.outputs(model.sample_prior(256, SEED))
    moves = (said["cells"].std(0) > 1e-6) | (said["free"].mean(0) > 1e-3)
    index = frame.cell_index
    found = [
        m
        for m in planned_readings(frame, dict.fromkeys(frame.cells, blocks), {})
        if moves[index[m.cell]] or (m.against is not None and moves[index[m.against]])
    ]
    if most is not None and len(found) > most:
        first = [m for m in found if m.cell.quantity == "step_time"]
        rest = [m for m in found if m.cell.quantity != "step_time"]
        steps = np.linspace(0, len(rest) - 1, most - len(first)).round().astype(int)
        found = first + [rest[i] for i in steps]
    return Setting(hypothesis, narrowed(frame, found), tuple(found))


def narrowed(frame: Frame, plan: Sequence[Measurement]) -> Frame:
    """The frame with no other cells than those that are read."""
    read = tuple(dict.fromkeys(c for m in plan for c in (m.against, m.cell) if c is not None))
    return Frame(frame.metric, frame.conditions, frame.stages, read, frame.intent)


def simulate(
    model: TorchModel, plan: Sequence[Measurement], frame: Frame, n: int, seed: int
) -> tuple[dict[str, Array], list[list[Reading]]]:
    """True values of the free variables, (n, ...) each, and what would be read under each."""
    truth = model.sample_prior(n, seed)
    said = model.outputs(truth)
    u = torch.as_tensor(np.random.default_rng([seed, 1]).random((2, n, len(plan))))
    y = density(plan, said["cells"], said["free"], frame.cell_index).sample(u[0], u[1])
    readings = [[Reading(m, v) for m, v in zip(plan, row, strict=True)] for row in y.tolist()]
    return model.constrained(truth), readings


def agreement(about: Setting, **effort: int) -> Check:
    """The particles' posterior from simulated readings against NUTS and SMC.

    ``effort`` is for `check`: draws, chains.
    """
    name, frame = about.hypothesis.name, about.frame
    belief = about.belief(particles=2048)
    seed = zlib.crc32(name.encode())  # fixed by the name, so that nobody chose it
    _, (readings,) = simulate(belief.model(name), about.plan, frame, 1, seed)
    belief = belief.update(readings)
    found = belief.log_evidence[name]
    return check(
        about.hypothesis, frame, readings, belief.samples(name), found, seed=SEED, **effort
    )


def ranks(about: Setting, n: int, particles: int = 512) -> dict[str, list[float]]:
    """Posterior weight below the true value of every free variable, in ``n`` simulations.

    Uniform if the posterior is right.
    """
    name = about.hypothesis.name
    prior = about.belief(particles)
    seed = zlib.crc32(name.encode())
    truth, readings = simulate(prior.model(name), about.plan, about.frame, n, seed)
    found: dict[str, list[float]] = {v: [] for v in truth}
    for i, seen in enumerate(readings):
        values, weights = prior.update(seen).samples(name)
        for v, draws in values.items():
            found[v].append(float(weights @ (draws < truth[v][i])))
    return found


def least_uniform(found: Mapping[str, Sequence[float]]) -> tuple[str, float]:
    """The variable whose ranks fit a uniform distribution worst, and the p of Kolmogorov's test."""
    p = {v: float(stats.kstest(r, "uniform").pvalue) for v, r in found.items()}
    return min(p.items(), key=lambda item: item[1])


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    readings: int
    log_evidence_difference: float
    standard_error: float
    worst_mean_shift_sd: float
    worst_variable: str
    unconverged: tuple[str, ...]
    agrees: bool
    rank_variables: int
    rank_p: float
    rank_variable: str
    seconds: float


def examine(hypothesis: Hypothesis, frame: Frame, simulations: int) -> Row:
    started = time.perf_counter()
    about = setting(hypothesis, frame)
    found = agreement(about)
    shifts = found.mean_differences
    worst = max(shifts, key=lambda v: abs(shifts[v]), default="")
    ranked = ranks(setting(hypothesis, frame, most=12), simulations) if simulations else {}
    where, p = least_uniform(ranked) if ranked else ("", math.nan)
    return Row(
        hypothesis.name,
        len(about.plan),
        found.log_evidence_difference,
        found.log_evidence_error,
        shifts.get(worst, 0.0),
        worst,
        found.unconverged,
        found.ok and abs(found.log_evidence_difference) <= TOLERANCE,
        len(ranked),
        p,
        where,
        time.perf_counter() - started,
    )


@dataclass(frozen=True)
class Calibration:
    """Whether probabilities of hypotheses are what they say, over simulated studies.

    ``log_score`` and ``brier`` are z: the observed score of the posterior probabilities
    minus the one that they expect of themselves, in standard errors of that difference
    (Spiegelhalter, 1986, Statistics in Medicine 5). Standard normal if calibrated.
    """

    studies: int
    log_score: float
    brier: float


def telling(
    hypotheses: Sequence[Hypothesis], frame: Frame
) -> tuple[Frame, tuple[Measurement, ...]]:
    """The step time of both arms and, for each hypothesis, its mark that it shares with the
    fewest others: the frame of these readings, and them.
    """
    plans = [setting(h, frame, blocks=1).plan for h in hypotheses]
    arms = [[m for m in plan if m.cell.condition == CANDIDATE] for plan in plans]
    shared = Counter(m for plan in arms for m in plan)
    found = [m for plan in arms for m in plan if m.cell == Cell("step_time", CANDIDATE)][:1]
    found += [min(plan, key=lambda m: shared[m]) for plan in arms if plan]
    plan = tuple(dict.fromkeys(found))
    return narrowed(frame, plan), plan


def calibration(
    hypotheses: Sequence[Hypothesis],
    frame: Frame,
    plan: Sequence[Measurement],
    n: int,
    particles: int = 512,
) -> Calibration:
    """Draw a hypothesis from the prior and readings from it, ``n`` times, and ask which it was."""
    prior = Belief(hypotheses, frame, seed=SEED, particles=particles)
    names = list(prior.prior)
    shares = np.array([prior.prior[name] for name in names])
    truth = np.random.default_rng(SEED).choice(len(names), n, p=shares)
    gaps, variances = np.zeros(2), np.zeros(2)
    for h in np.unique(truth):
        name, count = names[h], int((truth == h).sum())
        seed = zlib.crc32(name.encode())
        _, studies = simulate(prior.model(name), plan, frame, count, seed)
        for readings in studies:
            found = prior.update(readings).probabilities()
            p = np.array([max(found[name], 1e-300) for name in names])
            # scores of every hypothesis if it were the true one
            scores = np.stack([np.log(p), 2 * p - np.sum(p**2)])
            expected = scores @ p
            gaps += scores[:, h] - expected
            variances += (scores**2) @ p - expected**2
    z = gaps / np.sqrt(variances)
    return Calibration(n, float(z[0]), float(z[1]))


def structures(hypotheses: Iterable[Hypothesis], frame: Frame) -> dict[frozenset[str], list[str]]:
    """Names of the hypotheses by the way in which their models are built.

    Two are alike if they use the same verbs of the anatomy, on flags or on other quantities.
    """
    import pymc as pm

    found: dict[frozenset[str], list[str]] = {}
    for h in hypotheses:
        noted = _Noted(Anatomy(frame))
        with pm.Model():
            h.changes(noted)  # type: ignore[arg-type]
        found.setdefault(frozenset(noted.seen), []).append(h.name)
    return found


class _Noted:
    """An anatomy that remembers what was done to it."""

    def __init__(self, step: Anatomy) -> None:
        object.__setattr__(self, "step", step)
        object.__setattr__(self, "seen", set())

    def __getattr__(self, verb: str) -> Any:
        found = getattr(self.step, verb)
        if not callable(found):
            return found

        def call(*given: Any, **named: Any) -> Any:
            known = QUANTITIES.get(given[0]) if given and isinstance(given[0], str) else None
            kinds = ["flag"] if known is not None and known.family is Family.FLAG else []
            self.seen.add(" ".join((verb, *kinds)))
            return found(*given, **named)

        return call

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "scope":
            self.seen.add(name)
        setattr(self.step, name, value)


def main(
    names: Annotated[list[str] | None, typer.Argument(help="Hypotheses; all of them.")] = None,
    simulations: Annotated[int, typer.Option(min=0, help="For the ranks; 0: none.")] = 50,
    studies: Annotated[int, typer.Option(min=0, help="For the probabilities; 0: none.")] = 100,
    out: Annotated[Path | None, typer.Option("--json", help="Write the figures here too.")] = None,
) -> None:
    """Compare, calibrate, and print a table."""
    known = catalogue()
    frame = library_frame(known)
    chosen = [known[n] for n in names or known]
    rows = []
    print(f"{'hypothesis':25}{'readings':>9}{'d log evidence':>16}{'se':>7}{'worst mean':>12}  of")
    for h in chosen:
        row = examine(h, frame, simulations)
        rows.append(row)
        print(
            f"{row.name:25}{row.readings:9}{row.log_evidence_difference:+16.3f}"
            f"{row.standard_error:7.3f}{row.worst_mean_shift_sd:+9.3f} sd  {row.worst_variable}"
            f"{'' if row.agrees else '  DISAGREES'}"
            f"  ranks p {row.rank_p:.2g} ({row.rank_variable})  {row.seconds:.0f} s",
            flush=True,
        )
    tested = sum(r.rank_variables for r in rows)
    uneven = [r.name for r in rows if r.rank_p * max(tested, 1) < FALSE_ALARM]
    found = {
        "schema": "argus-bed/benchmark-agreement/1",
        "simulations": simulations,
        "agree": sum(r.agrees for r in rows),
        "of": len(rows),
        "ranks_not_uniform": uneven,
        "rows": [asdict(r) for r in rows],
    }
    if studies and len(chosen) > 1:
        found["probabilities"] = asdict(calibration(chosen, *telling(chosen, frame), studies))
    print(json.dumps({k: v for k, v in found.items() if k != "rows"}, indent=1))
    if out is not None:
        out.write_text(json.dumps(found, indent=1, allow_nan=True) + "\n", encoding="utf-8")
    if not all(r.agrees for r in rows) or uneven:
        sys.exit(1)


if __name__ == "__main__":
    typer.run(main)
