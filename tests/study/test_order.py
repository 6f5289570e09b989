"""Stored first, believed after: a ledger that refuses leaves the process where it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from argus_bed.errors import StorageError
from argus_bed.frame import CANDIDATE, Cell
from argus_bed.ledger import Event, Lease, Ledger
from argus_bed.records import Run, RunState
from argus_bed.study.engine import Study
from tests.study.small import CONFOUNDED, opened


class Full(Ledger):
    """A ledger on a disk that may have no space for what was read."""

    full = False

    def _refuse(self) -> None:
        if self.full:
            raise StorageError("no space left on the device")

    def finish(self, lease: Lease, run: Run) -> Event:
        self._refuse()
        return super().finish(lease, run)

    def tell(self, study: int, run: Run, *, key: str | None = None) -> Run:
        self._refuse()
        return super().tell(study, run, key=key)


def mind(study: Study) -> tuple[object, ...]:
    """Everything that reading something changes."""
    return (
        study.probabilities(),
        study.spent_s,
        study.frame.cells,
        dict(study._knows.known),
        study._knows.measured,
        [r.number for r in study.view().runs],
        [(s.plan.key, s.gain.bits, s.price_s) for s in study.score()],
    )


@pytest.mark.promise("A14")
def test_a_reading_that_cannot_be_stored_is_not_believed(tmp_path: Path):
    ledger = Full.open(tmp_path / "ledger.db")
    with opened(CONFOUNDED, ledger) as study:
        (proposal,) = study.ask()
        before = mind(study)
        ledger.full = True
        with pytest.raises(StorageError, match="no space left"):
            study.execute(proposal)
        assert mind(study) == before
        assert study.ask() == [proposal]  # nobody holds it any more

        with pytest.raises(StorageError, match="no space left"):
            study.tell({"gc_pause": ["25 ms"]}, condition="candidate")
        with pytest.raises(StorageError, match="no space left"):
            study.tell({"step_time": [0.1]}, condition="baseline", run=proposal.run)
        assert mind(study) == before
        assert Cell("gc_pause", CANDIDATE) not in study.frame.cell_index
        assert study.ask() == [proposal]

        ledger.full = False
        run = study.execute(proposal)
        assert (run.number, run.state) == (proposal.run, RunState.DONE)
        assert study.probabilities() == run.after != before[0]
        left = mind(study)
    with opened(CONFOUNDED, tmp_path / "ledger.db") as again:
        assert mind(again)[1:-1] == left[1:-1]
        assert again.probabilities() == pytest.approx(left[0], abs=1e-9)
