"""The study: asks for the next measurement, takes what it read, and knows when to stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from argus_bed.design.policies import Chooser, gain_per_price
from argus_bed.design.price import learned_prices
from argus_bed.errors import UnknownName, ValueRejected
from argus_bed.frame import Frame
from argus_bed.hypothesis import Hypothesis, prior_probabilities
from argus_bed.inference.belief import Belief
from argus_bed.ledger import Ledger
from argus_bed.records import Proposal, Run, Status, Verdict
from argus_bed.report.view import Pair, StudyView
from argus_bed.study.effects import effect_in_words, effects_of
from argus_bed.study.knowledge import Knowledge, starting_belief
from argus_bed.study.measuring import hear, measure
from argus_bed.study.policy import Policy
from argus_bed.study.proposing import predictions, proposal_of
from argus_bed.study.scoring import (
    Means,
    ScoredPlan,
    Target,
    after_a_failure,
    best_separations,
    confirming,
    one_a_plan,
    score_plans,
    why_nothing,
    worth_running,
)
from argus_bed.study.showing import dataframe, view_of, write_report
from argus_bed.study.system import System
from argus_bed.study.telling import samples_told, told_run
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

    Parameters
    ----------
    choose : puts the plans in order; the first that is worth its price runs next.
    belief : what is believed before anything is read, over ``system.frame`` and
        ``hypotheses``, where several studies share it; built here by default.
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
        choose: Chooser = gain_per_price,
        belief: Belief | None = None,
    ) -> None:
        self.name = name
        self.choose = choose
        self.system = system
        self.hypotheses = {h.name: h for h in hypotheses}
        self.policy = policy
        self.seed = seed
        self.target: Target = target
        self._ledger = ledger
        self._id = ledger.create_study(name, dict(spec or {}))
        prior = prior_probabilities(hypotheses, system.frame.intent)
        belief = belief or starting_belief(hypotheses, system.frame, seed)
        self.priors = prior | belief.probabilities()  # composites asleep count to their causes
        self._knows = Knowledge(belief, policy.decide_at)
        self._approved: frozenset[str] = frozenset()
        self._exhausted = ""
        self._sync()

    # -- state -----------------------------------------------------------------------

    @property
    def frame(self) -> Frame:
        """Conditions, stages and cells that the study speaks about."""
        return self._knows.frame

    def _sync(self) -> None:
        """Take in what the ledger holds and this process has not seen yet."""
        history = self._ledger.history(self._id)
        self._approved = frozenset(
            str(payload["plan"]) for _, kind, payload in history.events if kind == APPROVED_PLAN
        )
        for run in history.ended:
            if run.number not in self._knows.runs:
                self._adopt(self._knows.after(run))

    def _adopt(self, knowledge: Knowledge) -> None:
        """Take what the ledger holds by now for this process's own."""
        self._knows = knowledge
        self._exhausted = ""

    @property
    def spent_s(self) -> float:
        """Price paid so far, in seconds of the target's time."""
        return self._knows.spent_s

    def _done(self) -> tuple[str, ...]:
        return self._knows.done(self.policy.unattended_failures)

    # -- ask -------------------------------------------------------------------------

    def score(self) -> list[ScoredPlan]:
        """Every plan with its expected gain and price, best first."""
        return score_plans(
            self.system,
            self._knows,
            self._done(),
            self._means(),
            target=self.target,
            choose=self.choose,
        )

    def _means(self) -> Means:
        runs = self._knows.runs.values()
        return Means(
            self.policy,
            self.policy.budget_s - self.spent_s,
            self._approved,
            None if self.system.exact_prices else learned_prices(runs),
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
        worth = worth_running(scored, self.policy)
        if lacks_comparison(self._stand()):
            worth = confirming(self.frame, scored) or worth
        if not worth:
            self._exhausted = why_nothing(scored, self.policy)
            return []
        chosen = one_a_plan(after_a_failure(worth, self._knows.last))[:n]
        return [self._propose(s, scored) for s in chosen]

    def _propose(self, best: ScoredPlan, scored: Sequence[ScoredPlan]) -> Proposal:
        proposal = proposal_of(
            best,
            scored,
            question=self.system.describe(best.plan),
            target=self.target,
            predictions=predictions(self._knows.belief, best.measurements),
        )
        return self._ledger.propose(self._id, proposal)

    # -- run and tell ------------------------------------------------------------------

    def execute(self, proposal: Proposal) -> Run:
        """Run a proposal. A probe that fails gives a FAILED run and never loses the study.

        Raises
        ------
        UsageError : another process is running it, or it has ended.
        """
        with self._ledger.working(self._id, proposal.run) as lease:
            run, knows = measure(
                self.system,
                self._knows,
                proposal,
                done=self._done(),
                harm=self.policy.harm,
                seed=int(np.random.SeedSequence([self.seed, proposal.run]).generate_state(1)[0]),
            )
            self._ledger.finish(lease, run)
        self._adopt(knows.counting(run))
        return run

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
        samples = samples_told(self.frame, values, condition, stage)
        blank = told_run(
            samples,
            number=run or 0,
            seconds=seconds,
            perturbation=perturbation,
            harm=self.policy.harm,
        )
        if run is None:
            told, knows = hear(self._knows, blank, samples)
            told = self._ledger.tell(self._id, told)
        else:
            proposed = self._ledger.history(self._id).proposals
            if run not in proposed:
                raise UnknownName("proposal", str(run), map(str, proposed))
            with self._ledger.working(self._id, run) as lease:
                told, knows = hear(self._knows, blank, samples)
                self._ledger.finish(lease, told)
            told = replace(told, proposal=proposed[run])
        self._adopt(knows.counting(told))
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
        return self._knows.belief.probabilities()

    def _stand(self) -> Standing:
        return Standing(
            frame=self.frame,
            hypotheses=self.hypotheses,
            probabilities=self.probabilities(),
            runs=tuple(self._knows.runs.values()),
            readings=self._knows.measured,
            policy=self.policy,
            spent_s=self.spent_s,
            exhausted=self._exhausted,
        )

    def verdict(self) -> Verdict:
        """How the study stands now."""
        self._sync()
        found = judge(self._stand())
        if found.status is Status.DECIDED:
            shares = effects_of(self._knows.belief, found.causes)
            found = replace(found, shares=shares, predicted_effect=effect_in_words(shares))
        return found

    def why(self, run: int) -> Run:
        """One run with its reason, prediction, reading and change of belief.

        Raises
        ------
        UnknownName : there is no such run.
        """
        self._sync()
        if run not in self._knows.runs:
            raise UnknownName("run", str(run), map(str, self._knows.runs))
        return self._knows.runs[run]

    def posterior(self) -> xr.DataTree:
        """Posterior draws by hypothesis, probabilities and log evidence, as a DataTree."""
        return self._knows.belief.datatree()

    def view(self) -> StudyView:
        """Everything that a report shows."""
        return view_of(self, self._ended(), created=self._ledger.study(self.name).created_at)

    def _ended(self) -> tuple[Run, ...]:
        return tuple(run for _, run in sorted(self._knows.runs.items()))

    def pairs(self, most: int = 4) -> tuple[Pair, ...]:
        """The probe that best parts each pair of the ``most`` probable hypotheses."""
        ranked = sorted(self.probabilities().items(), key=lambda item: -item[1])
        plans = [s for s in self.score() if s.measurements and not s.opens]
        return best_separations(self._knows.belief, plans, [name for name, _ in ranked[:most]])

    def report(self, path: str | Path) -> Path:
        """Write the HTML report and, beside it, the posterior as NetCDF (``.nc``).

        Raises
        ------
        StorageError : a file cannot be written.
        """
        return write_report(self.view(), self.posterior(), path)

    def runs_dataframe(self) -> pd.DataFrame:
        """One row per run: number, state, probe, price, gained bits, leading explanation."""
        return dataframe(self._ended())

    def close(self) -> None:
        """End the workload's processes and close the ledger."""
        self.system.close()
        self._ledger.close()

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
