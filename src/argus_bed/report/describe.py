"""Numbers as a person says them: link-space values back to units, seconds, odds.

Every function returns plain text without control characters, safe for a terminal;
HTML escapes it once more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from argus_bed.quantity import QUANTITIES, TENTH, Link, Quantity
from argus_bed.records import PriceBasis, Run
from argus_bed.report.worth import Worth

Z90 = 1.645
"""Half width of a central 90 % interval, in standard deviations of a normal."""
_SYMBOLS = {"delta_degC": "°C", "1/s": "/s", "count": "", "1": "", "Hz": "Hz", "W": "W"}


@dataclass(frozen=True)
class ReadingName:
    """A reading's name taken apart: ``gil_wait[io@candidate] vs baseline``."""

    quantity: str
    stage: str | None
    condition: str
    against: str | None

    def __str__(self) -> str:
        where = f" of {self.stage}" if self.stage else ""
        versus = f" against {self.against}" if self.against else ""
        return f"{self.quantity.replace('_', ' ')}{where}, {self.condition}{versus}"


def reading_name(text: str) -> ReadingName:
    """Take ``str(Measurement)`` apart; text of another form becomes the quantity."""
    cell, _, against = text.partition(" vs ")
    head, bracket, rest = cell.partition("[")
    if not bracket or not rest.endswith("]"):
        return ReadingName(text, None, "", None)
    stage, at, condition = rest[:-1].rpartition("@")
    return ReadingName(head, stage if at else None, condition, against or None)


def clean(text: object) -> str:
    """Text without control characters, which could move a terminal's cursor or its colours."""
    return "".join(c if c.isprintable() else ("\n" if c == "\n" else "\N{REPLACEMENT CHARACTER}")
                   for c in str(text))  # fmt: skip


def value(link_value: float, quantity: str, *, contrast: bool) -> str:
    """A link-space value in words and units.

    Parameters
    ----------
    link_value : of a flag, the probability of 1 (0 and 1 are readings of it).
    contrast : whether it is a difference between two conditions.
    """
    if not math.isfinite(link_value):
        return "n/a"
    known = QUANTITIES.get(quantity)
    if known is None:
        return f"{link_value:+.3g}" if contrast else f"{link_value:.3g}"
    if known.link is Link.BINARY:
        return _flag(link_value)
    return _contrast(link_value, known) if contrast else _level(link_value, known)


def _flag(probability: float) -> str:
    if probability in (0.0, 1.0):
        return "yes" if probability else "no"
    return f"yes in {percent(min(max(probability, 0.0), 1.0))}"


def _contrast(difference: float, known: Quantity) -> str:
    match known.link:
        case Link.LOG | Link.SOFT_LOG:
            return ratio(difference)
        case Link.SHARE:
            return f"{100 * TENTH * difference:+.1f}% of the step"
        case Link.LOGIT:
            return "odds 1x" if abs(difference) < 5e-3 else f"odds {_times(difference)}"
        case _:
            return _with_unit(difference, known.unit, signed=True)


def ratio(log_ratio: float) -> str:
    """A log ratio as a change: ``+22.1%``, ``-0.40%``, ``3.4x``, ``-71.0%``."""
    if log_ratio > math.log(3):
        return _times(log_ratio)
    change = 100 * math.expm1(log_ratio)
    if abs(change) < 0.005:
        return "0%"
    return f"{change:+.2f}%" if abs(change) < 1 else f"{change:+.1f}%"


def _times(log_ratio: float) -> str:
    factor = math.exp(max(min(log_ratio, 40.0), -40.0))
    return f"{factor:.1e}x" if factor >= 1000 else f"{factor:.2g}x"


def _level(level: float, known: Quantity) -> str:
    match known.link:
        case Link.LOGIT:
            return percent(1 / (1 + math.exp(-max(min(level, 40.0), -40.0))))
        case Link.SHARE:
            return f"{percent(max(TENTH * level, 0.0))} of the step"
        case Link.SOFT_LOG:
            return _with_unit(max(math.exp(min(level, 80.0)) - known.floor, 0.0), known.unit)
        case Link.LOG:
            return _with_unit(math.exp(min(level, 80.0)), known.unit)
        case _:
            return _with_unit(level, known.unit)


def _with_unit(number: float, unit: str, *, signed: bool = False) -> str:
    sign = "+" if signed and number >= 0 else ""
    if unit == "s":
        return sign + seconds(number)
    if unit == "byte":
        return sign + _scaled(number, 1024.0, ("B", "KiB", "MiB", "GiB", "TiB"))
    if unit == "Hz":
        return sign + _scaled(number, 1000.0, ("Hz", "kHz", "MHz", "GHz"))
    symbol = _SYMBOLS.get(unit, unit)
    gap = "" if not symbol or symbol.startswith("/") else " "
    return f"{sign}{_plain(number)}{gap}{symbol}"


def _plain(number: float) -> str:
    if number and abs(number) < 1e-3:
        return f"{number:.2g}"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def _scaled(number: float, base: float, names: tuple[str, ...]) -> str:
    step = 0
    while abs(number) >= base and step < len(names) - 1:
        number, step = number / base, step + 1
    return f"{_plain(number)} {names[step]}"


def tick(at: float, quantity: str, *, contrast: bool) -> str:
    """The same for an axis: shorter, because the axis has a title."""
    words = value(at, quantity, contrast=contrast)
    words = words.removeprefix("odds ").removesuffix(" of the step")
    return words.replace(".0%", "%").replace(".00%", "%")


def interval(mean: float, sd: float, quantity: str, *, contrast: bool) -> str:
    """The central 90 % of what is expected, in words: ``+4.1% to +39%``."""
    known = QUANTITIES.get(quantity)
    if known is not None and known.link is Link.BINARY:
        return _flag(mean)
    low = value(mean - Z90 * sd, quantity, contrast=contrast)
    high = value(mean + Z90 * sd, quantity, contrast=contrast)
    if low == high:
        return low
    share = " of the step"
    if low.endswith(share) and high.endswith(share):
        low = low.removesuffix(share)
    if low.startswith("odds ") and high.startswith("odds "):
        high = high.removeprefix("odds ")
    return f"{low} to {high}"


def expectations(
    reading: str, expected: tuple[tuple[float, float], tuple[float, float]]
) -> tuple[str, str]:
    """What two hypotheses expect of one reading, in words."""
    name = reading_name(reading)
    contrast = name.against is not None
    first, second = (interval(m, sd, name.quantity, contrast=contrast) for m, sd in expected)
    return first, second


def percent(probability: float) -> str:
    """A probability or share: never 0 % or 100 % unless it is."""
    if not math.isfinite(probability):
        return "n/a"
    shown = 100 * probability
    if 0 < shown < 0.1:
        return "<0.1%"
    if 99.9 < shown < 100:
        return ">99.9%"
    if shown in (0.0, 100.0) or 10 <= shown <= 99:
        return f"{shown:.0f}%"
    return f"{shown:.1f}%"


def seconds(number: float) -> str:
    """A duration: ``840 µs``, ``12.3 ms``, ``4.5 s``, ``2 min 05 s``, ``3 h 12 min``."""
    if not math.isfinite(number):
        return "n/a"
    if number < 0:
        return "-" + seconds(-number)
    if number == 0:
        return "0 s"
    for limit, scale, unit in (
        (1e-6, 1e9, "ns"),
        (1e-3, 1e6, "µs"),
        (1.0, 1e3, "ms"),
        (60.0, 1.0, "s"),
    ):
        if number < limit and float(f"{number * scale:.3g}") < limit * scale:
            return f"{number * scale:.3g} {unit}"
    whole = round(number)
    if whole < 3600:
        rest = f" {whole % 60:02d} s" if whole % 60 else ""
        return f"{whole // 60} min{rest}"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def bits(number: float, error: float | None = None) -> str:
    """Information: ``0.83 ± 0.02 bits``."""
    if not math.isfinite(number):
        return "n/a"
    return f"{number:.2f} bits" if error is None else f"{number:.2f} ± {error:.2g} bits"


def rate(number: float | None, unit: str = "bits/s") -> str:
    """Bits by something, if there was any of it: ``0.562 bits/s``."""
    return "" if number is None else f"{number:.3g} {unit}".rstrip()


def learned(worth: Worth) -> str:
    """What a run told for what it cost: bits, seconds paid, and both by each other."""
    parts = [f"{bits(worth.gained_bits)} for {seconds(worth.price_s)}"]
    if worth.bits_per_s is not None:
        parts.append(rate(worth.bits_per_s))
    if worth.bits_per_lost_s is not None:
        parts.append(rate(worth.bits_per_lost_s, "bits per second lost to disturbance"))
    return ", ".join(parts)


def call_chains(run: Run) -> list[str]:
    """Where the program stood while it kept others waiting, outermost call first."""
    return [
        f"{found['condition']}, {percent(found['share'])} of the wait: "
        f"{clean(' → '.join(found['chain']))}"
        for found in run.environment.get("call_chains", ())
    ]


def price_basis(basis: PriceBasis) -> str:
    """Where an expected price comes from, with what is assumed and what was learned."""
    announced = f"{seconds(basis.announced_s)} announced ({clean(basis.source)})"
    if basis.fails == 0:
        return f"{announced}, which is exact"
    if not basis.runs:
        assumed = f"right within 2x, failing in {percent(basis.fails)}, both assumed"
        return f"{announced}; not run yet: {assumed}"
    runs = f"{basis.runs} run{'s' * (basis.runs != 1)} here"
    ratio = basis.expected_s / basis.announced_s if basis.announced_s > 0 else 1.0
    text = f"{announced}; by {runs} it takes {ratio:.2g}x that, and fails in {percent(basis.fails)}"
    return f"{text} after {seconds(basis.failing_s)}" if basis.failures else text


def disturbance(share: float | None) -> str:
    """By how much a step gets longer while it is measured."""
    if share is None:
        return "not measured"
    if abs(share) < 5e-4:
        return "none"
    return f"{100 * share:+.1f}%" if abs(share) < 2 else f"{1 + share:.3g}x"


def label(name: str) -> str:
    """A slug as words: ``none_of_these`` -> ``none of these``; composites joined by ``and``."""
    return clean(name).replace("+", " and ").replace("_", " ")


def settings(given: Mapping[str, object]) -> str:
    """Settings of a plan on one line."""
    return ", ".join(f"{clean(k)}={clean(v)}" for k, v in sorted(given.items()))
