"""What a report is made from: plain data, filled by the study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from argus_bed.errors import UnknownName
from argus_bed.records import Prediction, ReadingRecord, Run, RunState, Verdict
from argus_bed.report.worth import ProbeWorth, by_probe

OVER = (RunState.DONE, RunState.FAILED, RunState.VOID)


@dataclass(frozen=True)
class HypothesisText:
    """One rival explanation: its claim, the part it blames, its probability at the start."""

    claim: str
    part: str
    prior: float


@dataclass(frozen=True)
class SignalText:
    """What a probe says of itself, whatever it reads."""

    question: str
    establishes: str
    leaves_open: str
    level: str = ""
    locality: str = ""
    objective_check: str = ""
    disturbance: str = ""


@dataclass(frozen=True)
class Pair:
    """How well two hypotheses can be told apart, and by which plan best.

    separation_bits : information that the plan gives about which of the two it is,
        0 (none) to 1 (settled), both taken as equally likely.
    reading, expected : a reading of that plan, and what the two expect of it: (mean, sd)
        in link space each, the first hypothesis first.
    """

    first: str
    second: str
    plan: str
    separation_bits: float
    price_s: float | None = None
    reading: str = ""
    expected: tuple[tuple[float, float], tuple[float, float]] | None = None


@dataclass(frozen=True)
class StudyView:
    """One study as a report shows it.

    Parameters
    ----------
    name, question, metric : what is asked, of what, in which quantity.
    hypotheses : by name, in the order in which they were given.
    runs : in the order of their numbers, unfinished ones included.
    verdict : how the study stands now.
    created : seconds since the epoch; None leaves the date out of the report.
    conditions : by name, in words: the two arms first.
    spent_s, budget_s : seconds of the target's time; no budget is None.
    signals : by probe name, for the probes that were used.
    pairs : separation of pairs, if the study computed it.
    floor : the smallest difference that A/A runs could show, in words.
    validation : what `validate` found, in words; empty if it was not run.
    """

    name: str
    question: str
    metric: str
    hypotheses: Mapping[str, HypothesisText]
    runs: tuple[Run, ...]
    verdict: Verdict
    created: float | None = None
    conditions: Mapping[str, str] = field(default_factory=dict)
    spent_s: float = 0.0
    budget_s: float | None = None
    signals: Mapping[str, SignalText] = field(default_factory=dict)
    pairs: tuple[Pair, ...] = ()
    floor: str = ""
    validation: str = ""
    version: str = ""

    @cached_property
    def prior(self) -> dict[str, float]:
        """Probability of each hypothesis before anything was read."""
        return {name: h.prior for name, h in self.hypotheses.items()}

    @cached_property
    def beliefs(self) -> tuple[tuple[int, Mapping[str, float]], ...]:
        """(run number, probabilities after it), the prior first under number 0."""
        return ((0, self.prior), *((r.number, r.after) for r in self.runs if r.after))

    @property
    def now(self) -> Mapping[str, float]:
        """Probability of each hypothesis after the last run."""
        return self.beliefs[-1][1]

    @cached_property
    def ranked(self) -> tuple[str, ...]:
        """Names of the hypotheses, most probable first."""
        names = dict.fromkeys((*self.hypotheses, *self.now))
        return tuple(sorted(names, key=lambda n: (-self.now.get(n, 0.0), n)))

    @cached_property
    def ended(self) -> tuple[Run, ...]:
        """Runs that ended: done, failed or void."""
        return tuple(r for r in self.runs if r.state in OVER)

    @cached_property
    def probes(self) -> tuple[ProbeWorth, ...]:
        """What each probe told for what it cost."""
        return by_probe(self.runs)

    def run(self, number: int) -> Run:
        """The run with this number. Raises `UnknownName`."""
        for run in self.runs:
            if run.number == number:
                return run
        raise UnknownName("run", str(number), (str(r.number) for r in self.runs))


def compared(run: Run) -> tuple[tuple[Prediction, ReadingRecord | None], ...]:
    """Each prediction of a run beside the reading it was about, None if it was not read."""
    if run.proposal is None:
        return ()
    read = {r.text: r for r in run.readings}
    return tuple((p, read.get(p.reading)) for p in run.proposal.predictions)
