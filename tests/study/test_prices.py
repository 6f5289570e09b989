"""What runs took, disturbed and lost by failing becomes the price of the next one."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from argus_bed.design.price import FAILS
from argus_bed.errors import ProbeFailed, WorkloadFailed
from argus_bed.ledger import Ledger
from argus_bed.probe import Observation, Plan, Price
from argus_bed.records import RunState
from argus_bed.study.engine import Study
from argus_bed.study.policy import Policy
from tests.study.small import CONFOUNDED, Rig, case, opened, study_on

WOBBLE = (1.0, 1.002, 0.998, 1.001, 0.999, 1.0, 1.003, 0.997)
OLD = Path(__file__).parent / "data" / "ledger-2026-12-01.sql"
ANNOUNCED_S, HANGS_S = 0.02, 0.4


def steps(_: int) -> Mapping[str, list[float]]:
    return {
        "step_time@baseline": [0.1 * w for w in WOBBLE],
        "step_time@candidate": [0.13 * w for w in WOBBLE[::-1]],
    }


def waits(_: int) -> Mapping[str, list[float]]:
    return {
        f"{q}@{arm}": [0.0002 * w for w in WOBBLE]
        for q in ("gil_wait", "gc_pause")
        for arm in ("baseline", "candidate")
    }


def hangs(_: int) -> Mapping[str, list[float]]:
    time.sleep(HANGS_S)
    raise WorkloadFailed(f"did not return within {HANGS_S:g} s of a block")


def fails_once(read: Callable[[int], Mapping[str, list[float]]]):
    seeds: list[int] = []

    def reader(seed: int) -> Mapping[str, list[float]]:
        seeds.append(seed)
        if len(seeds) == 1:
            raise ProbeFailed("somebody else held the counters")
        return read(seed)

    return reader


def hanging_rig() -> Rig:
    return Rig(
        hanging=(Price(0, ANNOUNCED_S), ("gil_wait", "gc_pause"), hangs),
        arms=(Price(0, 0.2), ("step_time",), steps),
    )


def prices(study: Study) -> dict[str, float]:
    return {s.plan.key: s.price_s for s in study.score()}


# -- failures --------------------------------------------------------------------------


@pytest.mark.promise("A59")
def test_a_probe_that_times_out_gets_dearer_and_the_study_goes_on_with_another(tmp_path: Path):
    rig = hanging_rig()
    with study_on(rig, ledger=Ledger.open(tmp_path / "ledger.db")) as study:
        before = prices(study)
        assert before["hanging(blocks=8)"] == pytest.approx(ANNOUNCED_S / (1 - FAILS))
        (proposal,) = study.ask()
        assert proposal.probe == "hanging"
        run = study.execute(proposal)
        assert run.state is RunState.FAILED
        assert run.seconds >= HANGS_S  # not the price that was planned: the one that was paid
        assert run.price_s == run.seconds == study.spent_s
        after = prices(study)
        assert after["hanging(blocks=8)"] > 5 * before["hanging(blocks=8)"]
        assert after["arms(blocks=8)"] == before["arms(blocks=8)"]
        (other,) = study.ask()
        assert other.probe == "arms"
        assert study.execute(other).state is RunState.DONE
        left = prices(study)
        ranked = [(s.plan.key, s.basis, s.price_s) for s in study.score()]
    with study_on(hanging_rig(), ledger=Ledger.open(tmp_path / "ledger.db")) as again:
        assert prices(again) == left
        found = {s.plan.key: (s.plan.key, s.basis, s.price_s) for s in again.score()}
        assert [found[key] for key, *_ in ranked] == ranked


@pytest.mark.promise("A59")
def test_the_proposal_keeps_what_its_price_was_made_from():
    with study_on(hanging_rig()) as study:
        (first,) = study.ask()
        failed = study.execute(first)
        assert first.basis.announced_s == first.basis.expected_s == ANNOUNCED_S
        assert (first.basis.fails, first.basis.runs) == (FAILS, 0)
        study.execute(study.ask()[0])
        basis = next(s.basis for s in study.score() if s.plan.probe == "hanging")
        assert (basis.runs, basis.failures) == (1, 1)
        assert basis.announced_s == ANNOUNCED_S  # learning never compounds
        assert basis.fails > 5 * FAILS
        assert ANNOUNCED_S < basis.failing_s < 2 * failed.seconds


def test_after_a_failure_another_plan_comes_first_and_the_failed_one_later():
    rig = Rig(
        flaky=(Price(0, 1.0), ("gil_wait", "gc_pause"), fails_once(waits)),
        arms=(Price(0, 50.0), ("step_time",), steps),
    )
    with study_on(rig) as study:
        scored = study.score()
        assert scored[0].plan.probe == "flaky"
        study.run(max_runs=3)
        assert rig.executed == ["flaky", "arms", "flaky"]
        assert [study.why(n).state.value for n in (1, 2, 3)] == ["failed", "done", "done"]


def test_a_failed_plan_is_retried_at_once_if_nothing_else_is_worth_it():
    rig = Rig(flaky=(Price(0, 1.0), ("gil_wait", "gc_pause"), fails_once(waits)))
    with study_on(rig) as study:
        study.run(max_runs=2)
        assert rig.executed == ["flaky", "flaky"]
        assert study.why(2).state is RunState.DONE


# -- what runs took ----------------------------------------------------------------------


class Slow(Rig):
    """Every run takes three times as long as announced and disturbs by a half."""

    def execute(self, plan: Plan, seed: int) -> Observation:
        found = super().execute(plan, seed)
        return Observation(found.samples, {}, 0.0, 3 * plan.price.seconds, overhead=0.5)


@pytest.mark.promise("A59")
def test_seconds_and_disturbance_are_learned_from_what_was_measured():
    rig = Slow(arms=(Price(0, 2.0, 0.1), ("step_time",), steps))
    with study_on(rig, policy=Policy(harm=2.0)) as study:
        run = study.execute(study.ask()[0])
        assert run.price_s == pytest.approx(6.0 * (1 + 2.0 * 0.5))  # what was lost, not planned
        basis = study.score()[0].basis
        assert basis.perturbation == pytest.approx((0.1 + 0.5) / 2)
        assert 2.5 < basis.expected_s / basis.announced_s < 3.1
        assert basis.fails == pytest.approx(0.1 / 3)


@pytest.mark.promise("A59")
def test_what_turns_out_to_disturb_too_much_is_not_run_again():
    rig = Slow(arms=(Price(0, 2.0, 0.0), ("step_time",), steps))
    with study_on(rig, policy=Policy(max_perturbation=0.2)) as study:
        assert study.score()[0].blocked == ""
        study.execute(study.ask()[0])
        assert study.score()[0].blocked == "disturbs by 25%, over the cap of 20%"


def test_the_price_of_a_recorded_measurement_is_exact():
    with opened(CONFOUNDED) as study:
        exact = {p.name: p.cost_s * (1 + p.perturbation) for p in case(CONFOUNDED).probes}
        study.run(max_runs=1)
        left = prices(study)
        assert left == pytest.approx({name: exact[name] for name in left})
        (run,) = study.view().runs
        assert run.price_s == run.proposal.price_s == pytest.approx(exact[run.proposal.plan])


# -- ledgers of before -------------------------------------------------------------------


def test_a_ledger_of_before_prices_were_learned_still_opens(tmp_path: Path):
    """Written on 2026-12-01: two failures, a run that worked, a result told by hand."""
    book = tmp_path / "ledger.db"
    with sqlite3.connect(book) as raw:
        raw.executescript(OLD.read_text(encoding="utf-8"))
    raw.close()
    rig = Rig(
        broken=(Price(0, 1.0), ("gil_wait", "gc_pause"), hangs),
        arms=(Price(0, 2.0, 0.5), ("step_time",), steps),
    )
    with study_on(rig, ledger=Ledger.open(book)) as study:
        assert [study.why(n).state.value for n in range(1, 5)] == ["failed"] * 2 + ["done"] * 2
        assert study.spent_s == pytest.approx(4.0, abs=0.01)
        assert study.why(3).proposal.basis is None
        (arms,) = study.score()  # the other one was spoilt
        assert (arms.basis.runs, arms.basis.failures) == (1, 0)
        assert arms.basis.expected_s == 2.0  # what was announced is not known: no ratio
        study.tell({"page_faults": [101]}, condition="candidate")
        assert study.why(5).source == "told"
        assert study.view().runs[0].proposal.price_s == 1.0
