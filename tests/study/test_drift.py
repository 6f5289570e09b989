"""Arms that take turns: what drifts in both is no effect.

False alarm: a contrast over three of its own standard errors. Under a Student-t with ten
degrees of freedom or more that happens in at most 1.4 % of runs, so four or more of the
60 simulated ones have a probability under 0.02 (binomial); the seeds are fixed.
"""

from __future__ import annotations

import numpy as np
import pytest

from argus_bed.frame import BASELINE, CANDIDATE, Cell, Condition, Frame
from argus_bed.hypothesis import NO_EFFECT, catalogue
from argus_bed.inference.belief import Belief
from argus_bed.probe import Measurement, Price, Sample
from argus_bed.records import Status
from argus_bed.study.readings import to_readings
from tests.study.small import Rig, study_on

ARMS = (BASELINE, CANDIDATE)
STEP = {arm: Cell("step_time", arm) for arm in ARMS}
FRAME = Frame("step_time", tuple(map(Condition, ARMS)), (), tuple(STEP.values()))
CONTRAST = Measurement(STEP[CANDIDATE], STEP[BASELINE], noise=0.005, benign=0.003)
BLOCKS = 24


def drifting(seed: int, *, drift: float = 0.4, in_turns: bool = True) -> dict[str, np.ndarray]:
    """Step times of two equal arms while the machine slows down by ``drift`` in all.

    In turns: A B B A, with a random start. Otherwise one arm after the other.
    """
    rng = np.random.default_rng(seed)
    order = []
    for _ in range(BLOCKS // 2):
        first = rng.permutation(2)
        order += [*first, *first[::-1]]
    if not in_turns:
        order = [0] * BLOCKS + [1] * BLOCKS
    warm = 1 + drift * np.arange(len(order)) / len(order)
    times = 0.1 * warm * (1 + rng.normal(0, 0.004, len(order)))
    return {arm: times[np.array(order) == i] for i, arm in enumerate(ARMS)}


def read(values: dict[str, np.ndarray], paired: bool = True):
    samples = [Sample(STEP[arm], tuple(map(float, values[arm])), paired) for arm in ARMS]
    (found,) = to_readings(FRAME, [CONTRAST], samples, {})
    return found.reading


@pytest.mark.promise("A24")
def test_drift_is_no_contrast_when_the_arms_take_turns():
    scores = []
    for seed in range(60):
        reading = read(drifting(seed))
        scores.append(abs(reading.value) / reading.measurement.noise)
    assert sum(s > 3 for s in scores) < 4


def test_the_same_drift_would_fool_arms_measured_one_after_the_other():
    """Without this the test above could not fail."""
    reading = read(drifting(0, in_turns=False), paired=True)
    assert abs(reading.value) > 3 * reading.measurement.noise
    assert reading.value > 0.1


@pytest.mark.promise("A24")
def test_drift_causes_no_false_verdict():
    library = catalogue()
    names = (NO_EFFECT, "none_of_these", "gil_held", "gc_pause")
    prior = Belief([library[n] for n in names], FRAME, seed=1, particles=256)
    for seed in range(3):
        after = prior.update([read(drifting(seed))]).probabilities()
        assert max(after, key=after.__getitem__) == NO_EFFECT
        assert after["gil_held"] + after["gc_pause"] < 0.2
    fooled = prior.update([read(drifting(0, in_turns=False))]).probabilities()
    assert fooled[NO_EFFECT] < 0.2


@pytest.mark.promise("A24")
def test_a_study_on_a_drifting_machine_ends_in_no_effect():
    def arms(seed: int) -> dict[str, list[float]]:
        return {f"step_time@{arm}": list(v) for arm, v in drifting(seed).items()}

    def quiet(seed: int) -> dict[str, list[float]]:
        rng = np.random.default_rng(seed)
        return {
            f"{q}@{arm}": list(rng.uniform(0.0001, 0.0003, 8))
            for q in ("gil_wait", "gc_pause")
            for arm in ARMS
        } | arms(seed)

    rig = Rig(
        arms=(Price(0, 5.0), ("step_time",), arms),
        waits=(Price(0, 2.0), ("gil_wait", "gc_pause", "step_time"), quiet),
    )
    with study_on(rig) as study:
        assert study.run().status is Status.NO_EFFECT
