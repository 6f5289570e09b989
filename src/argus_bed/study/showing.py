"""What a report reads of a study: a view, a page with its posterior, a table of runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from argus_bed.errors import StorageError
from argus_bed.records import Run
from argus_bed.report.view import HypothesisText, SignalText, StudyView
from argus_bed.report.worth import worth_of
from argus_bed.study.system import System
from argus_bed.study.telling import in_words

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from argus_bed.study.engine import Study


def view_of(study: Study, runs: Sequence[Run], *, created: float) -> StudyView:
    """Everything that a report shows.

    runs : ended ones, in the order of their numbers.
    created : seconds since the epoch.
    """
    looked_at = study.probabilities()  # most composites never matter
    return StudyView(
        name=study.name,
        question=study.system.question,
        metric=study.frame.metric,
        hypotheses={
            h.name: HypothesisText(h.claim, h.part, study.priors[h.name])
            for h in study.hypotheses.values()
            if h.name in looked_at
        },
        runs=tuple(runs),
        verdict=study.verdict(),
        created=created,
        conditions={c.name: in_words(c) for c in study.frame.conditions},
        spent_s=study.spent_s,
        budget_s=study.policy.budget_s,
        signals=_signals(study.system, runs),
        pairs=study.pairs(),
    )


def _signals(system: System, runs: Iterable[Run]) -> dict[str, SignalText]:
    """What the probes that were used say of themselves."""
    used = {r.proposal.probe for r in runs if r.proposal}
    plans = {p.probe: p for p in system.plans({}, ()) if p.probe in used}
    return {name: SignalText(**system.signal(plan)) for name, plan in plans.items()}


def write_report(view: StudyView, posterior: xr.DataTree, path: str | Path) -> Path:
    """Write the HTML page and, beside it, the posterior as NetCDF (``.nc``).

    Raises
    ------
    StorageError : a file cannot be written.
    """
    from argus_bed.report.html import write_html

    page = write_html(view, Path(path))
    draws = page.with_suffix(".nc")
    try:
        posterior.to_netcdf(draws)
    except OSError as error:
        raise StorageError(f"{draws}: {error.strerror or error}") from error
    return page


def dataframe(runs: Iterable[Run]) -> pd.DataFrame:
    """One row per run: state, probe, price, bits a second and a second lost, leading explanation.

    Columns in seconds and bits as in `report.worth.Worth`; NaN where that says None.
    """
    import pandas as pd

    return pd.DataFrame(
        [
            {
                "run": r.number,
                "state": r.state.value,
                "probe": r.proposal.plan if r.proposal else r.source,
                **asdict(worth_of(r)),
                "leader": max(r.after, key=r.after.__getitem__) if r.after else None,
            }
            for r in runs
        ]
    )
