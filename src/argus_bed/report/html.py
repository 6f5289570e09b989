"""A study as one HTML page: no script, no request, light or dark, fit to print."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from argus_bed.errors import StorageError
from argus_bed.records import Run
from argus_bed.report import describe as say
from argus_bed.report import svg
from argus_bed.report.terminal import HEADLINES
from argus_bed.report.view import StudyView, compared
from argus_bed.report.worth import worth_of

_STRONGEST = 6.0
"""Bits at which a cell of the evidence table has its full colour."""


def as_html(view: StudyView) -> str:
    """The whole report, self-contained."""
    tint = svg.colours(view)
    page: str = _template().render(
        view=view,
        verdict=view.verdict,
        headline=HEADLINES[view.verdict.status],
        tint=tint,
        shown=[n for n in view.ranked if tint[n] != "var(--rest)"],
        belief_chart=svg.belief(view) if len(view.beliefs) > 1 else Markup(""),
        evidence=[r for r in view.runs if r.bits],
        forecasts=[(r, _forecasts(view, r, tint)) for r in view.ended if compared(r)],
        most_expensive=max((_price(r) for r in view.runs), default=0.0) or 1.0,
        created=_date(view.created),
        say=say,
        spark=svg.spark,
        heat=heat,
        price=_price,
        worth=worth_of,
    )
    return page


def write_html(view: StudyView, path: str | os.PathLike[str]) -> Path:
    """Write the report to ``path`` and return it.

    Raises
    ------
    StorageError : the file cannot be written.
    """
    target = Path(path)
    try:
        target.write_text(as_html(view), encoding="utf-8", errors="replace")
    except OSError as error:
        raise StorageError(
            f"the report {target} cannot be written ({error.strerror}); name a writable path"
        ) from error
    return target


@cache
def _template() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("argus_bed.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters["label"] = say.label
    return environment.get_template("study.html")


def _shown(value: object) -> object:
    """What is put into the page: no control characters, and nothing for None."""
    if value is None or isinstance(value, Markup):
        return value or ""
    return say.clean(value)


def _forecasts(view: StudyView, run: Run, tint: dict[str, str]) -> list[tuple[str, Markup]]:
    order = sorted(run.before or view.prior, key=lambda n: (-view.now.get(n, 0.0), n))
    kept = [n for n in order if tint.get(n, "var(--rest)") != "var(--rest)"]
    return [
        (str(say.reading_name(p.reading)), svg.forecast(p, reading, tint, kept))
        for p, reading in compared(run)
        if reading is not None or not run.error
    ]


def heat(weight: float | None) -> str:
    """CSS background of an evidence cell: one hue for, another against, stronger with size."""
    if weight is None or weight == 0:
        return "transparent"
    strength = min(abs(weight) / _STRONGEST, 1.0) ** 0.7
    hue = "--for" if weight > 0 else "--against"
    return f"color-mix(in srgb, var({hue}) {100 * strength:.0f}%, transparent)"


def _price(run: Run) -> float:
    return run.price_s or run.seconds


def _date(created: float | None) -> str:
    return (
        ""
        if created is None
        else datetime.fromtimestamp(created, UTC).strftime("%d %B %Y, %H:%M UTC")
    )
