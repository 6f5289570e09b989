"""Ways to choose the next measurement, all through one interface.

A `Chooser` is a pure function: it sees the `Option` of every plan that could run now (what
it tells, costs and disturbs, what kind of probe it is, what each hypothesis expects of its
outcomes) and puts them in order, best first. It sees no outcome and no engine. The study
chooses by `gain_per_price`; the others are there to be compared with it.

A study asks its chooser for an order and takes the first plan that is expected to tell
enough to be worth running. That rule is the same for every policy, and it is generous to
those that do not look at gains: they are spared the measurements that would tell nothing.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from argus_bed.design.price import Scored, order
from argus_bed.design.price import score as per_second
from argus_bed.errors import UnknownName, ValueRejected

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Predictive:
    """What the hypotheses expect of one plan, at a set of outcomes that stands for all.

    Attributes
    ----------
    prior : (hypotheses,), sums to one.
    weight : (outcomes,), probability of each outcome, sums to one.
    posterior : (outcomes, hypotheses), each row sums to one.
    """

    prior: Array
    weight: Array
    posterior: Array

    @classmethod
    def of(cls, prior: Sequence[float] | Array, likelihood: Sequence[Any] | Array) -> Predictive:
        """From finite outcomes.

        Parameters
        ----------
        prior : (hypotheses,). likelihood : (outcomes, hypotheses), each column sums to one.

        Raises
        ------
        ValueRejected : a column that is no distribution, or as many columns as hypotheses
            are missing.
        """
        p = np.asarray(prior, dtype=float)
        table = np.asarray(likelihood, dtype=float)
        if table.ndim != 2 or table.shape[1] != len(p):
            raise ValueRejected(
                f"likelihood of shape {table.shape}: outcomes x {len(p)} hypotheses"
            )
        if (table < 0).any() or not np.allclose(table.sum(0), 1.0):
            raise ValueRejected(f"likelihood = {table.tolist()}: each column must sum to one")
        joint = table * p
        weight = joint.sum(1)
        kept = weight > 0
        return cls(p, weight[kept], joint[kept] / weight[kept, None])


@dataclass(frozen=True)
class Option(Scored):
    """What a policy may see of a plan.

    key, gain, price_s, perturbation : see `Scored`.
    kind : kind of its probe, such as ``end_to_end`` or ``full_trace``.
    predictive : computes what the hypotheses expect of its outcomes; None if nobody can.
    """

    kind: str = ""
    predictive: Callable[[], Predictive] | None = field(default=None, compare=False, repr=False)


Chooser = Callable[[Sequence[Option]], list[Option]]
"""Puts all options in order, best first. Same options, same order."""


def gain_per_price(options: Sequence[Option]) -> list[Option]:
    """Bits per second; what the estimates cannot part goes by how little it disturbs."""
    return order(options)


def gain_alone(options: Sequence[Option]) -> list[Option]:
    """The most informative first, whatever it costs."""
    return sorted(options, key=lambda o: (-o.gain.bits, o.price_s, o.perturbation, o.key))


def cheapest_first(options: Sequence[Option]) -> list[Option]:
    """By price alone."""
    return sorted(options, key=_cheap)


def at_random(seed: int) -> Chooser:
    """Every order equally likely; fixed by ``seed`` and by which options there are."""

    def choose(options: Sequence[Option]) -> list[Option]:
        listed = sorted(options, key=lambda o: o.key)
        present = zlib.crc32("\n".join(o.key for o in listed).encode())
        mixed = np.random.default_rng([seed, present]).permutation(len(listed))
        return [listed[i] for i in mixed]

    return choose


RULES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("what costs nothing", ("bound_check", "environment_check", "self_report")),
    (
        "counters that are there anyway",
        ("framework_counters", "rusage_counters", "gc_callbacks", "gil_ticks"),
    ),
    ("is there an effect at all", ("end_to_end", "paired_end_to_end")),
    ("where the time goes", ("stage_timer", "event_pair", "clock_power_sampling")),
    ("the part by itself", ("microbenchmark_hot", "microbenchmark_cold")),
    ("is the result still right", ("numeric_check", "correctness_check")),
    ("a short window of the trace", ("profiler_window", "torch_profiler_window")),
    ("turn one knob", ("controlled_variant", "delay_injection")),
    ("everything, whatever it disturbs", ("full_trace", "hardware_counters")),
)
"""What a careful expert does, in this order: what is free, what is near free, whether there
is anything to explain, and only then what costs more and disturbs more."""

UNKNOWN_KIND = 6
"""A kind that no rule names comes where the first rule stands that disturbs the target."""

TRACES = ("full_trace", "torch_profiler_window", "profiler_window")
DELAYS = ("delay_injection",)


def rule_list(options: Sequence[Option]) -> list[Option]:
    """By `RULES`, and within a rule by price."""
    return sorted(options, key=lambda o: (_rule(o.kind), *_cheap(o)))


def full_trace_first(options: Sequence[Option]) -> list[Option]:
    """Record everything, then what the rules say."""
    return _kinds_first(options, TRACES)


def delay_every_stage(options: Sequence[Option]) -> list[Option]:
    """Delay one stage after another, as a causal profiler does (Curtsinger and Berger,
    SOSP 2015), then what the rules say.
    """
    return _kinds_first(options, DELAYS)


def edge_cutting(options: Sequence[Option]) -> list[Option]:
    """Expected weight of edges between hypotheses that a plan cuts, by its price.

    Equivalence-class edge cutting with costs, the hypotheses as classes and their
    particles as realizations, in the form for noisy tests (`edges_cut_noisy`). An option
    whose outcomes nobody can predict comes after those, by its gain per price.
    """

    def rank(option: Option) -> tuple[bool, float, float, float, str]:
        known = option.predictive is not None
        cut = edges_cut_noisy(option.predictive()) if option.predictive else option.gain.bits
        return (not known, -per_second(cut, option.price_s), -cut, option.price_s, option.key)

    return sorted(options, key=rank)


def edges_cut(table: Predictive) -> float:
    """Expected weight of the edges that a test with finitely many outcomes cuts.

    The objective of EC2 (Golovin, Krause and Ray, 2010, Advances in Neural Information
    Processing Systems 23): an edge joins realizations of two different classes and weighs
    the product of their probabilities, and an outcome cuts the edges of all realizations
    that it rules out. A noisy outcome is a part of its realization, so that an outcome y
    leaves the mass p(h) p(y|h) of class h:

        sum_{h<h'} p(h) p(h') - sum_y p(y) sum_{h<h'} p(h, y) p(h', y)

    It counts as cut what noise alone parts, and so grows without limit to the full weight
    as outcomes are told apart more finely; for continuous readings use `edges_cut_noisy`.
    """
    left = table.weight**3 * _between(table.posterior)
    return float(_between(table.prior) - left.sum())


def edges_cut_noisy(table: Predictive) -> float:
    """Expected weight that the edges lose when the classes' weights are their posterior.

    The objective that Golovin, Krause and Ray (2010, section 5) use where tests are noisy
    and realizations many (EffECXtive): ``sum_y p(y) sum_h p(h|y)^2 - sum_h p(h)^2``, twice
    the edge weight lost. Outcomes that the hypotheses do not disagree on cut nothing.
    """
    after = table.weight @ (table.posterior**2).sum(1)
    return float(after - (table.prior**2).sum())


def _between(p: Array) -> Any:
    """Sum of the products of two different entries of the last axis."""
    return 0.5 * (p.sum(-1) ** 2 - (p**2).sum(-1))


POLICIES: dict[str, Chooser] = {
    "gain_per_price": gain_per_price,
    "gain_alone": gain_alone,
    "cheapest_first": cheapest_first,
    "full_trace_first": full_trace_first,
    "rule_list": rule_list,
    "delay_every_stage": delay_every_stage,
    "edge_cutting": edge_cutting,
}
"""Every policy by name but `at_random`, which needs a seed: see `policy`."""


def policy(name: str, seed: int = 0) -> Chooser:
    """A policy by name; ``random`` is `at_random` with ``seed``.

    Raises
    ------
    UnknownName : there is no policy of that name.
    """
    if name == "random":
        return at_random(seed)
    if name not in POLICIES:
        raise UnknownName("policy", name, (*POLICIES, "random"))
    return POLICIES[name]


def _cheap(option: Option) -> tuple[float, float, str]:
    return (option.price_s, option.perturbation, option.key)


def _rule(kind: str) -> int:
    return next((i for i, (_, kinds) in enumerate(RULES) if kind in kinds), UNKNOWN_KIND)


def _kinds_first(options: Iterable[Option], kinds: Sequence[str]) -> list[Option]:
    """Options of ``kinds`` in that order, then the others by the rules."""

    def rank(option: Option) -> tuple[int, int, float, float, str]:
        place = kinds.index(option.kind) if option.kind in kinds else len(kinds)
        return (place, _rule(option.kind), *_cheap(option))

    return sorted(options, key=rank)
