"""The cheapest way to a decision, exactly, where all outcomes can be counted.

A `FiniteProbe` has finitely many outcomes, independent of the other probes' given the
hypothesis, and is run at most once. A state is what each probe that was run has read; there
are at most ``prod(1 + outcomes)`` of them, which limits this to about ten probes. Policies
and the optimum stop by the same rule, so that their prices can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import fsum, log2, prod
from typing import Any

import numpy as np

from argus_bed.design.gain import Gain
from argus_bed.design.policies import Chooser, Option, Predictive
from argus_bed.errors import ValueRejected

Array = np.ndarray[Any, np.dtype[np.float64]]
State = tuple[int, ...]
"""Outcome of each probe, -1 where it has not been run."""

MAX_STATES = 200_000


@dataclass(frozen=True)
class FiniteProbe:
    """A probe whose outcomes can be counted.

    likelihood : rows are outcomes, columns hypotheses; each column sums to one.
    """

    key: str
    price_s: float
    likelihood: tuple[tuple[float, ...], ...]
    kind: str = ""
    perturbation: float = 0.0


@dataclass(frozen=True)
class Outlook:
    """What a way of choosing is expected to bring.

    price_s : expected seconds until it stops.
    decided : probability that it stops because one hypothesis is accepted.
    right : probability that this is the true one.
    """

    price_s: float
    decided: float
    right: float


def outlook(
    prior: Sequence[float],
    probes: Sequence[FiniteProbe],
    choose: Chooser,
    *,
    decide_at: float = 0.95,
    min_gain_bits: float = 0.02,
) -> Outlook:
    """What ``choose`` is expected to cost and bring, by enumeration of all outcomes.

    It runs until one hypothesis has ``decide_at`` or no probe tells ``min_gain_bits``.

    Raises
    ------
    ValueRejected : too many states to enumerate, or a likelihood that is none.
    """

    def first(options: list[Option], _: Callable[[Option], Outlook]) -> Option:
        return choose(options)[0]

    return _search(prior, probes, decide_at, min_gain_bits, first)


def optimum(
    prior: Sequence[float],
    probes: Sequence[FiniteProbe],
    *,
    decide_at: float = 0.95,
    min_gain_bits: float = 0.02,
) -> Outlook:
    """The least expected price of any policy that stops by the rule of `outlook`.

    Dynamic programming over all states (Bellman, 1957). Raises as `outlook` does.
    """

    def cheapest(options: list[Option], ahead: Callable[[Option], Outlook]) -> Option:
        return min(options, key=lambda o: (o.price_s + ahead(o).price_s, o.key))

    return _search(prior, probes, decide_at, min_gain_bits, cheapest)


def _search(
    prior: Sequence[float],
    probes: Sequence[FiniteProbe],
    decide_at: float,
    min_gain_bits: float,
    pick: Callable[[list[Option], Callable[[Option], Outlook]], Option],
) -> Outlook:
    states = prod(1 + len(p.likelihood) for p in probes)
    if states > MAX_STATES:
        raise ValueRejected(f"{states} states of {len(probes)} probes: at most {MAX_STATES}")
    tables = {p.key: np.asarray(p.likelihood, dtype=float) for p in probes}
    place = {p.key: i for i, p in enumerate(probes)}
    if len(place) < len(probes):
        raise ValueRejected(f"probes {[p.key for p in probes]}: each key once")
    for probe in probes:
        Predictive.of(prior, probe.likelihood)  # says what is wrong with it
    seen: dict[State, Outlook] = {}

    def visit(state: State, belief: Array) -> Outlook:
        if state not in seen:
            seen[state] = settle(state, belief)
        return seen[state]

    def settle(state: State, belief: Array) -> Outlook:
        top = float(belief.max())
        if top >= decide_at:
            return Outlook(0.0, 1.0, top)
        options = [
            option
            for probe, outcome in zip(probes, state, strict=True)
            if outcome < 0 and (option := _option(probe, belief)).gain.bits >= min_gain_bits
        ]
        if not options:
            return Outlook(0.0, 0.0, 0.0)

        def ahead(option: Option) -> Outlook:
            return follow(option, state, belief)

        chosen = pick(options, ahead)
        rest = ahead(chosen)
        return Outlook(chosen.price_s + rest.price_s, rest.decided, rest.right)

    def follow(option: Option, state: State, belief: Array) -> Outlook:
        """The mean over the outcomes of ``option`` of what comes after it."""
        i = place[option.key]
        price = decided = right = 0.0
        for outcome, row in enumerate(tables[option.key]):
            joint = row * belief
            weight = float(joint.sum())
            if weight <= 0:
                continue
            after = visit((*state[:i], outcome, *state[i + 1 :]), joint / weight)
            price += weight * after.price_s
            decided += weight * after.decided
            right += weight * after.right
        return Outlook(price, decided, right)

    start = np.asarray(prior, dtype=float)
    return visit((-1,) * len(probes), start / start.sum())


def _option(probe: FiniteProbe, belief: Array) -> Option:
    table = Predictive.of(belief, probe.likelihood)
    return Option(
        probe.key,
        Gain(_bits(table), 0.0, "enumeration"),
        probe.price_s,
        probe.perturbation,
        probe.kind,
        partial(Predictive.of, belief, probe.likelihood),
    )


def _bits(table: Predictive) -> float:
    """I(H; Y): the entropy of the hypotheses less its mean after the outcome."""

    def entropy(p: Array) -> float:
        return -fsum(x * log2(x) for x in p.tolist() if x > 0)

    after = [float(w) * entropy(row) for w, row in zip(table.weight, table.posterior, strict=True)]
    return max(0.0, entropy(table.prior) - fsum(after))
