"""A study as the ledger alone tells it: no workload, no models, no waiting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from argus_bed.hypothesis import catalogue
from argus_bed.ledger import Kind, Ledger
from argus_bed.records import Run, Status, Verdict
from argus_bed.report.view import HypothesisText, StudyView

if TYPE_CHECKING:
    from argus_bed.config import Config
    from argus_bed.ledger import StudyHistory

_ENDS = (Kind.OBSERVED, Kind.FAILED, Kind.VOIDED, Kind.TOLD)


def stored_view(settings: Config) -> StudyView:
    """What a report shows of the study, read from its events.

    Raises
    ------
    StorageError : there is no ledger, or it cannot be read.
    UnknownName : it holds no such study.
    """
    with Ledger.open(settings.ledger, create=False) as ledger:
        row = ledger.study(settings.study.name)
        history = ledger.history(row.id)
    runs = tuple(history.runs[n] for n in sorted(history.runs))
    prior = _prior(runs)
    return StudyView(
        name=row.name,
        question=str(row.spec.get("question", row.name)),
        metric=str(row.spec.get("metric", "step_time")),
        hypotheses=_texts(prior, settings.folders),
        runs=runs,
        verdict=_verdict(history, runs, prior),
        created=row.created_at,
        spent_s=sum(r.price_s for r in runs),
        budget_s=settings.policy.budget_s,
    )


def _prior(runs: tuple[Run, ...]) -> Mapping[str, float]:
    """The belief before the first run; nothing if nothing was run."""
    return next((r.before for r in runs if r.before), {})


def _texts(prior: Mapping[str, float], folders: tuple[str, ...]) -> dict[str, HypothesisText]:
    known = catalogue(folders)
    found = {}
    for name, probability in prior.items():
        parts = [known[n] for n in name.split("+") if n in known]
        claim = " And: ".join(h.claim for h in parts)
        found[name] = HypothesisText(claim, parts[0].part if parts else "", probability)
    return found


def _verdict(history: StudyHistory, runs: tuple[Run, ...], prior: Mapping[str, float]) -> Verdict:
    """The verdict in the ledger, if nothing was read since it was given."""
    last_end = max((seq for seq, kind in history.steps if kind in _ENDS), default=0)
    last_verdict = max((seq for seq, kind in history.steps if kind == Kind.VERDICT), default=0)
    if history.verdict is not None and last_verdict > last_end:
        return history.verdict
    now = next((r.after for r in reversed(runs) if r.after), prior)
    ranking = tuple(sorted(now.items(), key=lambda item: (-item[1], item[0])))
    return Verdict(
        status=Status.OPEN,
        causes=(),
        probability=ranking[0][1] if ranking else 0.0,
        ranking=ranking,
        why="no verdict was given since the last reading" if runs else "nothing was read yet",
        establishes=(),
        leaves_open=(),
        evidence=(),
        next_action="`argus-bed run` goes on, `argus-bed next` says what is worth measuring",
        price_s=sum(r.price_s for r in runs),
        runs=sum(bool(r.after) for r in runs),
    )
