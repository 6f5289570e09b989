"""What a study leaves behind: proposals, runs, verdicts. Plain data, JSON both ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class RunState(StrEnum):
    """Life of a run. STALE: the process died while it ran; it is offered again."""

    PROPOSED = "proposed"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    VOID = "void"
    STALE = "stale"


class Status(StrEnum):
    """How a study ends, or that it goes on."""

    OPEN = "open"
    DECIDED = "decided"
    NO_EFFECT = "no_effect"
    UNDETERMINED = "undetermined"
    MODEL_INADEQUATE = "model_inadequate"
    OUT_OF_BUDGET = "out_of_budget"


@dataclass(frozen=True)
class Prediction:
    """What each hypothesis expects of one reading, in link space: mean and sd."""

    reading: str
    by_hypothesis: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class PriceBasis:
    """What an expected price was made from when a run was chosen.

    announced_s : seconds that the probe announced for this plan.
    expected_s : seconds of a run that works, by what earlier runs of the probe took.
    announced_perturbation, perturbation : share by which a step gets longer meanwhile, as
        announced, and as expected from what earlier runs measured.
    fails, failing_s : probability that the run fails, and the seconds that it takes then.
    runs, failures : of the probe in this study, before this run.
    source : where the announced figures come from.
    """

    announced_s: float
    expected_s: float
    announced_perturbation: float = 0.0
    perturbation: float = 0.0
    fails: float = 0.0
    failing_s: float = 0.0
    runs: int = 0
    failures: int = 0
    source: str = "assumption"


@dataclass(frozen=True)
class Proposal:
    """A chosen plan with the reason for it, stored before it runs.

    gain_bits, gain_error : expected information about the target and its Monte Carlo error.
    price_s : expected seconds, harm and failures included. ``score`` is gain over price,
        bits per second.
    basis : what the price was made from; None in ledgers of before prices were learned.
    runners_up : (plan key, gain bits, price s, score) of the next best, best first.
    """

    run: int
    plan: str
    probe: str
    settings: Mapping[str, Any]
    conditions: tuple[str, ...]
    question: str
    gain_bits: float
    gain_error: float
    price_s: float
    perturbation: float
    score: float
    reason: str
    target: str = "cause"
    predictions: tuple[Prediction, ...] = ()
    runners_up: tuple[tuple[str, float, float, float], ...] = ()
    tied_with: tuple[str, ...] = ()
    risk: str = "none"
    needs_approval: bool = False
    basis: PriceBasis | None = None


@dataclass(frozen=True)
class ReadingRecord:
    """One reading as it entered the likelihood.

    value, noise : link space. ``shown`` is the value as a person would say it, with unit.
    """

    text: str
    quantity: str
    condition: str
    against: str | None
    stage: str | None
    value: float
    noise: float
    shown: str
    used: bool = True
    why_not: str = ""
    benign: float = 0.0
    coincidence: float = 0.0
    dof: float = 4.0
    family: str = "student"


@dataclass(frozen=True)
class Run:
    """One execution of a proposal, or something that was told by hand.

    before, after : probability of each hypothesis. ``bits`` is the change of each one's
    log2 odds-free evidence relative to the mixture; ``gained_bits`` the information
    actually gained about the cause, KL(after || before) in bits.
    """

    number: int
    state: RunState
    proposal: Proposal | None
    readings: tuple[ReadingRecord, ...] = ()
    samples: tuple[Mapping[str, Any], ...] = ()
    before: Mapping[str, float] = field(default_factory=dict)
    after: Mapping[str, float] = field(default_factory=dict)
    bits: Mapping[str, float] = field(default_factory=dict)
    gained_bits: float = 0.0
    price_s: float = 0.0
    seconds: float = 0.0
    overhead: float | None = None
    error: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)
    source: str = "probe"  # probe, told, recorded
    surprise: float | None = None  # posterior predictive p-value of what was read


@dataclass(frozen=True)
class EffectShare:
    """What a cause takes of the candidate's step: median and 89 % interval.

    confounded : only the sum over the causes of a verdict is known, not their shares.
    """

    cause: str
    low: float
    median: float
    high: float
    confounded: bool = False


@dataclass(frozen=True)
class Verdict:
    """How the study stands.

    causes : (name, probability), most probable first; one or two names if decided.
    evidence : numbers of the runs that moved the belief, most telling first.
    """

    status: Status
    causes: tuple[str, ...]
    probability: float
    ranking: tuple[tuple[str, float], ...]
    why: str
    establishes: tuple[str, ...]
    leaves_open: tuple[str, ...]
    evidence: tuple[int, ...]
    next_action: str
    part: str = ""
    price_s: float = 0.0
    runs: int = 0
    predicted_effect: str = ""
    shares: tuple[EffectShare, ...] = ()
