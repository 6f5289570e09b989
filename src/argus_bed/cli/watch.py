"""Shows a study while it runs: rounds on stdout, a progress line on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from argus_bed.cli.output import Format, say

if TYPE_CHECKING:
    from rich.progress import Progress

    from argus_bed.records import Proposal, Run
    from argus_bed.report.view import StudyView


def in_focus(
    chosen: Proposal, belief: Mapping[str, float], *, readings: int = 2, rivals: int = 4
) -> tuple[Proposal, tuple[str, ...]]:
    """What is worth a person's look: the readings and rivals that differ most.

    How far a rival's expectation lies from the average one, in its own standard
    deviations, counts by how probable the rival is. The stored proposal holds them all.
    """
    apart: dict[str, dict[str, float]] = {}
    for prediction in chosen.predictions:
        expected = {h: e for h, e in prediction.by_hypothesis.items() if belief.get(h, 0.0) > 0}
        total = sum(belief[h] for h in expected) or 1.0
        average = sum(belief[h] * mean for h, (mean, _) in expected.items()) / total
        apart[prediction.reading] = {
            h: belief[h] * abs(mean - average) / max(sd, 1e-9) for h, (mean, sd) in expected.items()
        }
    best = sorted(apart, key=lambda r: -sum(apart[r].values()))[:readings]
    kept = tuple(p for p in chosen.predictions if p.reading in best)
    weight = {h: max(apart[r].get(h, 0.0) for r in best) for h in belief} if best else {}
    names = sorted(weight, key=lambda h: (-weight[h], h))[:rivals]
    return replace(chosen, predictions=kept), tuple(names)


class Watch:
    """Listens to `Study.run` and prints each round as it happens.

    Parameters
    ----------
    format : with json nothing but short lines on stderr is shown.
    """

    def __init__(self, format: Format) -> None:
        from argus_bed.report import terminal

        self._loud = format is Format.TABLE
        self._out = terminal.console(sys.stdout)
        self._err = terminal.console(sys.stderr)
        self._line: Progress | None = None
        self._view: StudyView | None = None
        self._belief: Mapping[str, float] = {}
        self.states: list[str] = []

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """A progress line on stderr while the block runs."""
        self._begin(what)
        try:
            yield
        finally:
            self._end()

    def __call__(self, kind: str, payload: Any) -> None:
        """Take one event of a study."""
        self._end()
        match kind:
            case "opened":
                self._view, self._belief = payload.view(), payload.probabilities()
                self._opened(self._view)
            case "proposal":
                self._proposal(payload)
            case "progress":
                self._begin(str(payload))
            case "run":
                self._run(payload)

    def _opened(self, view: StudyView) -> None:
        from argus_bed.report import terminal

        if self._loud:
            self._out.print(terminal.question(view))
        self._begin("weighing the measurements")

    def _proposal(self, chosen: Proposal) -> None:
        from argus_bed.report import terminal

        if self._loud:
            shown, names = in_focus(chosen, self._belief)
            self._out.print(terminal.proposal(shown, names=names))
        self._begin(f"run {chosen.run}: {chosen.plan}, about {chosen.price_s:.3g} s")

    def _run(self, run: Run) -> None:
        from argus_bed.report import describe, terminal
        from argus_bed.report.worth import worth_of

        self.states.append(run.state.value)
        self._belief = run.after or self._belief
        if self._loud:
            self._out.print(terminal.readings(run))
            if run.after:
                prior = self._view.prior if self._view else None
                self._out.print(terminal.beliefs(run.after, run.before or None, prior))
                self._out.print(f"  learned {describe.learned(worth_of(run))}\n")
        else:
            name = run.proposal.plan if run.proposal else run.source
            say(f"run {run.number} {run.state.value}: {name} {run.error}".rstrip())
        self._begin("weighing the measurements")

    def _begin(self, what: str) -> None:
        if self._err.is_terminal:
            from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
            self._line = Progress(*columns, console=self._err, transient=True)
            self._line.add_task(what, total=None)
            self._line.start()
        elif self._loud and what.startswith("run "):
            say(what)

    def _end(self) -> None:
        if self._line is not None:
            self._line.stop()
            self._line = None
