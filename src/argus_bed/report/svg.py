"""The drawings of the HTML report, as inline SVG that follows the page's colours.

Every function returns markup that is safe to insert: text from outside is escaped here,
everything else is numbers. Colours are CSS variables ``--c0`` to ``--c7`` and ``--rest``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from argus_bed.quantity import QUANTITIES, TENTH, Link, Quantity
from argus_bed.records import Prediction, ReadingRecord
from argus_bed.report import describe as say
from argus_bed.report.view import StudyView

COLOURS = 8
"""As many hypotheses get a colour of their own; the rest share one."""
_WIDTH = 880


def colours(view: StudyView) -> dict[str, str]:
    """A CSS colour per hypothesis: by highest probability ever held, so that it is stable."""
    peak = {n: max(b.get(n, 0.0) for _, b in view.beliefs) for n in view.ranked}
    ordered = sorted(peak, key=lambda n: (-view.now.get(n, 0.0), -peak[n], n))
    return {n: f"var(--c{i})" if i < COLOURS else "var(--rest)" for i, n in enumerate(ordered)}


def _text(x: float, y: float, content: object, css: str = "", anchor: str = "start") -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" class="{}" text-anchor="{}">{}</text>').format(
        x, y, css, anchor, escape(say.clean(content))
    )


def _svg(width: float, height: float, title: str, parts: Sequence[Markup]) -> Markup:
    return Markup(
        '<svg viewBox="0 0 {:.0f} {:.0f}" width="{:.0f}" role="img" aria-label="{}">'
        "<title>{}</title>{}</svg>"
    ).format(width, height, width, say.clean(title), say.clean(title), Markup("").join(parts))


def belief(view: StudyView) -> Markup:
    """Probability of each hypothesis after each run: stacked, the leader at the bottom."""
    steps, tint = view.beliefs, colours(view)
    own = [n for n in view.ranked if tint[n] != "var(--rest)"]
    bands = [(n, tint[n], [b.get(n, 0.0) for _, b in steps]) for n in own]
    if len(own) < len(view.ranked):
        left = [max(0.0, 1.0 - sum(v[i] for _, _, v in bands)) for i in range(len(steps))]
        bands.append((f"{len(view.ranked) - len(own)} others", "var(--rest)", left))
    left_x, right_x, top, bottom = 44.0, _WIDTH - 190.0, 14.0, 286.0
    xs = _spread(left_x, right_x, len(steps))
    parts = _belief_axes(steps, xs, top, bottom)
    floor = [0.0] * len(xs)
    ends: list[tuple[float, str, str, float]] = []
    for name, colour, values in bands:
        ceiling = [a + b for a, b in zip(floor, values, strict=True)]
        upper = [_y(c, top, bottom) for c in ceiling]
        lower = [_y(f, top, bottom) for f in floor]
        points = [*zip(xs, upper, strict=True), *reversed(list(zip(xs, lower, strict=True)))]
        parts.append(
            Markup(
                '<polygon points="{}" fill="{}" class="band"><title>{}</title></polygon>'
            ).format(" ".join(f"{x:.1f},{y:.1f}" for x, y in points), colour, say.label(name))
        )
        ends.append(((upper[-1] + lower[-1]) / 2, name, colour, values[-1]))
        floor = ceiling
    for x in xs[1:-1]:
        parts.append(_line(x, top, x, bottom, "hair"))
    parts += _end_labels(ends, xs[-1] + 12, top, bottom)
    return _svg(_WIDTH, bottom + 40, "Belief after each run", parts)


def _spread(low: float, high: float, count: int) -> list[float]:
    return [low + (high - low) * i / max(count - 1, 1) for i in range(count)]


def _y(share: float, top: float, bottom: float) -> float:
    return bottom - min(max(share, 0.0), 1.0) * (bottom - top)


def _line(x1: float, y1: float, x2: float, y2: float, css: str) -> Markup:
    return Markup('<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>').format(
        x1, y1, x2, y2, css
    )


def _belief_axes(
    steps: Sequence[tuple[int, Mapping[str, float]]], xs: Sequence[float], top: float, bottom: float
) -> list[Markup]:
    parts = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _y(share, top, bottom)
        parts.append(_text(36, y + 4, f"{share:.0%}", "tick", "end"))
        parts.append(_line(xs[0] - 4, y, xs[0], y, "axis"))
    every = max(1, math.ceil(len(steps) / 14))
    for i, ((number, _), x) in enumerate(zip(steps, xs, strict=True)):
        if i % every == 0 or i == len(steps) - 1:
            shown = f"run {number}" if number else "prior"
            parts.append(_text(x, bottom + 18, shown, "tick", "middle" if i else "start"))
    return parts


def _end_labels(
    ends: Sequence[tuple[float, str, str, float]], x: float, top: float, bottom: float
) -> list[Markup]:
    """Names beside the ends of their bands, pushed apart so that none covers another."""
    gap = 17.0
    placed: list[float] = []
    low = bottom
    for y, *_ in ends:  # from the bottom up
        y = min(y, low)
        placed.append(y)
        low = y - gap
    if placed and placed[-1] < top + 4:  # too high: push all down from the top
        for i in range(len(placed) - 1, -1, -1):
            least = top + 4 + gap * (len(placed) - 1 - i)
            placed[i] = max(placed[i], least)
    parts = []
    for y, (_, name, colour, share) in zip(placed, ends, strict=True):
        square = Markup('<rect x="{:.1f}" y="{:.1f}" width="9" height="9" rx="2" fill="{}"/>')
        parts.append(square.format(x, y - 4.5, colour))
        parts.append(_text(x + 15, y + 4, _cut(say.label(name), 19), "name"))
        parts.append(_text(_WIDTH - 2, y + 4, say.percent(share), "number", "end"))
    return parts


def _cut(name: str, most: int) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


# -- predicted against observed -------------------------------------------------------


@dataclass(frozen=True)
class _Scale:
    """Link-space values to horizontal pixels."""

    low: float
    high: float
    left: float
    right: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.left + min(max(share, 0.0), 1.0) * (self.right - self.left)


def forecast(
    prediction: Prediction,
    reading: ReadingRecord | None,
    tint: Mapping[str, str],
    order: Sequence[str],
) -> Markup:
    """What each hypothesis expected (90 % interval and mean) and the line that was read."""
    named = say.reading_name(prediction.reading)
    contrast = named.against is not None
    flag = (q := QUANTITIES.get(named.quantity)) is not None and q.link is Link.BINARY
    rows = [(n, *prediction.by_hypothesis[n]) for n in order if n in prediction.by_hypothesis]
    rows = [(n, m, 0.0 if flag else s) for n, m, s in rows if math.isfinite(m) and math.isfinite(s)]
    scale = _scale(rows, None if reading is None else reading.value, flag)
    top, pitch = 26.0, 23.0
    bottom = top + pitch * len(rows)
    parts = [_text(0, 12, "if", "tick"), _text(scale.left, 12, "then, 9 times in 10", "tick")]
    for at in _ticks(scale, named.quantity, contrast):
        parts.append(_line(scale(at), top, scale(at), bottom + 4, "grid"))
        parts.append(_text(scale(at), bottom + 18, say.tick(at, named.quantity, contrast=contrast),
                           "tick", "middle"))  # fmt: skip
    for i, (name, mean, sd) in enumerate(rows):
        y = top + pitch * (i + 0.5)
        parts += _interval(scale, y, name, mean, sd, tint.get(name, "var(--rest)"))
        words = say.interval(mean, sd, named.quantity, contrast=contrast)
        parts.append(_text(_WIDTH - 2, y + 4, words, "number", "end"))
    if reading is not None:
        x = scale(reading.value)
        parts.append(_line(x, top - 4, x, bottom + 4, "read"))
        anchor = "start" if x < (scale.left + scale.right) / 2 else "end"
        shift = 5 if anchor == "start" else -5
        parts.append(_text(x + shift, 12, f"read {reading.shown}", "readlabel", anchor))
        if abs(x - scale.left) < 130:
            del parts[1]  # the caption would lie under the reading's label
    return _svg(_WIDTH, bottom + 24, f"{named}: expected and read", parts)


def _interval(
    scale: _Scale, y: float, name: str, mean: float, sd: float, colour: str
) -> list[Markup]:
    low, high = scale(mean - say.Z90 * sd), scale(mean + say.Z90 * sd)
    thick = Markup(
        '<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="8" rx="4" fill="{}" class="range"/>'
    ).format(low, y - 4, max(high - low, 2.0), colour)
    centre = Markup('<circle cx="{:.1f}" cy="{:.1f}" r="4" fill="{}"/>').format(
        scale(mean), y, colour
    )
    return [_text(0, y + 4, _cut(say.label(name), 24), "name"), thick, centre]


def _scale(rows: Sequence[tuple[str, float, float]], read: float | None, flag: bool) -> _Scale:
    """Wide enough for every mean and the reading; very wide intervals are cut off."""
    left, right = 178.0, _WIDTH - 190.0
    if flag:
        return _Scale(-0.05, 1.05, left, right)
    marks = [m for _, m, _ in rows] + ([] if read is None else [read])
    if not marks:
        return _Scale(-1.0, 1.0, left, right)
    widths = sorted(say.Z90 * s for _, _, s in rows)
    usual = widths[len(widths) // 2] if widths else 0.0
    low = min([*marks, *(m - min(say.Z90 * s, 2 * usual) for _, m, s in rows)])
    high = max([*marks, *(m + min(say.Z90 * s, 2 * usual) for _, m, s in rows)])
    margin = 0.06 * (high - low) or 0.05 * (abs(high) or 1.0)
    return _Scale(low - margin, high + margin, left, right)


_ROUND = (0.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.3, 0.4, 2.0)
_ROUND_FACTORS = (1.0, 10.0, 0.1, 100.0, 0.01, 1000.0, 2.0, 0.5, 5.0, 0.2)
_ROUND_SHARES = (0.5, 0.1, 0.9, 0.25, 0.75, 0.02, 0.05, 0.95, 0.98)


def _ticks(scale: _Scale, quantity: str, contrast: bool) -> list[float]:
    """Places whose values are round as a person reads them, and far enough apart."""
    chosen: list[float] = []
    for at in _round_places(scale, QUANTITIES.get(quantity), contrast):
        if scale.low <= at <= scale.high and all(abs(scale(at) - scale(c)) > 64 for c in chosen):
            chosen.append(at)
    return chosen


def _round_places(scale: _Scale, known: Quantity | None, contrast: bool) -> list[float]:
    """Candidates in link space, the roundest first."""
    match None if known is None else known.link:
        case Link.BINARY:
            return [0.0, 1.0]
        case Link.LOG | Link.SOFT_LOG if contrast:
            changes = [*_ROUND, *(-c for c in _ROUND if c < 1)]
            factors = [math.log(f) for f in _ROUND_FACTORS if f >= 3 or f <= 0.2]
            return [*(math.log1p(c) for c in changes), *factors, *_even(scale)]
        case Link.LOGIT if contrast:
            return [*(math.log(f) for f in _ROUND_FACTORS), *_even(scale)]
        case Link.LOGIT:
            return [math.log(s / (1 - s)) for s in _ROUND_SHARES]
        case Link.SHARE:
            return [*(s / TENTH for s in _ROUND if s <= 1), *_even(scale)]
        case _:
            return _even(scale)


def _even(scale: _Scale) -> list[float]:
    rough = (scale.high - scale.low) / 4
    power = 10 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= rough)
    first = math.ceil(scale.low / step)
    return [i * step for i in range(first, math.floor(scale.high / step) + 1)]


def spark(share: float, colour: str = "var(--accent)") -> Markup:
    """A small bar for a table cell."""
    return Markup(
        '<svg viewBox="0 0 60 8" width="60" height="8" class="spark" aria-hidden="true">'
        '<rect width="60" height="8" rx="2" class="track"/>'
        '<rect width="{:.1f}" height="8" rx="2" fill="{}"/></svg>'
    ).format(60 * min(max(share, 0.0), 1.0), colour)
