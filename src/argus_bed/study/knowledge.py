"""What a study knows: its belief and everything that was read. A value, never changed.

The engine computes the next value, stores the run that led to it, and only then takes it
for its own: a ledger that refuses leaves the process where the ledger is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from argus_bed.frame import Cell, Frame
from argus_bed.hypothesis import Hypothesis, prior_probabilities
from argus_bed.inference.belief import Belief
from argus_bed.probe import Measurement, Reading, Sample
from argus_bed.records import ReadingRecord, Run, RunState
from argus_bed.study.readings import Read, to_readings
from argus_bed.study.scatter import UNSEEN, Scatter
from argus_bed.study.telling import record_of, to_samples
from argus_bed.study.verdict import unconsidered


@dataclass(frozen=True)
class Knowledge:
    """A belief with the runs that it rests on.

    decide_at : probability at which a cause would be accepted; before one is, the
        composites that hold it are woken.
    runs : ended ones by number.
    known : latest sample of each cell, of those least in doubt.
    measured : what entered the likelihood, in the order of reading.
    scatter : how far single readings were seen to scatter.
    """

    belief: Belief
    decide_at: float
    runs: Mapping[int, Run] = field(default_factory=dict)
    known: Mapping[Cell, Sample] = field(default_factory=dict)
    measured: tuple[Measurement, ...] = ()
    scatter: Scatter = UNSEEN

    @property
    def frame(self) -> Frame:
        """The cells that the models speak about."""
        return self.belief.frame

    @property
    def spent_s(self) -> float:
        """Price paid so far, in seconds of the target's time."""
        return math.fsum(run.price_s for run in self.runs.values())

    @property
    def last(self) -> Run | None:
        """The newest run."""
        return self.runs[max(self.runs)] if self.runs else None

    def done(self, failures: int) -> tuple[str, ...]:
        """Probes that have been run; and keys of plans that failed so often."""
        tried = [(r, r.proposal) for r in self.runs.values() if r.proposal is not None]
        worked = [p.probe for r, p in tried if r.state is RunState.DONE]
        failed = [p.plan for r, p in tried if r.state is not RunState.DONE]
        return (*worked, *{p: None for p in failed if failed.count(p) >= failures})

    def covering(self, cells: Iterable[Cell]) -> Knowledge:
        """The same with models that speak about ``cells`` too; their belief is built anew."""
        missing = [c for c in cells if c not in self.frame.cell_index]
        if not missing:
            return self
        belief = self.belief.over(self.frame.with_cells(missing))
        for run in self.runs.values():
            if run.state is RunState.DONE:
                belief = self._updated(belief, _used(run))
        return replace(self, belief=belief)

    def _updated(self, belief: Belief, readings: Iterable[Reading]) -> Belief:
        belief = belief.update(readings)
        while names := unconsidered(belief, self.decide_at):
            belief = belief.wake(names)
        return belief

    def counting(self, run: Run) -> Knowledge:
        """The same with ``run`` among the runs; the belief has seen its readings."""
        return replace(self, runs={**self.runs, run.number: run})

    def after(self, run: Run) -> Knowledge:
        """What is known once an ended run of the ledger is taken in."""
        if run.state is not RunState.DONE:
            return self.counting(run)
        samples = to_samples(run.samples)
        readings = _used(run)
        wide = self.covering(s.cell for s in samples)
        belief = wide._updated(wide.belief, readings)
        return wide._read(belief, readings, samples).counting(run)

    def learn(
        self,
        run: Run,
        measurements: Iterable[Measurement],
        samples: Sequence[Sample],
        dropped: Iterable[Measurement] = (),
    ) -> tuple[Run, Knowledge]:
        """``run`` with what ``samples`` say about the causes, and what is known then.

        The run is not among the runs yet: the ledger gives it its number.

        dropped : planned readings that the instrument voids.
        """
        reads = to_readings(self.frame, measurements, samples, self.known, self.scatter)
        reads += [Read(m, None, why_not="the instrument voids it") for m in dropped]
        readings = [r.reading for r in reads if r.reading is not None]
        belief = self._updated(self.belief, readings)
        after = belief.probabilities()
        before = self.belief.probabilities(apart=after)  # what woke up was asleep then
        change = {h: belief.log_evidence[h] - self.belief.log_evidence[h] for h in after}
        overall = math.log(math.fsum(before[h] * math.exp(change[h]) for h in before) or 1e-300)
        learned = replace(
            run,
            readings=tuple(record_of(r) for r in reads),
            before=before,
            after=after,
            bits={h: (c - overall) / math.log(2) for h, c in change.items()},
            gained_bits=divergence(after, before),
            surprise=self.belief.predictive_p(readings) if readings else None,
        )
        return learned, self._read(belief, readings, samples)

    def _cleaner(self, sample: Sample) -> bool:
        """Whether a sample is worth keeping in place of the one of its cell."""
        old = self.known.get(sample.cell)
        return old is None or sample.doubt <= old.doubt

    def _read(
        self, belief: Belief, readings: Iterable[Reading], samples: Iterable[Sample]
    ) -> Knowledge:
        return replace(
            self,
            belief=belief,
            known={**self.known, **{s.cell: s for s in samples if self._cleaner(s)}},
            measured=(*self.measured, *(r.measurement for r in readings)),
            scatter=self.scatter.after(samples),
        )


def starting_belief(hypotheses: Sequence[Hypothesis], frame: Frame, seed: int) -> Belief:
    """What a study over ``frame`` believes before anything is read; composites sleep.

    Raises
    ------
    InferenceError : a model cannot be converted.
    """
    return Belief(
        [h for h in hypotheses if len(h.causes) == 1],
        frame,
        seed=seed,
        prior=prior_probabilities(hypotheses, frame.intent),
        asleep=[h for h in hypotheses if len(h.causes) > 1],
    )


def divergence(after: Mapping[str, float], before: Mapping[str, float]) -> float:
    """KL(after || before) in bits: what was learned about the cause."""
    return max(
        0.0, math.fsum(p * math.log2(p / max(before[h], 1e-300)) for h, p in after.items() if p > 0)
    )


def _used(run: Run) -> list[Reading]:
    """The readings of a stored run that entered the likelihood."""
    return [_reading(r) for r in run.readings if r.used]


def _reading(record: ReadingRecord) -> Reading:
    cell = Cell(record.quantity, record.condition, record.stage)
    against = Cell(record.quantity, record.against, record.stage) if record.against else None
    family: Any = record.family
    measurement = Measurement(
        cell, against, record.noise, record.benign, record.coincidence, record.dof, family
    )
    return Reading(measurement, record.value)
