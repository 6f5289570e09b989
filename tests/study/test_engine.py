"""The loop: what is asked and why, what it does to the belief, and when it stops."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path

import pytest

from argus_bed.errors import ConfigError, UsageError, ValueRejected
from argus_bed.frame import BASELINE, CANDIDATE, Cell
from argus_bed.hypothesis import NO_EFFECT, NONE_OF_THESE, catalogue, select
from argus_bed.ledger import Ledger
from argus_bed.probe import Observation, Plan, Price
from argus_bed.records import Proposal, Run, RunState, Status, Verdict
from argus_bed.study.engine import Study
from argus_bed.study.policy import Policy
from argus_bed.workload.recorded import Case, RecordedSystem
from tests.study.small import (
    CONFOUNDED,
    LOCK,
    NOTHING,
    Rig,
    breaks,
    case,
    opened,
    study_on,
    without,
)


class Watched(RecordedSystem):
    """Notes what the ledger held when each measurement began."""

    def __init__(self, found: Case, ledger: Ledger) -> None:
        super().__init__(found)
        self._book = ledger
        self.held: list[tuple[Plan, Proposal]] = []

    def execute(self, plan: Plan, seed: int) -> Observation:
        history = self._book.history(self._book.studies()[0].id)
        self.held.append((plan, history.proposals[max(history.proposals)]))
        assert max(history.proposals) not in {r.number for r in history.ended}
        return super().execute(plan, seed)


@dataclass
class Finished:
    """A study that has run to its end, with what was seen on the way."""

    study: Study
    verdict: Verdict
    system: Watched
    proposals: list[Proposal] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)


def finish(name: str) -> Finished:
    ledger = Ledger.open("sqlite://")
    study = opened(name, ledger)
    study.system = Watched(case(name), ledger)
    seen = {"proposal": [], "run": [], "opened": [], "verdict": []}
    verdict = study.run(on_event=lambda kind, payload: seen[kind].append(payload))
    return Finished(study, verdict, study.system, seen["proposal"], seen["run"])


@pytest.fixture(scope="module")
def lock() -> Finished:
    return finish(LOCK)


@pytest.fixture(scope="module")
def nothing() -> Finished:
    return finish(NOTHING)


@pytest.fixture(scope="module")
def confounded() -> Finished:
    return finish(CONFOUNDED)


# -- before a run ----------------------------------------------------------------------


@pytest.mark.promise("A41")
def test_reason_prediction_and_gain_are_stored_before_the_run(lock):
    assert [p.probe for p, _ in lock.system.held] == [r.proposal.probe for r in lock.runs]
    for plan, stored in lock.system.held:
        assert stored.plan == plan.key
        assert stored.gain_bits > 0
        assert f"{stored.gain_bits:.2f} bits" in stored.reason
        assert stored.predictions
        for prediction in stored.predictions:
            assert set(prediction.by_hypothesis) == set(lock.study.hypotheses)
            assert all(
                math.isfinite(mean) and sd > 0 for mean, sd in prediction.by_hypothesis.values()
            )


@pytest.mark.promise("A41")
def test_the_ledger_keeps_the_order_of_the_loop(lock):
    book = lock.study._ledger
    kinds = [(e.kind, e.payload.get("run", e.payload.get("number"))) for e in book.events(1)]
    expected = [
        (kind, run.number) for run in lock.runs for kind in ("proposed", "started", "observed")
    ]
    assert kinds[:-1] == expected
    assert kinds[-1][0] == "verdict"
    proposed = {e.payload["run"]: e.payload for e in book.events(1) if e.kind == "proposed"}
    assert all(proposed[r.number]["gain_bits"] == r.proposal.gain_bits for r in lock.runs)


@pytest.mark.promise("A03")
def test_the_answer_is_ranked_hypotheses_and_the_next_probe():
    with opened(LOCK) as study:
        (proposal,) = study.ask()
        verdict = study.verdict()
        assert verdict.status is Status.OPEN
        assert {name for name, _ in verdict.ranking} == set(study.hypotheses)
        chances = [p for _, p in verdict.ranking]
        assert chances == sorted(chances, reverse=True)
        assert math.fsum(chances) == pytest.approx(1)
        assert proposal.probe in {p.name for p in case(LOCK).probes}
        assert proposal.run == 1
        assert study.ask() == [proposal]  # it stays the next one until it has run


def test_several_are_ranked_by_bits_per_second():
    with opened(LOCK) as study:
        found = study.ask(3)
    assert len({p.plan for p in found}) == 3
    assert [p.score for p in found] == sorted((p.score for p in found), reverse=True)
    assert all(p.score == pytest.approx(p.gain_bits / p.price_s) for p in found)


@pytest.mark.parametrize("n", [0, -1])
def test_asking_for_less_than_one_is_refused(lock, n):
    with pytest.raises(ValueRejected, match=f"n={n}"):
        lock.study.ask(n)


@pytest.mark.promise("A04")
@pytest.mark.parametrize("names", [(), ("gil_held",), ("gil_held", NO_EFFECT), (NONE_OF_THESE,)])
def test_fewer_than_two_mechanisms_are_no_study(names):
    with pytest.raises(ConfigError, match="at least two"):
        select(names, catalogue())


@pytest.mark.promise("A04")
def test_every_study_holds_two_rivals_beside_nothing_and_none(lock, nothing, confounded):
    for finished in (lock, nothing, confounded):
        names = set(finished.study.hypotheses)
        assert {NO_EFFECT, NONE_OF_THESE} <= names
        assert len(names - {NO_EFFECT, NONE_OF_THESE}) >= 2


@pytest.mark.promise("A05")
def test_every_pair_shows_both_predictions_and_the_probe_that_separates_best():
    with opened(CONFOUNDED) as study:
        study.run(max_runs=1)  # the arms: now only an intervention parts the two
        names = [n for n, _ in study.verdict().ranking]
        pairs = {frozenset((p.first, p.second)): p for p in study.pairs(len(names))}
        assert set(pairs) == {frozenset(pair) for pair in combinations(names, 2)}
        best = pairs[frozenset(("gil_held", "gc_pause"))]
        assert best.plan in {"serial in both arms", "call that lets go"}
        assert 0.3 < best.separation_bits <= 1
        for pair in pairs.values():
            assert pair.reading
            assert len(pair.expected) == 2
            assert all(math.isfinite(mean) and sd > 0 for mean, sd in pair.expected)


# -- after a run -----------------------------------------------------------------------


@pytest.mark.promise("A14")
@pytest.mark.parametrize("name", ["lock", "nothing", "confounded"])
def test_every_change_of_belief_is_that_of_a_run(name, request):
    finished = request.getfixturevalue(name)
    belief = dict(finished.study.priors)
    for run in finished.runs:
        assert run.before == pytest.approx(belief, abs=1e-12)
        weighed = {h: run.before[h] * 2 ** run.bits[h] for h in run.before}
        total = math.fsum(weighed.values())
        assert total == pytest.approx(1, abs=1e-6)
        assert run.after == pytest.approx({h: w / total for h, w in weighed.items()}, rel=1e-6)
        gained = math.fsum(p * math.log2(p / run.before[h]) for h, p in run.after.items() if p > 0)
        assert run.gained_bits == pytest.approx(gained, abs=1e-9)
        belief = run.after
    assert finished.study.probabilities() == pytest.approx(belief, abs=1e-12)


@pytest.mark.promise("A14")
def test_the_verdict_cites_runs_that_moved_the_belief(lock):
    gained = {r.number: r.gained_bits for r in lock.runs}
    assert lock.verdict.evidence
    assert set(lock.verdict.evidence) <= set(gained)
    cited = [gained[n] for n in lock.verdict.evidence]
    assert cited == sorted(cited, reverse=True)
    assert cited[0] == max(gained.values())


def test_each_run_is_listed_with_its_bits_and_price(lock):
    table = lock.study.runs_dataframe()
    assert list(table["run"]) == [r.number for r in lock.runs]
    assert table["gained_bits"].tolist() == [r.gained_bits for r in lock.runs]
    assert table["price_s"].tolist() == [r.price_s for r in lock.runs]
    prices = {p.name: p.cost_s * (1 + p.perturbation) for p in case(LOCK).probes}
    assert table["price_s"].tolist() == pytest.approx([prices[p] for p in table["probe"]])
    assert lock.study.spent_s == pytest.approx(table["price_s"].sum())


@pytest.mark.promise("A16")
def test_what_is_known_is_not_measured_again(lock, nothing, confounded):
    for finished in (lock, nothing, confounded):
        made = [r.proposal.plan for r in finished.runs]
        assert len(set(made)) == len(made)


@pytest.mark.promise("A16")
def test_a_probe_that_was_just_run_tells_less_than_is_worth_it():
    """Unlike a recorded case, a live system offers a probe again: its gain must say no."""
    rig = Rig(
        ticks=(
            Price(0, 2.0),
            ("gil_wait", "step_time"),
            lambda _: {
                "gil_wait@baseline": [0.0001] * 8,
                "gil_wait@candidate": [0.03, 0.0301, 0.0299, 0.03, 0.0302, 0.03, 0.0301, 0.03],
                "step_time@baseline": [0.1, 0.1001, 0.0999, 0.1, 0.1002, 0.1, 0.1001, 0.1],
                "step_time@candidate": [0.13, 0.1301, 0.1299, 0.13, 0.1302, 0.13, 0.1301, 0.13],
            },
        )
    )
    with study_on(rig) as study:
        before = study.score()[0]
        study.run(max_runs=1)
        after = study.score()[0]
        assert before.plan.key == after.plan.key
        assert before.gain.bits > 0.3
        assert after.gain.bits < 0.02


# -- when it stops ---------------------------------------------------------------------


@pytest.mark.promise("A19")
def test_the_verdict_names_the_kind_of_part_to_blame(lock, nothing):
    assert lock.verdict.part == "thread"
    assert "a thread" in " ".join(lock.verdict.establishes)
    assert nothing.verdict.part == ""


@pytest.mark.promise("A15")
def test_it_stops_because_the_question_is_settled(lock, nothing):
    assert lock.verdict.status is Status.DECIDED
    assert lock.verdict.causes == ("gil_held",)
    assert lock.verdict.probability >= lock.study.policy.decide_at
    assert "explanation" in lock.verdict.why
    assert nothing.verdict.status is Status.NO_EFFECT
    assert nothing.verdict.causes == ()
    assert lock.study.ask() == nothing.study.ask() == []


@pytest.mark.promise("A15")
def test_it_stops_because_nothing_is_worth_its_price():
    observing = without(case(CONFOUNDED), "serial in both arms", "call that lets go")
    with opened(observing) as study:
        verdict = study.run()
        assert verdict.status is Status.UNDETERMINED
        assert "0.02 bits" in verdict.why
        assert max(s.gain.bits for s in study.score()) < 0.02


@pytest.mark.promise("A15")
def test_it_stops_because_the_budget_is_spent_and_never_overdraws():
    with opened(LOCK, policy=Policy(budget_s=5.0)) as study:
        verdict = study.run()
        assert 0 < study.spent_s <= 5.0
        assert verdict.status in (Status.OUT_OF_BUDGET, Status.UNDETERMINED)
        assert "left" in verdict.why or "budget" in verdict.why
        assert study.ask() == []


@pytest.mark.promise("A15")
def test_it_stops_after_so_many_runs():
    with opened(LOCK, policy=Policy(max_runs=1)) as study:
        verdict = study.run()
    assert (verdict.status, verdict.runs) == (Status.OUT_OF_BUDGET, 1)
    assert "1 runs" in verdict.why


def test_one_call_may_be_limited_without_ending_the_study():
    with opened(NOTHING) as study:
        assert study.run(max_runs=1).status is Status.OPEN
        assert study.run(timeout=0).runs == 1
        assert study.run(max_price=0.5).runs == 1  # nothing is that cheap
        assert study.run(max_price=5).runs == 2
        assert study.spent_s <= 3 + 5


# -- which probe -----------------------------------------------------------------------


@pytest.mark.promise("A12")
def test_observation_alone_never_convinces_where_two_causes_look_alike(confounded):
    observing = without(case(CONFOUNDED), "serial in both arms", "call that lets go")
    with opened(observing) as study:
        seen = []
        study.run(on_event=lambda kind, run: seen.append(run) if kind == "run" else None)
        assert seen
        assert all(max(run.after.values()) < 0.8 for run in seen)
    assert confounded.verdict.status is Status.DECIDED
    assert confounded.verdict.causes == ("gil_held",)
    knobs = {"serial in both arms", "call that lets go"}
    first = next(i for i, r in enumerate(confounded.runs) if r.proposal.probe in knobs)
    assert all(max(r.after.values()) < 0.8 for r in confounded.runs[:first])


@pytest.mark.promise("A09")
def test_a_deliberately_slower_variant_is_chosen_when_it_tells_the_causes_apart(confounded):
    """It runs the step three times as slow, in both arms, and disturbs by 200 %."""
    slow = next(r for r in confounded.runs if r.proposal.probe == "serial in both arms")
    step = [s["values"] for s in slow.samples]
    assert min(map(min, step)) > 2 * 0.125
    assert slow.proposal.perturbation == 2.0
    assert slow.gained_bits > 0.3
    milder = {key for key, *_ in slow.proposal.runners_up}
    assert "call that lets go" in milder


@pytest.mark.promise("A08")
@pytest.mark.parametrize("harm", [0.0, 1.0])
def test_of_two_that_would_decide_equally_the_less_disturbing_is_chosen(harm):
    found = case(NOTHING)
    arms = next(p for p in found.probes if p.name == "arms in turns")
    loud = arms.model_copy(update={"name": "a, loud", "perturbation": 0.3})
    quiet = arms.model_copy(update={"name": "b, quiet", "perturbation": 0.0})
    twins = found.model_copy(update={"probes": (loud, quiet)})
    with opened(twins, policy=Policy(harm=harm)) as study:
        gain = {s.plan.key: s.gain.bits for s in study.score()}
        assert gain["a, loud"] == gain["b, quiet"]
        assert study.ask()[0].plan == "b, quiet"


# -- the same again --------------------------------------------------------------------


@pytest.mark.promise("A56")
def test_same_seed_and_data_give_byte_identical_decisions(confounded):
    again = finish(CONFOUNDED)

    def as_bytes(finished: Finished) -> bytes:
        decided = {
            "proposals": [asdict(p) for p in finished.proposals],
            "after": [r.after for r in finished.runs],
            "verdict": asdict(finished.verdict),
        }
        return json.dumps(decided).encode()

    assert as_bytes(again) == as_bytes(confounded)


# -- what goes wrong -------------------------------------------------------------------


def steps(_: int) -> dict[str, list[float]]:
    wobble = [1.0, 1.002, 0.998, 1.001, 0.999, 1.0, 1.003, 0.997]
    return {
        "step_time@baseline": [0.1 * w for w in wobble],
        "step_time@candidate": [0.13 * w for w in wobble[::-1]],
    }


def test_a_probe_that_fails_is_paid_for_and_not_offered_for_ever():
    rig = Rig(
        broken=(Price(0, 1.0), ("gil_wait", "gc_pause"), breaks),
        arms=(Price(0, 50.0), ("step_time",), steps),
    )
    with study_on(rig, policy=Policy(unattended_failures=2)) as study:
        before = study.probabilities()
        (proposal,) = study.ask()
        assert proposal.probe == "broken"
        run = study.execute(proposal)
        assert run.state is RunState.FAILED
        assert run.error == "the instrument fell off"
        assert run.price_s > 0
        assert study.spent_s == run.price_s == run.seconds
        assert study.probabilities() == before == run.after
        verdict = study.run()
        assert rig.executed.count("broken") == 2
        assert "broken(blocks=8)" not in {s.plan.key for s in study.score()}
        assert "run 1, 3 failed" in " ".join(verdict.leaves_open)
        assert verdict.status is not Status.OPEN


def test_an_interrupted_probe_gives_its_run_back():
    def interrupted(_: int) -> dict[str, list[float]]:
        raise KeyboardInterrupt

    rig = Rig(arms=(Price(0, 1.0), ("step_time",), interrupted))
    with study_on(rig) as study:
        (proposal,) = study.ask()
        with pytest.raises(KeyboardInterrupt):
            study.execute(proposal)
        assert study.ask() == [proposal]
        assert study.spent_s == 0


def test_a_run_that_has_ended_is_not_run_again(lock):
    with pytest.raises(UsageError, match="ended"):
        lock.study.execute(lock.proposals[0])


def test_a_plan_that_needs_approval_waits_for_a_person():
    class Risky(Rig):
        def _plan(self, name: str) -> Plan:
            plan = super()._plan(name)
            return Plan(**{**plan.__dict__, "risk": "concurrency"})

    rig = Risky(arms=(Price(0, 1.0), ("step_time",), steps))
    with study_on(rig) as study:
        assert study.run().status is Status.UNDETERMINED
        assert "waits for approval" in study.verdict().why
        assert rig.executed == []
        with pytest.raises(UsageError, match="arms"):
            study.approve("arns(blocks=8)", by="somebody")
        study.approve("arms(blocks=8)", by="somebody")
        study.run(max_runs=1)
        assert rig.executed == ["arms"]


def test_the_frame_covers_what_the_case_can_read(lock):
    assert Cell("gil_wait", CANDIDATE) in lock.study.frame.cell_index
    assert Cell("gil_wait", BASELINE) in lock.study.frame.cell_index


def test_a_report_is_written_from_a_finished_study(lock, tmp_path: Path):
    page = lock.study.report(tmp_path / "lock.html").read_text()
    assert "gil_held" in page or "gil held" in page
    for run in lock.runs:
        assert run.proposal.probe in page
