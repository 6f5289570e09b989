from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from argus_bed.ledger import Ledger
from argus_bed.records import Prediction, Proposal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with Ledger.open(path) as opened:
        yield opened


@pytest.fixture
def study(ledger: Ledger) -> int:
    return ledger.create_study("gil", {"metric": "step_time"})


@pytest.fixture
def proposal() -> Proposal:
    return Proposal(
        run=0, plan="ab_steps", probe="ab_steps", settings={"blocks": 20},
        conditions=("baseline", "candidate"), question="Which arm is slower?", gain_bits=0.6,
        gain_error=0.01, price_s=8.0, perturbation=0.0, score=0.075, reason="It separates most.",
        predictions=(Prediction("step_time[candidate] vs baseline", {"gil_held": (0.2, 0.1)}),),
    )  # fmt: skip
