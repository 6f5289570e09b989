"""A simulated system: what it reads, and that a study runs on it as on any other.

Statistical tests state their false-alarm rate: how often they fail if the program is right.
Seeds are fixed and were not chosen.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from argus_bed.errors import UnknownName, ValueRejected
from argus_bed.frame import Cell, Condition, Frame, Stage
from argus_bed.hypothesis import catalogue, select
from argus_bed.inference.belief import Belief
from argus_bed.inference.likelihood import quantile
from argus_bed.ledger import Ledger
from argus_bed.probe import Price, SideEffect
from argus_bed.records import Status
from argus_bed.study.engine import Study
from argus_bed.study.policy import Policy
from argus_bed.study.readings import to_readings
from argus_bed.study.system import System
from argus_bed.workload.simulated import (
    Distortion,
    SimulatedProbe,
    SimulatedSystem,
    Truth,
    draw_truths,
    unlisted,
)

ARMS = ("baseline", "candidate")
HYPOTHESES = select(("gil_held", "gc_pause"), catalogue())


def both(*quantities: str, stage: str | None = None) -> tuple[Cell, ...]:
    return tuple(Cell(q, arm, stage) for q in quantities for arm in ARMS)


OFF = tuple(Cell("step_time", c) for c in ("candidate", "off"))
PROBES = (
    SimulatedProbe("arms", "end_to_end", both("step_time"), Price(0.0, 60.0), {"step_time": 0.004}),
    SimulatedProbe(
        "ticks",
        "gil_ticks",
        both("step_time", "gil_wait", "progress_rate"),
        Price(0.0, 10.0, 0.01),
        {"step_time": 0.01},
    ),
    SimulatedProbe(
        "callbacks",
        "gc_callbacks",
        both("step_time", "gc_pause", "gc_collections"),
        Price(0.0, 10.0),
    ),
    SimulatedProbe("slope", "delay_injection", (Cell("delay_slope", "candidate", "k"),), Price()),
    SimulatedProbe(
        "names", "profiler_window", (Cell("kernel_name_changed", "candidate"),), Price()
    ),
    SimulatedProbe("busy", "profiler_window", both("device_busy", "temperature"), Price()),
    SimulatedProbe("collector", "controlled_variant", OFF, Price(0.0, 100.0)),
)
FRAME = Frame(
    "step_time",
    (
        Condition("baseline"),
        Condition("candidate"),
        Condition("off", "candidate", "collector", "off", frozenset({"gc_pause"})),
    ),
    (Stage("k", "compute", True),),
    tuple(dict.fromkeys(c for p in PROBES for c in p.cells)),
)
NOTHING = Truth("no_effect", np.zeros(len(FRAME.cells)), np.zeros(len(FRAME.cells)))


def system(truth: Truth = NOTHING, seed: int = 0, **settings: object) -> SimulatedSystem:
    return SimulatedSystem(FRAME, truth, PROBES, seed=seed, **settings)  # type: ignore[arg-type]


def test_a_simulated_system_is_a_system() -> None:
    found: System = system()
    plans = found.plans({}, ())
    assert [p.probe for p in plans] == [p.name for p in PROBES]
    assert [p.kind for p in plans][:2] == ["end_to_end", "gil_ticks"]
    assert found.plans({}, ("arms", "ticks"))[0].probe == "callbacks"
    assert all(found.signal(p).keys() >= {"question", "level", "leaves_open"} for p in plans)
    assert found.describe(plans[0]) == "end to end"


def test_samples_give_back_the_readings_that_were_drawn() -> None:
    """Through units, links and steps of the engine's own summary of samples."""
    cells = np.random.default_rng(0).normal(0.0, 0.3, len(FRAME.cells))
    for seed in range(20):
        found = system(Truth("gil_held", cells, np.full(len(FRAME.cells), 0.1)), seed)
        for plan in found.plans({}, ()):
            seen = found.execute(plan, 0)
            assert seen == found.execute(plan, 1)
            assert {s.cell for s in seen.samples} == set(plan.reads)
            for read in to_readings(FRAME, plan.measurements, seen.samples, {}):
                assert read.reading is not None
                drawn = found.reading(plan, read.measurement)
                if abs(drawn) < 3.8:  # fractions are clipped at 2 %, counts at a factor of 50
                    assert read.reading.value == pytest.approx(drawn, abs=1e-9)
                assert read.reading.measurement == read.measurement


def test_readings_have_the_moments_that_a_belief_predicts() -> None:
    """Mean, and how often a reading falls below quartiles of the belief's own outcomes.

    2000 truths of one hypothesis; false-alarm rate 0.001 over all 11 tests (Bonferroni).
    """
    n, alarm = 2000, 0.001 / 11
    gil = catalogue()["gil_held"]
    truths = draw_truths([gil], FRAME, n, seed=5)
    plan = system().plans({}, ())[1]
    belief = Belief([gil], FRAME, seed=0, particles=4096)
    mean, sd = belief.predict(plan.measurements)["gil_held"]
    drawn = np.array(
        [
            [s.reading(plan, m) for m in plan.measurements]
            for s in (system(t, i) for i, t in enumerate(truths))
        ]
    )
    assert drawn.shape == (n, 3)
    for i in range(3):
        # winsorised where the Student-t's tails make a mean of squares useless
        z = (drawn[:, i].mean() - mean[i]) / (drawn[:, i].std() / math.sqrt(n))
        assert abs(z) < stats.norm.isf(alarm / 2), (i, mean[i], drawn[:, i].mean())
        density = belief.density("gil_held", [plan.measurements[i]])
        for level in (-0.7, 0.0, 0.7):
            at = mean[i] + level * sd[i]
            below = _share_below(density, belief.particles("gil_held").weights.numpy(), at)
            hits = int((drawn[:, i] < at).sum())
            assert stats.binomtest(hits, n, below).pvalue > alarm, (i, level, hits / n, below)


def _share_below(density, weights, at: float) -> float:
    """Probability of a reading below ``at``: the mixture's own distribution function."""
    total = 0.0
    for k in (0, 1):
        z = (at - density.loc[k, :, 0]) / density.scale[k, :, 0]
        total += float(
            weights @ (density.weight[k, :, 0].numpy() * stats.t.cdf(z, density.dof[k, 0]))
        )
    return total


def test_a_repeated_reading_sees_the_same_deviation() -> None:
    """Step times of two probes share what the cell does by itself, and no noise."""
    differences, own = [], []
    for seed in range(400):
        found = system(seed=seed)
        arms, ticks = found.plans({}, ())[:2]
        one, other = (next(m for m in p.measurements if m.cell == OFF[0]) for p in (arms, ticks))
        differences.append(found.reading(arms, one) - found.reading(ticks, other))
        own.append(found.reading(ticks, other))
    close = np.quantile(np.abs(differences), 0.5) / (math.hypot(0.004, 0.01) * 0.74)
    assert 0.8 < close < 1.3  # median of |t| of 4 degrees is 0.74; 0.1 is five standard errors
    assert quantile(_tensor(0.75), _tensor(4.0)).item() == pytest.approx(0.74, abs=0.005)
    assert np.std(own) < 0.3


def _tensor(value: float):
    import torch

    return torch.tensor([value], dtype=torch.float64)


def test_truths_follow_the_prior() -> None:
    """Hypotheses by weight: chi-squared of 3 degrees, false-alarm rate 0.001."""
    truths = draw_truths(HYPOTHESES, FRAME, 600, seed=1)
    weights = {h.name: h.weight for h in HYPOTHESES}
    counts = {n: sum(t.hypothesis == n for t in truths) for n in weights}
    expected = {n: 600 * w / sum(weights.values()) for n, w in weights.items()}
    found = sum((counts[n] - expected[n]) ** 2 / expected[n] for n in weights)
    assert found < stats.chi2.isf(0.001, len(weights) - 1), counts
    again = draw_truths(HYPOTHESES, FRAME, 600, seed=1)
    assert all(np.array_equal(a.cells, b.cells) for a, b in zip(truths, again, strict=True))
    with pytest.raises(ValueRejected, match="n=0"):
        draw_truths(HYPOTHESES, FRAME, 0, seed=1)


def test_distortions_do_what_they_say() -> None:
    cells = np.zeros(len(FRAME.cells))
    cells[FRAME.cell_index[Cell("gil_wait", "candidate")]] = 2.0
    cells[FRAME.cell_index[Cell("step_time", "candidate")]] = 0.2
    truth = Truth("gil_held", cells, np.zeros(len(cells)))

    def middles(distortion: Distortion) -> np.ndarray:
        rows = []
        for seed in range(300):
            found = system(truth, seed, distortion=distortion)
            plan = found.plans({}, ())[1]
            rows.append([found.reading(plan, m) for m in plan.measurements])
        return np.quantile(rows, (0.25, 0.5, 0.75), axis=0)

    plain, flipped, noisy = map(
        middles, (Distortion(), Distortion(marks=-0.5), Distortion(noise=3.0))
    )
    names = [m.cell.quantity for m in system().plans({}, ())[1].measurements]
    wait, step = names.index("gil_wait"), names.index("step_time")
    assert plain[1, wait] == pytest.approx(2.0, abs=0.1)
    assert flipped[1, wait] == pytest.approx(-1.0, abs=0.1)
    assert flipped[1, step] == pytest.approx(0.2, abs=0.01)
    wider = (noisy[2] - noisy[0]) / (plain[2] - plain[0])
    assert 2.0 < wider[step] < 4.0
    with pytest.raises(ValueRejected, match=r"noise = 0\.0"):
        Distortion(noise=0.0)


def test_an_unlisted_truth_moves_what_it_is_told_to() -> None:
    truth = unlisted(FRAME, {"temperature": 12.0}, longer=0.5)
    at = FRAME.cell_index
    assert truth.hypothesis == ""
    assert truth.cells[at[Cell("step_time", "candidate")]] == pytest.approx(math.log(1.5))
    assert truth.cells[at[Cell("temperature", "candidate")]] == 12.0
    assert truth.cells[at[Cell("temperature", "baseline")]] == 0.0
    with pytest.raises(UnknownName, match="copy_count"):
        unlisted(FRAME, {"copy_count": 1.0})


def test_a_void_reading_is_a_coincidence() -> None:
    """A side effect that always strikes: readings centre at zero, whatever the truth."""
    cells = np.zeros(len(FRAME.cells))
    cells[FRAME.cell_index[Cell("gil_wait", "candidate")]] = 4.0
    truth = Truth("gil_held", cells, np.zeros(len(cells)))
    struck = SideEffect("other", "the moon is full", 1.0, frozenset({"gil_wait"}))
    probes = tuple(replace(p, side_effects=(struck,)) for p in PROBES[:2])
    values = []
    for seed in range(300):
        found = SimulatedSystem(FRAME, truth, probes, seed=seed)
        plan = found.plans({}, ())[1]
        (wait,) = (m for m in plan.measurements if m.cell.quantity == "gil_wait")
        values.append(found.reading(plan, wait))
    assert abs(np.median(values)) < 0.4


@pytest.mark.parametrize(
    ("probe", "message"),
    [
        (SimulatedProbe("p", "k", (Cell("gil_wait", "candidate"),), Price()), "step_time"),
        (SimulatedProbe("p", "k", (Cell("step_time", "candidate"),), Price()), "compares with"),
        (SimulatedProbe("p", "k", both("power"), Price()), "power"),
        (replace(PROBES[0], needs=("nobody",)), "nobody"),
        (
            replace(PROBES[0], side_effects=(SideEffect("other", "setting x is 1"),)),
            "setting x is 1",
        ),
    ],
)
def test_what_cannot_be_simulated_is_refused(probe: SimulatedProbe, message: str) -> None:
    with pytest.raises((ValueRejected, UnknownName), match=message):
        SimulatedSystem(FRAME, NOTHING, (probe,), seed=0)


def test_a_study_runs_on_it_unchanged() -> None:
    """A truth with every mark of its mechanism is found, and the runs are priced as announced."""
    gil = next(t for t in draw_truths([catalogue()["gil_held"]], FRAME, 50, seed=2) if _clear(t))
    study = Study(
        "simulated",
        system(gil, 3),
        HYPOTHESES,
        Ledger.open("sqlite://"),
        policy=Policy(max_runs=8),
        seed=0,
        belief=Belief(HYPOTHESES, FRAME, seed=0, particles=256),
    )
    with study:
        verdict = study.run()
        assert verdict.status is Status.DECIDED
        assert verdict.causes == ("gil_held",)
        assert verdict.price_s <= 191.0


def _clear(truth: Truth) -> bool:
    """The wait for the lock and the step both went up by much, in the candidate."""
    at = FRAME.cell_index
    moved = truth.cells[at[Cell("gil_wait", "candidate")]]
    return bool(moved > 2.0 and truth.cells[at[Cell("step_time", "candidate")]] > 0.1)
