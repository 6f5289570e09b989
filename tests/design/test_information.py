"""Closed forms. Each is met at the default effort within 3 of the stated errors and within
0.01 bit.

Quadrature is no random estimate and its seeds change nothing; where outcomes or particles
are drawn, a true error of 3 standard errors comes up in 0.3 % of all seeds. Those here are
fixed and were not chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytest
import torch
from scipy import integrate, stats

from argus_bed.design.gain import DEFAULT, Gain, Target, gains, to_gain
from argus_bed.design.information import arrays, flags, table
from argus_bed.errors import ValueRejected
from argus_bed.frame import Frame
from argus_bed.hypothesis import Hypothesis
from argus_bed.inference.belief import Belief
from argus_bed.inference.likelihood import Density
from argus_bed.inference.prior import sobol
from tests.inference.small import nothing

Make = Callable[..., object]


def gain_of(density: Density, probability: list[float], target: Target, outcomes: int = 0) -> Gain:
    p = torch.tensor(probability, dtype=torch.float64)
    found = table(density, p, outcomes=outcomes or DEFAULT.outcomes, seed=3)
    return to_gain(found.information(p), target)


def close(found: Gain, exact: float, bits: float = 0.01) -> None:
    assert abs(found.bits - exact) <= 3 * found.error_bits + 1e-6, (found, exact)
    assert abs(found.bits - exact) <= bits, (found, exact)


def normals(n: int, dim: int, seed: int = 0) -> torch.Tensor:
    points = stats.norm.ppf(sobol(n, dim, seed))
    return torch.as_tensor(np.random.default_rng(seed).permutation(points))


@dataclass(frozen=True, eq=False, repr=False)
class Two(Hypothesis):
    """Two cells of the candidate, each with a Normal(0, sd) of its own."""

    sds: tuple[float, float] = (1.0, 2.0)

    def model(self, frame: Frame) -> pm.Model:
        with pm.Model() as model:
            values = {
                q: pm.Normal(q, 0.0, sd)
                for q, sd in zip(("step_time", "sm_clock"), self.sds, strict=True)
            }
            cells = [
                values.get(c.quantity, 0.0) if c.condition == "candidate" else 0.0
                for c in frame.cells
            ]
            pm.Deterministic("cells", pm.math.stack(cells))
            pm.Deterministic("free", pm.math.stack([0.0] * len(cells)))
        return model


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("ratio", [0.1, 0.5, 2.0, 10.0, 100.0])
@pytest.mark.parametrize("target", ["parameters", "joint"])
def test_linear_gaussian(
    ratio: float, target: Target, seed: int, frame: Frame, plain: Make, contrast: Make
) -> None:
    """I(theta; theta + noise) = log2(1 + ratio^2) / 2, from a belief's own particles."""
    belief = Belief([plain(sd=ratio)], frame, seed=seed)
    found = gains(belief, [[contrast(noise=1.0)]], target=target)[0]
    assert found.method == "quadrature"
    close(found, 0.5 * math.log2(1 + ratio**2))


def test_linear_gaussian_vector(frame: Frame, contrast: Make) -> None:
    """Two readings, of one parameter each: the sum of both."""
    belief = Belief([Two("two", "Two things vary.", nothing, "none")], frame, seed=0)
    plan = [contrast("step_time", noise=1.0), contrast("sm_clock", noise=1.0)]
    found = gains(belief, [plan], target="joint")[0]
    assert found.method == "sobol"
    close(found, 0.5 * math.log2(2) + 0.5 * math.log2(5))


@pytest.mark.parametrize("error", [0.01, 0.1, 0.4])
def test_binary_symmetric_channel(error: float) -> None:
    """I = 1 - H(error) for equally probable inputs; exact."""
    density = flags([[[error]], [[1 - error]]])
    entropy = -error * math.log2(error) - (1 - error) * math.log2(1 - error)
    found = gain_of(density, [0.5, 0.5], "cause")
    assert found.method == "enumeration"
    assert found.bits == pytest.approx(1 - entropy, abs=1e-9)
    close(found, 1 - entropy)


@pytest.mark.parametrize("apart", [0.1, 1.0, 3.0, 12.0])
@pytest.mark.parametrize("first", [0.5, 0.05])
def test_two_gaussian_hypotheses(apart: float, first: float) -> None:
    density = arrays([[[0.0]] * 8, [[apart]] * 8], 1.0)

    def integrand(y: float) -> float:
        a, b = first * stats.norm.pdf(y), (1 - first) * stats.norm.pdf(y, apart)
        return sum(p * math.log2(p / q / (a + b)) for p, q in ((a, first), (b, 1 - first)) if p > 0)

    exact = integrate.quad(integrand, -10, 10 + apart, points=[0, apart], limit=200)[0]
    close(gain_of(density, [first, 1 - first], "cause"), exact)


def test_two_hypotheses_by_simulation() -> None:
    """Two readings of one shift are as good as one of sqrt(2) times it."""
    pair = arrays([[[0.0, 0.0]] * 8, [[1.0, 1.0]] * 8], 1.0)
    single = arrays([[[0.0]] * 8, [[math.sqrt(2)]] * 8], 1.0)
    found = gain_of(pair, [0.5, 0.5], "cause")
    close(found, gain_of(single, [0.5, 0.5], "cause").bits)
    assert found.error_bits < 0.01


def test_heavy_tails_against_quadrature() -> None:
    density = arrays([[[0.0]] * 8, [[2.0]] * 8], 1.0, dof=4.0)

    def integrand(y: float) -> float:
        a, b = 0.5 * stats.t.pdf(y, 4), 0.5 * stats.t.pdf(y - 2, 4)
        return sum(p * math.log2(2 * p / (a + b)) for p in (a, b))

    exact = integrate.quad(integrand, -np.inf, np.inf, limit=500)[0]
    close(gain_of(density, [0.5, 0.5], "cause"), exact)


def test_the_own_particle_does_not_count() -> None:
    """Hypotheses with the same predictions: nothing to learn, however few particles."""
    loc = normals(64, 2)
    density = arrays(torch.stack([loc, normals(64, 2, 1)]), 0.3)
    found = gain_of(density, [0.5, 0.5], "cause", 2048)
    assert abs(found.bits) <= 3 * found.error_bits + 0.03


def test_chain_rule() -> None:
    density = arrays(torch.stack([normals(64, 1), normals(64, 1) + 2]), 0.5)
    cause, parameters, joint = (
        gain_of(density, [0.3, 0.7], t).bits for t in ("cause", "parameters", "joint")
    )
    assert joint == pytest.approx(cause + parameters, abs=1e-12)


def test_certainty_and_agreement_give_nothing() -> None:
    same = arrays([[[0.0]] * 8, [[0.0]] * 8], 1.0)
    assert gain_of(same, [0.5, 0.5], "cause").bits == pytest.approx(0, abs=1e-9)


def test_shapes_are_checked() -> None:
    with pytest.raises(ValueRejected, match="hypotheses x particles"):
        arrays([[0.0]], 1.0)
