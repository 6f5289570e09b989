from __future__ import annotations

import math
from collections.abc import Callable
from itertools import permutations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from argus_bed.errors import UnknownName, ValueRejected
from argus_bed.frame import COINCIDENCE_SPREAD, Cell, Frame
from argus_bed.inference.evidence import Evidence, merge
from argus_bed.probe import Measurement, Reading

Contrast = Callable[..., Measurement]


def cells_at(frame: Frame, *values: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Step time of the candidate at ``values``, one particle each; everything else at zero."""
    cells = torch.zeros(len(values), len(frame.cells), dtype=torch.float64)
    cells[:, frame.cell_index[Cell("step_time", "candidate")]] = torch.tensor(
        values, dtype=torch.float64
    )
    return cells, torch.zeros_like(cells)


def test_density_is_the_documented_mixture(frame: Frame, contrast: Contrast) -> None:
    m = contrast(family="student", noise=0.1, benign=0.2, coincidence=0.1, dof=4.0)
    cells, free = cells_at(frame, 0.3)
    free = free + 0.05
    found = Evidence().add([Reading(m, 0.7)]).log_likelihood(cells, free, frame.cell_index)
    own = math.sqrt(0.1**2 + 0.2**2 + 2 * 0.05**2)
    wide = math.sqrt(COINCIDENCE_SPREAD**2 + 0.1**2 + 0.2**2)
    expected = 0.9 * stats.t.pdf(0.7, 4, 0.3, own) + 0.1 * stats.t.pdf(0.7, 3, 0.0, wide)
    assert float(found[0]) == pytest.approx(math.log(expected), abs=1e-12)


def test_flags_read_log_odds(frame: Frame) -> None:
    m = Measurement(Cell("step_time", "candidate"), noise=0.0, coincidence=0.2, family="bernoulli")
    cells, free = cells_at(frame, 1.5)
    found = Evidence().add([Reading(m, 1.0)]).log_likelihood(cells, free, frame.cell_index)
    assert float(found[0]) == pytest.approx(math.log(0.8 / (1 + math.exp(-1.5)) + 0.1), abs=1e-12)


def test_gradient_reaches_the_cells(frame: Frame, contrast: Contrast) -> None:
    cells, free = cells_at(frame, 0.3, -0.2)
    m = contrast(family="student", coincidence=0.1)
    evidence = Evidence().add([Reading(m, 0.5), Reading(contrast("sm_clock"), 0.0)])
    assert torch.autograd.gradcheck(
        lambda c: evidence.log_likelihood(c, free, frame.cell_index), cells.requires_grad_(True)
    )


READING = st.tuples(
    st.floats(-1, 1), st.floats(0.01, 1), st.floats(0, 0.5), st.floats(0, 0.95), st.floats(2, 30)
)


@given(st.lists(READING, min_size=2, max_size=4))
def test_order_of_repeats_does_not_matter(given: list[tuple[float, ...]]) -> None:
    a, b = Cell("step_time", "candidate"), Cell("step_time", "baseline")
    readings = [Reading(Measurement(a, b, n, s, c, d), v) for v, n, s, c, d in given]
    first = merge(readings)
    assert all(merge(p) == first for p in permutations(readings))


def test_repeating_never_averages_the_benign_part_out(contrast: Contrast) -> None:
    m = contrast(noise=0.3, benign=0.2)
    merged = merge([Reading(m, v) for v in (0.1, 0.2, 0.3) * 300])
    assert merged.measurement.noise == pytest.approx(0.01)
    assert merged.measurement.benign == 0.2
    assert merged.value == pytest.approx(0.2)


def test_a_void_reading_counts_for_little(contrast: Contrast) -> None:
    good, void = contrast(coincidence=0.02), contrast(coincidence=0.98)
    merged = merge([Reading(good, 0.0), Reading(void, 1.0)])
    assert merged.value == pytest.approx(0.02, abs=1e-3)
    assert merged.measurement.coincidence < 0.05


def test_prediction_of_a_repeat_is_conditional(frame: Frame, contrast: Contrast) -> None:
    """p(y2 | y1) times p(y1) is the joint normal of two readings of one deviation."""
    m, again = contrast(noise=0.1, benign=0.4), contrast(noise=0.2, benign=0.4)
    cells, free = cells_at(frame, 0.3, -1.0)
    evidence = Evidence().add([Reading(m, 0.6)])
    found = evidence.predictive([again], cells, free, frame.cell_index)
    y = torch.tensor([[0.5]], dtype=torch.float64)
    conditional = found.joint(y)[0]
    first = evidence.log_likelihood(cells, free, frame.cell_index)
    shared = [[0.4**2 + 0.1**2, 0.4**2], [0.4**2, 0.4**2 + 0.2**2]]
    for i, mu in enumerate((0.3, -1.0)):
        joint = stats.multivariate_normal.logpdf([0.6, 0.5], [mu, mu], shared)
        assert float(conditional[i] + first[i]) == pytest.approx(joint, abs=1e-9)


def test_merged_likelihood_agrees_with_two_readings(frame: Frame, contrast: Contrast) -> None:
    """Ratios between particles are those of the joint density of both readings."""
    one, two = contrast(noise=0.1, benign=0.4), contrast(noise=0.2, benign=0.4)
    cells, free = cells_at(frame, 0.3, -1.0)
    evidence = Evidence().add([Reading(one, 0.6), Reading(two, 0.5)])
    found = evidence.log_likelihood(cells, free, frame.cell_index)
    shared = [[0.4**2 + 0.1**2, 0.4**2], [0.4**2, 0.4**2 + 0.2**2]]
    exact = [stats.multivariate_normal.logpdf([0.6, 0.5], [mu, mu], shared) for mu in (0.3, -1.0)]
    assert float(found[0] - found[1]) == pytest.approx(exact[0] - exact[1], abs=1e-9)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_readings_must_be_finite(value: float, contrast: Contrast) -> None:
    with pytest.raises(ValueRejected, match="finite"):
        Evidence().add([Reading(contrast(), value)])


def test_a_cell_outside_the_frame_is_named(frame: Frame) -> None:
    m = Measurement(Cell("power", "candidate"))
    cells, free = cells_at(frame, 0.0)
    with pytest.raises(UnknownName, match="power"):
        Evidence().add([Reading(m, 0.0)]).log_likelihood(cells, free, frame.cell_index)
