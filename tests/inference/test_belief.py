from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from argus_bed.design.gain import gains
from argus_bed.errors import UnknownName, UsageError, ValueRejected
from argus_bed.frame import Cell, Frame
from argus_bed.hypothesis import catalogue
from argus_bed.inference.belief import Belief
from argus_bed.probe import Measurement, Reading

Make = Callable[..., object]


def belief_of(frame: Frame, *hypotheses: object, seed: int = 1) -> Belief:
    return Belief(hypotheses, frame, seed=seed)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [0.3, 1.5, 3.5])
def test_conjugate_normal(value: float, frame: Frame, plain: Make, contrast: Make) -> None:
    """Posterior mean, sd and log evidence of the normal-normal model, within 0.02."""
    belief = belief_of(frame, plain()).update([Reading(contrast(noise=0.3), value)])
    values, weights = belief.samples("normal")
    mean = float(weights @ values["mu"])
    sd = math.sqrt(float(weights @ (values["mu"] - mean) ** 2))
    gain = 1 / (1 + 0.3**2)
    assert mean == pytest.approx(gain * value, abs=0.02)
    assert sd == pytest.approx(0.3 * math.sqrt(gain), abs=0.02)
    exact = stats.norm.logpdf(value, 0, math.sqrt(1 + 0.3**2))
    assert belief.log_evidence["normal"] == pytest.approx(exact, abs=0.02)


def test_narrow_likelihood_is_reached_by_tempering(
    frame: Frame, plain: Make, contrast: Make
) -> None:
    belief = belief_of(frame, plain()).update([Reading(contrast(noise=0.002), 1.0)])
    exact = stats.norm.logpdf(1.0, 0, math.sqrt(1 + 0.002**2))
    assert belief.log_evidence["normal"] == pytest.approx(exact, abs=0.1)
    assert belief.particles("normal").effective >= 256


def test_probabilities_are_bayes(frame: Frame, plain: Make, contrast: Make) -> None:
    belief = belief_of(frame, plain("null", 0.0, 0.0), plain("shift", 0.5, 0.0))
    after = belief.update([Reading(contrast(noise=0.5), 0.4)])
    odds = stats.norm.pdf(0.4, 0.5, 0.5) / stats.norm.pdf(0.4, 0.0, 0.5)
    assert after.probabilities()["shift"] == pytest.approx(odds / (1 + odds), abs=1e-9)
    assert belief.probabilities() == {"null": 0.5, "shift": 0.5}


def test_order_does_not_matter(frame: Frame, contrast: Make) -> None:
    """Log evidence in either order, and all at once, within 0.3 nat (Monte Carlo error)."""
    known = catalogue()
    readings = [
        Reading(contrast("step_time", family="student", noise=0.03), 0.15),
        Reading(contrast("exposed_comm", family="student", noise=0.15, benign=0.3), 2.0),
        Reading(contrast("step_time", family="student", noise=0.03), 0.13),
    ]
    start = belief_of(frame, known["overlap_lost"])
    one = start
    for r in readings:
        one = one.update([r])
    other = start
    for r in reversed(readings):
        other = other.update([r])
    found = [b.log_evidence["overlap_lost"] for b in (one, other, start.update(readings))]
    assert max(found) - min(found) < 0.3


def test_the_same_seed_gives_the_same_belief(frame: Frame, contrast: Make) -> None:
    reading = Reading(contrast(family="student", noise=0.01), 0.2)
    one, two = (
        belief_of(frame, catalogue()["overlap_lost"], seed=7).update([reading]) for _ in range(2)
    )
    assert one.log_evidence == two.log_evidence
    assert np.array_equal(
        one.samples("overlap_lost")[0]["share"], two.samples("overlap_lost")[0]["share"]
    )


@pytest.mark.promise("A16")
def test_a_known_answer_tells_nothing_more(frame: Frame, contrast: Make) -> None:
    names = ("overlap_lost", "gil_held", "no_effect", "none_of_these")
    belief = belief_of(frame, *(catalogue()[n] for n in names))
    m = contrast("exposed_comm", family="student", noise=0.05, benign=0.3, coincidence=0.15)
    before = gains(belief, [[m]])[0].bits
    after = gains(belief.update([Reading(m, 2.0)]), [[m]])[0].bits
    assert before > 0.1
    assert after < 0.01


def test_predictions_are_in_link_space(frame: Frame, plain: Make, contrast: Make) -> None:
    mean, sd = belief_of(frame, plain(mean=0.4, sd=0.3)).predict([contrast(noise=0.4)])["normal"]
    assert mean[0] == pytest.approx(0.4, abs=0.005)
    assert sd[0] == pytest.approx(0.5, abs=0.01)


def test_predictive_p_is_a_tail_probability(frame: Frame, plain: Make, contrast: Make) -> None:
    belief = belief_of(frame, plain(sd=0.3))
    for value in (0.0, 0.5, 1.0, 5.0):
        exact = 2 * stats.norm.sf(value / 0.5)
        found = belief.predictive_p([Reading(contrast(noise=0.4), value)])
        assert found == pytest.approx(exact, abs=0.05)
    assert belief.predictive_p([Reading(contrast(noise=0.4), 5.0)]) < 0.005


def test_datatree_holds_everything_and_can_be_saved(
    frame: Frame, plain: Make, contrast: Make, tmp_path: Path
) -> None:
    import xarray as xr

    belief = belief_of(frame, plain("one"), plain("two", 0.2, 0.0))
    tree = belief.update([Reading(contrast(), 0.2)]).datatree(draws=100)
    assert float(tree["belief"]["probability"].sum()) == pytest.approx(1.0)
    assert tree["one/posterior"]["mu"].shape == (1, 100)
    pytest.importorskip("h5py", reason="h5netcdf writes through h5py")
    tree.to_netcdf(tmp_path / "belief.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "belief.nc", engine="h5netcdf") as read:
        assert float(read["belief"]["log_evidence"][0]) == pytest.approx(
            float(tree["belief"]["log_evidence"][0])
        )


def test_leaving_improbable_hypotheses_unmoved_changes_no_probability(
    frame: Frame, contrast: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Precise readings at once, where weights alone are roughest; both ways, within 0.01."""
    names = ("overlap_lost", "no_effect", "none_of_these", "power_cap")
    start = belief_of(frame, *(catalogue()[n] for n in names))
    readings = [
        Reading(contrast("step_time", family="student", noise=0.004, coincidence=0.02), 0.15),
        Reading(contrast("exposed_comm", family="student", noise=0.05, coincidence=0.15), 2.6),
        Reading(contrast("overlap_fraction", family="student", noise=0.05, benign=0.3), -2.0),
    ]
    quick = start.update(readings).probabilities()
    monkeypatch.setattr("argus_bed.inference.belief.OUT_OF_THE_RUNNING", -1.0)
    thorough = start.update(readings).probabilities()
    assert quick == pytest.approx(thorough, abs=0.01)


def test_bad_input_is_named(frame: Frame, plain: Make, contrast: Make) -> None:
    with pytest.raises(UsageError, match="normal"):
        belief_of(frame, plain(), plain())
    belief = belief_of(frame, plain())
    with pytest.raises(UnknownName, match="norml"):
        belief.samples("norml")
    with pytest.raises(ValueRejected, match="finite"):
        belief.update([Reading(contrast(), math.nan)])
    with pytest.raises(UnknownName, match="power"):
        belief.update([Reading(Measurement(Cell("power", "candidate")), 0.0)])
    with pytest.raises(UsageError, match="positive"):
        Belief([plain()], frame, seed=0, prior={"normal": 0.0})  # type: ignore[list-item]
