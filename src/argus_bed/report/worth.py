"""What was told for what it cost: bits by run and by probe, a second, and a second lost.

Disturbance is counted in seconds that the target lost to it: the share by which a step got
longer, times the seconds for which it was measured. Bits by nothing are None, never NaN
or infinity.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from argus_bed.design.price import learned_prices
from argus_bed.records import Run, RunState


@dataclass(frozen=True)
class Worth:
    """Bits about the cause, and what they cost.

    expected_bits, expected_price_s : when the run was chosen; None if it was told unasked.
    price_s : paid, in seconds of the target's time, harm included.
    lost_s : seconds that the target lost to the disturbance; None if nobody knows.
    """

    expected_bits: float | None
    gained_bits: float
    expected_price_s: float | None
    price_s: float
    lost_s: float | None
    expected_bits_per_s: float | None
    bits_per_s: float | None
    bits_per_lost_s: float | None


@dataclass(frozen=True)
class ProbeWorth:
    """All runs of one probe.

    runs, failures : that ended, and those of them that gave nothing.
    took_ratio : seconds of its next run over the announced ones, as learned from these;
        None where nothing was learned.
    fails : probability that its next run fails; None where prices are exact.
    """

    probe: str
    runs: int
    failures: int
    took_ratio: float | None
    fails: float | None
    worth: Worth


def worth_of(run: Run) -> Worth:
    """What one run told and cost."""
    return _worth([run])


def by_probe(runs: Iterable[Run]) -> tuple[ProbeWorth, ...]:
    """What every probe told and cost, in the order of first use.

    Results told by hand stand together under ``told``.
    """
    ended = [r for r in runs if r.state in (RunState.DONE, RunState.FAILED, RunState.VOID)]
    prices = learned_prices(r for r in ended if r.source != "recorded")
    grouped: dict[str, list[Run]] = {}
    for run in ended:
        asked = run.proposal is not None and run.source != "told"
        name = run.proposal.probe if asked and run.proposal else run.source
        grouped.setdefault(name, []).append(run)
    return tuple(
        ProbeWorth(
            probe=name,
            runs=len(found),
            failures=sum(r.state is not RunState.DONE for r in found),
            took_ratio=prices.ratio(name) if name in prices.worked else None,
            fails=prices.fails(name) if name in prices.ends else None,
            worth=_worth(found),
        )
        for name, found in grouped.items()
    )


def _worth(runs: Sequence[Run]) -> Worth:
    chosen = [r.proposal for r in runs if r.proposal is not None]
    expected = math.fsum(p.gain_bits for p in chosen) if chosen else None
    price = math.fsum(p.price_s for p in chosen) if chosen else None
    gained = math.fsum(r.gained_bits for r in runs)
    paid = math.fsum(r.price_s for r in runs)
    losses = [_lost_s(r) for r in runs]
    known = [s for s in losses if s is not None]
    lost = math.fsum(known) if known else None
    return Worth(
        expected_bits=expected,
        gained_bits=gained,
        expected_price_s=price,
        price_s=paid,
        lost_s=lost,
        expected_bits_per_s=_per(expected, price),
        bits_per_s=_per(gained, paid),
        bits_per_lost_s=_per(gained, lost),
    )


def _lost_s(run: Run) -> float | None:
    """By what was measured, else by what was expected of the instrument."""
    share = run.overhead
    if share is None and run.proposal is not None and run.source != "told":
        share = run.proposal.perturbation
    return None if share is None else max(share, 0.0) * run.seconds


def _per(bits: float | None, amount: float | None) -> float | None:
    if bits is None or not amount or not math.isfinite(bits / amount):
        return None
    return bits / amount
