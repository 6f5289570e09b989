"""From a proposal, or a person's word, to a run and what is known after it.

Nothing is stored here and nothing is taken in: the engine does both, in that order.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from argus_bed.contrast import planned_readings
from argus_bed.design.price import price_of
from argus_bed.errors import ProbeError, UnknownName
from argus_bed.probe import Observation, Plan, Price, Sample
from argus_bed.records import Proposal, Run, RunState
from argus_bed.study.knowledge import Knowledge
from argus_bed.study.readings import disturbed, doubted
from argus_bed.study.system import System
from argus_bed.study.telling import samples_of


def measure(
    system: System,
    knows: Knowledge,
    proposal: Proposal,
    *,
    done: Iterable[str],
    harm: float,
    seed: int,
) -> tuple[Run, Knowledge]:
    """Carry a proposal out. A probe that fails gives a FAILED run with what it cost.

    done : what the system is told was run or spoilt.
    harm : seconds lost per second for which the target is disturbed.
    """
    plans = {p.key: p for p in system.plans(knows.known, done)}
    if proposal.plan not in plans:
        gone = UnknownName("plan", proposal.plan, plans)
        return _failed(knows, proposal, gone, 0.0, harm), knows
    plan = plans[proposal.plan]
    started = time.monotonic()
    try:
        observation = system.execute(plan, seed)
    except ProbeError as error:
        return _failed(knows, proposal, error, time.monotonic() - started, harm), knows
    return _digest(system, knows, proposal, plan, observation, harm)


def _failed(
    knows: Knowledge, proposal: Proposal, error: Exception, seconds: float, harm: float
) -> Run:
    belief = knows.belief.probabilities()
    return Run(
        number=proposal.run,
        state=RunState.FAILED,
        proposal=proposal,
        before=belief,
        after=belief,
        price_s=price_of(Price(0.0, seconds, proposal.perturbation), harm=harm),
        seconds=seconds,
        error=str(error),
    )


def _digest(
    system: System,
    knows: Knowledge,
    proposal: Proposal,
    plan: Plan,
    observation: Observation,
    harm: float,
) -> tuple[Run, Knowledge]:
    effects = system.side_effects(plan)
    known = {**knows.known, **{s.cell: s for s in observation.samples}}
    kept = disturbed(plan.measurements, effects, known)
    samples = doubted(observation.samples, effects, known)
    seconds, overhead = observation.seconds, observation.overhead
    lost = proposal.perturbation if overhead is None else max(overhead, 0.0)
    run = Run(
        number=proposal.run,
        state=RunState.DONE,
        proposal=proposal,
        samples=samples_of(samples),
        price_s=price_of(Price(0.0, seconds, lost), harm=harm),
        seconds=seconds,
        overhead=overhead,
        environment=dict(observation.environment),
        source="recorded" if observation.environment.get("recorded") else "probe",
    )
    dropped = [m for m in plan.measurements if m.key not in {k.key for k in kept}]
    return knows.learn(run, kept, samples, dropped)


def hear(knows: Knowledge, told: Run, samples: Sequence[Sample]) -> tuple[Run, Knowledge]:
    """Take what a person read, in whatever cells that was."""
    wide = knows.covering(s.cell for s in samples)
    here = {s.cell: len(s.values) for s in samples}
    return wide.learn(told, planned_readings(wide.frame, here, wide.known), samples)
