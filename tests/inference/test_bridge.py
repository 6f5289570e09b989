from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import torch
from pytensor.compile.mode import Mode

from argus_bed.errors import InferenceError
from argus_bed.frame import Frame
from argus_bed.hypothesis import Hypothesis, catalogue, compose
from argus_bed.inference.bridge import INTERPRETED, TorchModel, convert


def scales() -> None:
    a = pm.HalfCauchy("a", 1.5)
    b = pm.HalfNormal("b", a)
    pm.LogNormal("c", b, 0.3, shape=2)
    pm.Gamma("d", 2.0, 3.0)
    pm.Exponential("e", 2.0)


def bounded() -> None:
    a = pm.Beta("a", 2.0, 3.0)
    pm.Uniform("b", -1.0, 1.0 + a, shape=(2, 2))
    pm.TruncatedNormal("c", 0.3, 1.0, lower=0.0, upper=2.0)
    pm.StudentT("d", nu=4.0, mu=a, sigma=0.5)


def simplex() -> None:
    w = pm.Dirichlet("w", [1.0, 2.0, 3.0])
    pm.Normal("m", w[0], 1.0)
    pm.Deterministic("total", w.sum() + w)


def observed() -> None:
    rate = pm.Gamma("rate", 2.0, 1.0)
    pm.Poisson("seen", rate, observed=[1, 3, 2])
    pm.NegativeBinomial("also", mu=rate, alpha=2.0, observed=[4, 0])


def agrees(model: pm.Model, converted: TorchModel, n: int = 6) -> None:
    theta = converted.sample_prior(n, 3)
    compiled = model.compile_logp(mode=INTERPRETED)
    found = converted.logp(theta).numpy()
    values = [converted.model.rvs_to_values[v].name for v in converted.free]
    for row, ours in zip(theta.numpy(), found, strict=True):
        point = {
            name: row[slot.start : slot.stop].reshape(slot.shape)
            for name, slot in zip(values, converted.slots, strict=True)
        }
        assert ours == pytest.approx(float(compiled(point)), abs=1e-10)


@pytest.mark.parametrize("build", [scales, bounded, simplex, observed], ids=lambda b: b.__name__)
def test_log_density_is_pymcs(build: Callable[[], None]) -> None:
    with pm.Model() as model:
        build()
    agrees(model, convert(model))


KNOWN = catalogue()
AS_WRITTEN = Mode(linker="py", optimizer=None)  # without the rewriting that the bridge shares


def whole(name: str) -> Hypothesis:
    """A mechanism, or two at once."""
    first, *second = name.split("+")
    return compose(KNOWN[first], KNOWN[second[0]]) if second else KNOWN[name]


@pytest.mark.parametrize("name", [*KNOWN, "gil_held+off_critical_path"])
def test_library_models_are_pymcs(name: str, library: Frame) -> None:
    """Log density, cells and free, and the gradient of all of them, each to 1e-10.

    The gradient is that of ``logp + w . cells + v . free`` with fixed random w and v, so
    that no derivative of an output can be wrong unseen.
    """
    model = whole(name).model(library)
    converted = convert(model, ("cells", "free"))
    theta = converted.sample_prior(4, 3).requires_grad_(True)
    w, v = np.random.default_rng(5).normal(size=(2, len(library.cells)))
    said = converted.outputs(theta)
    logp = converted.logp(theta)
    total = logp + said["cells"] @ torch.as_tensor(w) + said["free"] @ torch.as_tensor(v)
    (slope,) = torch.autograd.grad(total.sum(), theta)

    density = model.logp()
    cells, free = model.replace_rvs_by_values([model["cells"], model["free"]])
    values = [model.rvs_to_values[model[n]] for n in (slot.name for slot in converted.slots)]
    gradient = pt.grad(density + (w * cells).sum() + (v * free).sum(), values)
    exact = model.compile_fn(
        [density, cells, free, *gradient], inputs=values, mode=AS_WRITTEN, point_fn=False
    )
    for i, row in enumerate(theta.detach().numpy()):
        found = exact(*row)  # every variable of the library is a scalar
        assert logp[i].item() == pytest.approx(float(found[0]), abs=1e-10, rel=0)
        for n, theirs in zip(("cells", "free"), found[1:3], strict=True):
            assert said[n][i].detach().numpy() == pytest.approx(theirs, abs=1e-10, rel=0)
        assert slope[i].numpy() == pytest.approx(np.array(found[3:]), abs=1e-10, rel=1e-10)


def test_gradient_is_that_of_finite_differences() -> None:
    with pm.Model() as model:
        bounded()
    converted = convert(model)
    theta = converted.sample_prior(3, 1).requires_grad_(True)
    assert torch.autograd.gradcheck(converted.logp, theta)


def test_outputs_have_a_particle_axis_even_if_constant() -> None:
    with pm.Model() as model:
        pm.Normal("x")
        pm.Deterministic("fixed", pm.math.stack([0.0, 1.0]))
    converted = convert(model, ["fixed"])
    assert converted.outputs(converted.sample_prior(7, 0))["fixed"].shape == (7, 2)


def test_no_free_variables() -> None:
    with pm.Model() as model:
        pm.Deterministic("cells", pm.math.stack([0.0, 1.0]))
    converted = convert(model, ["cells"])
    theta = converted.sample_prior(4, 0)
    assert converted.dim == 0
    assert theta.shape == (4, 0)
    assert converted.logp(theta).tolist() == [0.0] * 4
    assert converted.outputs(theta)["cells"].shape == (4, 2)
    assert converted.constrained(theta) == {}


def test_prior_draws_have_the_priors_quantiles() -> None:
    with pm.Model() as model:
        pm.Beta("share", 1.0, 3.0)
        pm.LogNormal("extra", np.log(0.2), 1.0)
    converted = convert(model)
    drawn = converted.constrained(converted.sample_prior(1024, 5))
    assert drawn["share"].mean() == pytest.approx(0.25, abs=0.003)
    assert np.median(drawn["extra"]) == pytest.approx(0.2, rel=0.01)


def test_bounds_that_are_drawn_hold_in_every_draw() -> None:
    with pm.Model() as model:
        top = pm.LogNormal("top", 0.0, 1.0)
        pm.Uniform("below", 0.0, top)
    converted = convert(model)
    theta = converted.sample_prior(200, 2)
    drawn = converted.constrained(theta)
    assert np.isfinite(theta.numpy()).all()
    assert (drawn["below"] < drawn["top"]).all()


def test_names_label_every_coordinate() -> None:
    with pm.Model() as model:
        pm.Normal("x", shape=2)
        pm.Normal("y")
    assert convert(model).names == ("x[0]", "x[1]", "y")


def test_an_operation_without_translation_is_named() -> None:
    with pm.Model() as model:
        pm.MvNormal("pair", np.zeros(2), np.array([[1.0, 0.3], [0.3, 2.0]]))
    with pytest.raises(InferenceError, match="SolveTriangular"):
        convert(model)


def test_discrete_variables_are_refused() -> None:
    with pm.Model() as model:
        pm.Bernoulli("flag", 0.5)
    with pytest.raises(InferenceError, match="flag"):
        convert(model)
