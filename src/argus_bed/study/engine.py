"""The study: asks for the next measurement, takes what it read, and knows when to stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from argus_bed.contrast import planned_readings
from argus_bed.errors import ProbeError, StorageError, UnknownName, UsageError, ValueRejected
from argus_bed.frame import Cell
from argus_bed.hypothesis import Hypothesis, prior_probabilities
from argus_bed.inference.belief import Belief
from argus_bed.ledger import Ledger
from argus_bed.probe import Measurement, Observation, Plan, Reading, Sample
from argus_bed.quantity import parse, quantity
from argus_bed.records import (
    Prediction,
    Proposal,
    ReadingRecord,
    Run,
    RunState,
    Status,
    Verdict,
)
from argus_bed.report.view import HypothesisText, Pair, SignalText, StudyView
from argus_bed.study.policy import Policy
from argus_bed.study.readings import Read, disturbed, to_readings
from argus_bed.study.scoring import (
    ScoredPlan,
    Target,
    best_separations,
    confirming,
    score_plans,
)
from argus_bed.study.system import System
from argus_bed.study.telling import (
    effect_of,
    in_words,
    reason_for,
    record_of,
    samples_of,
    to_samples,
)
from argus_bed.study.verdict import Standing, judge, lacks_comparison

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

APPROVED_PLAN = "approved_plan"
"""Kind of the ledger's event in which a person lets a plan run."""

Listener = Callable[[str, Any], None]


def _silent(kind: str, payload: Any) -> None:
    """Nobody listens."""


class Study:
    """One question with its rival explanations and everything observed about it.

    Made by `open_study`. Everything told is in the ledger before a method returns; a
    study opened again under the same name goes on where the last process stopped.
    """

    def __init__(
        self,
        name: str,
        system: System,
        hypotheses: Sequence[Hypothesis],
        ledger: Ledger,
        *,
        policy: Policy,
        seed: int,
        target: Target = "cause",
        spec: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.system = system
        self.frame = system.frame
        self.hypotheses = {h.name: h for h in hypotheses}
        self.policy = policy
        self.seed = seed
        self.target: Target = target
        self._ledger = ledger
        self._id = ledger.create_study(name, dict(spec or {}))
        self.priors = prior_probabilities(hypotheses)
        self._belief = self._fresh_belief()
        self._known: dict[Cell, Sample] = {}
        self._measured: list[Measurement] = []
        self._runs: dict[int, Run] = {}
        self._approved: frozenset[str] = frozenset()
        self._exhausted = ""
        self._sync()

    # -- state -----------------------------------------------------------------------

    def _fresh_belief(self) -> Belief:
        return Belief(
            tuple(self.hypotheses.values()), self.frame, seed=self.seed, prior=self.priors
        )

    def _sync(self) -> None:
        """Take in what the ledger holds and this process has not seen yet."""
        history = self._ledger.history(self._id)
        self._approved = frozenset(
            str(payload["plan"]) for _, kind, payload in history.events if kind == APPROVED_PLAN
        )
        for run in history.ended:
            if run.number not in self._runs:
                self._absorb(run)

    def _absorb(self, run: Run) -> None:
        """Add an ended run to the belief. The ledger's readings are all it takes."""
        samples = to_samples(run.samples) if run.state is RunState.DONE else []
        self._cover(s.cell for s in samples)  # before this run counts among the others
        self._runs[run.number] = run
        if run.state is not RunState.DONE:
            return
        readings = [_reading(r) for r in run.readings if r.used]
        self._belief = self._belief.update(readings)
        self._measured += [r.measurement for r in readings]
        self._known.update({s.cell: s for s in samples})
        self._exhausted = ""

    def _cover(self, cells: Iterable[Cell]) -> None:
        """Make sure that the models speak about ``cells``; rebuild the belief if they do not."""
        missing = [c for c in cells if c not in self.frame.cell_index]
        if not missing:
            return
        self.frame = self.frame.with_cells(missing)
        self._belief = self._fresh_belief()
        for run in self._runs.values():
            if run.state is RunState.DONE:
                self._belief = self._belief.update([_reading(r) for r in run.readings if r.used])

    @property
    def spent_s(self) -> float:
        """Price paid so far, in seconds of the target's time."""
        return math.fsum(run.price_s for run in self._runs.values())

    def _done(self) -> tuple[str, ...]:
        """Probes that have been run; and plans that failed too often."""
        tried = [r for r in self._runs.values() if r.proposal is not None]
        done = [r.proposal.probe for r in tried if r.state is RunState.DONE and r.proposal]
        failures = [r.proposal.plan for r in tried if r.state is not RunState.DONE and r.proposal]
        spoilt = {p for p in failures if failures.count(p) >= self.policy.unattended_failures}
        return (*done, *spoilt)

    # -- ask -------------------------------------------------------------------------

    def score(self) -> list[ScoredPlan]:
        """Every plan with its expected gain and price, best first."""
        return score_plans(
            self.system,
            self._belief,
            self._known,
            self._done(),
            self.policy,
            left_s=self.policy.budget_s - self.spent_s,
            approved=self._approved,
            target=self.target,
        )

    def ask(self, n: int = 1) -> list[Proposal]:
        """The next ``n`` measurements worth their price, best first; none if there are none.

        Each is stored, with its reason, prediction and gain, before it is returned.

        Raises
        ------
        ValueRejected : ``n`` is not a positive number.
        """
        if n < 1:
            raise ValueRejected(f"n={n}: ask for at least one measurement")
        self._sync()
        if judge(self._stand()).status is not Status.OPEN:
            return []
        history = self._ledger.history(self._id)
        if history.pending:
            return list(history.pending[:n])
        scored = self.score()
        worth = [s for s in scored if s.gain.bits >= self.policy.min_gain_bits and not s.blocked]
        if lacks_comparison(self._stand()):
            worth = confirming(self.frame, scored) or worth
        if not worth:
            waiting = [s for s in scored if s.gain.bits >= self.policy.min_gain_bits]
            self._exhausted = (
                f"{waiting[0].plan.key} would tell more, but {waiting[0].blocked}"
                if waiting
                else f"no probe is expected to tell {self.policy.min_gain_bits:g} bits or more"
            )
            return []
        chosen = list({s.plan.key: s for s in reversed(worth)}.values())[::-1][:n]
        return [self._propose(s, scored) for s in chosen]

    def _propose(self, best: ScoredPlan, scored: Sequence[ScoredPlan]) -> Proposal:
        others = [s for s in scored if s.plan.key != best.plan.key and s.gain.bits > 0]
        tied_with = [s.plan.key for s in others if best.tied(s)]
        plan = best.plan
        proposal = Proposal(
            run=0,
            plan=plan.key,
            probe=plan.probe,
            settings=dict(plan.settings),
            conditions=plan.conditions,
            question=self.system.describe(plan),
            gain_bits=best.gain.bits,
            gain_error=best.gain.error_bits,
            price_s=best.price_s,
            perturbation=plan.price.perturbation,
            score=best.score if math.isfinite(best.score) else 0.0,
            reason=reason_for(best, others),
            target=self.target,
            predictions=self._predictions(best.measurements),
            runners_up=tuple(
                (s.plan.key, s.gain.bits, s.price_s, s.score if math.isfinite(s.score) else 0.0)
                for s in others[:3]
            ),
            tied_with=tuple(tied_with),
            risk=plan.risk,
            needs_approval=False,
        )
        return self._ledger.propose(self._id, proposal)

    def _predictions(self, measurements: Sequence[Measurement]) -> tuple[Prediction, ...]:
        if not measurements:
            return ()
        expected = self._belief.predict(measurements)
        return tuple(
            Prediction(
                str(m), {h: (float(mean[i]), float(sd[i])) for h, (mean, sd) in expected.items()}
            )
            for i, m in enumerate(measurements)
        )

    # -- run and tell ------------------------------------------------------------------

    def execute(self, proposal: Proposal) -> Run:
        """Run a proposal. A probe that fails gives a FAILED run and never loses the study.

        Raises
        ------
        UsageError : another process is running it, or it has ended.
        """
        plans = {p.key: p for p in self.system.plans(self._known, self._done())}
        plan = plans.get(proposal.plan)
        lease = self._ledger.claim(self._id, proposal.run)
        if lease is None:
            raise UsageError(f"run {proposal.run} is being run by another process; wait for it")
        seed = int(np.random.SeedSequence([self.seed, proposal.run]).generate_state(1)[0])
        started = time.monotonic()
        try:
            if plan is None:
                raise UnknownName("plan", proposal.plan, plans)
            observation = self.system.execute(plan, seed)
        except (ProbeError, UnknownName) as error:
            price = min(time.monotonic() - started, proposal.price_s or math.inf)
            run = Run(
                proposal.run, RunState.FAILED, proposal, before=self.probabilities(),
                after=self.probabilities(), price_s=price, error=str(error),
            )  # fmt: skip
        except BaseException:
            self._ledger.release(lease)
            raise
        else:
            run = self._digest(proposal, plan, observation)
        self._ledger.finish(lease, run)
        self._runs[run.number] = run
        return run

    def _digest(self, proposal: Proposal, plan: Plan, observation: Observation) -> Run:
        effects = self.system.side_effects(plan)
        kept = disturbed(plan.measurements, effects, {**self._known, **_by_cell(observation)})
        recorded = bool(observation.environment.get("recorded"))
        seconds = observation.seconds
        run = Run(
            number=proposal.run,
            state=RunState.DONE,
            proposal=proposal,
            samples=samples_of(observation.samples),
            price_s=proposal.price_s
            if recorded and not proposal.reason.startswith("two steps")
            else seconds * (1.0 + self.policy.harm * plan.price.perturbation),
            seconds=seconds,
            overhead=observation.overhead,
            environment=dict(observation.environment),
            source="recorded" if recorded else "probe",
        )
        dropped = [m for m in plan.measurements if m.key not in {k.key for k in kept}]
        return self._learn(run, kept, observation.samples, dropped)

    def _learn(
        self,
        run: Run,
        measurements: Iterable[Measurement],
        samples: Sequence[Sample],
        dropped: Sequence[Measurement] = (),
    ) -> Run:
        reads = to_readings(self.frame, measurements, samples, self._known)
        reads += [Read(m, None, why_not="the instrument voids it") for m in dropped]
        readings = [r.reading for r in reads if r.reading is not None]
        before = self.probabilities()
        surprise = self._belief.predictive_p(readings) if readings else None
        evidence = self._belief.log_evidence
        self._belief = self._belief.update(readings)
        after = self.probabilities()
        change = {h: self._belief.log_evidence[h] - evidence[h] for h in after}
        overall = math.log(math.fsum(before[h] * math.exp(change[h]) for h in before) or 1e-300)
        self._known.update({s.cell: s for s in samples})
        self._measured += [r.measurement for r in readings]
        self._exhausted = ""
        return replace(
            run,
            readings=tuple(record_of(r) for r in reads),
            before=before,
            after=after,
            bits={h: (c - overall) / math.log(2) for h, c in change.items()},
            gained_bits=_divergence(after, before),
            surprise=surprise,
        )

    def tell(
        self,
        values: Mapping[str, Sequence[str | float]],
        *,
        condition: str,
        stage: str | None = None,
        run: int | None = None,
        perturbation: float = 0.0,
        seconds: float = 0.0,
    ) -> Run:
        """Take a result measured by hand; a bare number is in the quantity's own unit.

        ``run`` names a proposal that this answers; without it the result was never asked for.

        Raises
        ------
        UnknownName : a quantity, condition, stage or run that is not known here.
        UnitError, ValueRejected : a value that cannot be meant; nothing is stored then.
        """
        self._sync()
        self.frame.condition(condition)
        if stage is not None and stage not in self.frame.stage_index:
            raise UnknownName("stage", stage, self.frame.stage_index)
        if not values:
            raise ValueRejected("nothing was told; write for example step_time=12.3ms")
        for label, number in (("seconds", seconds), ("perturbation", perturbation)):
            if not (math.isfinite(number) and number >= 0):
                raise ValueRejected(f"{label} = {number}: a finite number, zero or more")
        proposed = self._ledger.history(self._id).proposals if run is not None else {}
        if run is not None and run not in proposed:
            raise UnknownName("proposal", str(run), map(str, proposed))
        samples = []
        for name, given in values.items():
            quantity(name)
            read = tuple(parse(str(v), name) for v in given)
            if not read:
                raise ValueRejected(f"{name}: no value was given; write for example {name}=12.3")
            samples.append(Sample(Cell(name, condition, stage), read))
        self._cover(s.cell for s in samples)
        here = {s.cell: len(s.values) for s in samples}
        measurements = tuple(planned_readings(self.frame, here, self._known))
        price = seconds * (1.0 + self.policy.harm * perturbation)
        told = Run(
            number=run or 0, state=RunState.DONE, proposal=None, samples=samples_of(samples),
            price_s=price, seconds=seconds, source="told",
        )  # fmt: skip
        lease = None
        if run is not None:
            lease = self._ledger.claim(self._id, run)
            if lease is None:
                raise UsageError(
                    f"run {run} is being run by another process; tell without a number"
                )
        told = self._learn(told, measurements, samples)
        if lease is None:
            told = self._ledger.tell(self._id, told)
        else:
            self._ledger.finish(lease, told)
            told = replace(told, proposal=proposed[told.number])
        self._runs[told.number] = told
        return told

    def approve(self, plan: str, by: str, note: str = "") -> None:
        """Record that a person lets a plan run which the policy holds back.

        Raises
        ------
        UnknownName : no plan of this study has that key.
        """
        known = {s.plan.key for s in self.score()}
        if plan not in known:
            raise UnknownName("plan", plan, known)
        self._ledger.append(self._id, APPROVED_PLAN, {"plan": plan, "by": by, "note": note})
        self._approved |= {plan}
        self._exhausted = ""

    def run(
        self,
        *,
        max_price: float | None = None,
        max_runs: int | None = None,
        timeout: float | None = None,
        on_event: Listener = _silent,
    ) -> Verdict:
        """Ask and measure until the question is settled or the means are used up.

        Parameters
        ----------
        max_price : seconds of the target's time that this call may cost.
        max_runs : measurements that this call may make.
        timeout : seconds of wall time after which no further measurement starts.
        on_event : called with ("opened" | "proposal" | "run" | "verdict", payload).
        """
        on_event("opened", self)
        spent, runs, started = self.spent_s, 0, time.monotonic()
        while True:
            if max_price is not None and self.spent_s - spent >= max_price:
                break
            if max_runs is not None and runs >= max_runs:
                break
            if timeout is not None and time.monotonic() - started >= timeout:
                break
            proposals = self.ask()
            if not proposals:
                break
            if max_price is not None and proposals[0].price_s > max_price - (self.spent_s - spent):
                break
            on_event("proposal", proposals[0])
            on_event("run", self.execute(proposals[0]))
            runs += 1
        verdict = self.verdict()
        self._ledger.append(self._id, "verdict", asdict(verdict))
        on_event("verdict", verdict)
        return verdict

    # -- what is believed ----------------------------------------------------------------

    def probabilities(self) -> dict[str, float]:
        """Probability of each hypothesis."""
        return self._belief.probabilities()

    def _stand(self) -> Standing:
        return Standing(
            frame=self.frame,
            hypotheses=self.hypotheses,
            probabilities=self.probabilities(),
            runs=tuple(self._runs.values()),
            readings=tuple(self._measured),
            policy=self.policy,
            spent_s=self.spent_s,
            exhausted=self._exhausted,
        )

    def verdict(self) -> Verdict:
        """How the study stands now."""
        self._sync()
        found = judge(self._stand())
        if found.status is Status.DECIDED:
            found = replace(found, predicted_effect=effect_of(self._belief, found.ranking[0][0]))
        return found

    def why(self, run: int) -> Run:
        """One run with its reason, prediction, reading and change of belief.

        Raises
        ------
        UnknownName : there is no such run.
        """
        self._sync()
        if run not in self._runs:
            raise UnknownName("run", str(run), map(str, self._runs))
        return self._runs[run]

    def posterior(self) -> xr.DataTree:
        """Posterior draws by hypothesis, probabilities and log evidence, as a DataTree."""
        return self._belief.datatree()

    def view(self) -> StudyView:
        """Everything that a report shows."""
        runs = tuple(self._runs[n] for n in sorted(self._runs))
        return StudyView(
            name=self.name,
            question=self.system.question,
            metric=self.frame.metric,
            hypotheses={
                h.name: HypothesisText(h.claim, h.part, self.priors[h.name])
                for h in self.hypotheses.values()
            },
            runs=runs,
            verdict=self.verdict(),
            created=self._ledger.study(self.name).created_at,
            conditions={c.name: in_words(c) for c in self.frame.conditions},
            spent_s=self.spent_s,
            budget_s=self.policy.budget_s,
            signals=self._signals(runs),
            pairs=self.pairs(),
        )

    def _signals(self, runs: Sequence[Run]) -> dict[str, SignalText]:
        used = {r.proposal.probe for r in runs if r.proposal}
        plans = {p.probe: p for p in self.system.plans({}, ()) if p.probe in used}
        return {name: SignalText(**self.system.signal(plan)) for name, plan in plans.items()}

    def pairs(self, most: int = 4) -> tuple[Pair, ...]:
        """The probe that best parts each pair of the ``most`` probable hypotheses."""
        ranked = sorted(self.probabilities().items(), key=lambda item: -item[1])
        plans = [s for s in self.score() if s.measurements and not s.opens]
        return best_separations(self._belief, plans, [name for name, _ in ranked[:most]])

    def report(self, path: str | Path) -> Path:
        """Write the HTML report and, beside it, the posterior as NetCDF (``.nc``).

        Raises
        ------
        StorageError : a file cannot be written.
        """
        from argus_bed.report.html import write_html

        page = write_html(self.view(), Path(path))
        try:
            self.posterior().to_netcdf(page.with_suffix(".nc"))
        except OSError as error:
            raise StorageError(f"{page.with_suffix('.nc')}: {error.strerror or error}") from error
        return page

    def runs_dataframe(self) -> pd.DataFrame:
        """One row per run: number, state, probe, price, gained bits, leading explanation."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    "run": r.number,
                    "state": r.state.value,
                    "probe": r.proposal.plan if r.proposal else r.source,
                    "price_s": r.price_s,
                    "expected_bits": r.proposal.gain_bits if r.proposal else None,
                    "gained_bits": r.gained_bits,
                    "leader": max(r.after, key=r.after.__getitem__) if r.after else None,
                }
                for _, r in sorted(self._runs.items())
            ]
        )

    def close(self) -> None:
        """End the workload's processes and close the ledger."""
        self.system.close()
        self._ledger.close()

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _by_cell(observation: Observation) -> dict[Cell, Sample]:
    return {s.cell: s for s in observation.samples}


def _reading(record: ReadingRecord) -> Reading:
    cell = Cell(record.quantity, record.condition, record.stage)
    against = Cell(record.quantity, record.against, record.stage) if record.against else None
    family: Any = record.family
    measurement = Measurement(
        cell, against, record.noise, record.benign, record.coincidence, record.dof, family
    )
    return Reading(measurement, record.value)


def _divergence(after: Mapping[str, float], before: Mapping[str, float]) -> float:
    """KL(after || before) in bits: what was learned about the cause."""
    return max(
        0.0, math.fsum(p * math.log2(p / max(before[h], 1e-300)) for h, p in after.items() if p > 0)
    )
