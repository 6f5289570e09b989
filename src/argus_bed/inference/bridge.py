"""A PyMC model as torch functions over many particles.

The model stays the one definition. Its log density and its named outputs are rewritten
in terms of the unconstrained value variables, vectorised over a leading particle axis,
and translated operation by operation with PyTensor's PyTorch dispatch, called eagerly.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pymc as pm
import pytensor.link.pytorch.dispatch  # noqa: F401 (registers every translation)
import pytensor.scalar.basic as ps
import pytensor.tensor as pt
import torch
from pymc.logprob.utils import local_remove_check_parameter
from pymc.model.transform.optimization import freeze_dims_and_data
from pytensor.compile.mode import Mode, get_mode
from pytensor.configdefaults import config
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.rewriting.basic import in2out
from pytensor.graph.traversal import ancestors
from pytensor.link.pytorch.dispatch.basic import pytorch_funcify
from torch import Tensor

from argus_bed.errors import InferenceError
from argus_bed.inference.prior import prior_quantiles

Translated = Callable[..., tuple[Any, ...]]
POOL = 4096
INTERPRETED = Mode(linker="py", optimizer="fast_compile")
"""For functions that are called once: a compiled one takes seconds to make."""

_generated = tempfile.TemporaryDirectory(prefix="argus-bed-generated-")
"""Source that PyTensor writes for what it translates; by itself it leaves it lying around."""
if not config.generated_src_dir:
    config.generated_src_dir = _generated.name


@dataclass(frozen=True)
class Slot:
    """Where one value variable lies in the flat vector: ``theta[:, start:stop]``."""

    name: str
    shape: tuple[int, ...]
    start: int

    @property
    def stop(self) -> int:
        return self.start + math.prod(self.shape)


@pytorch_funcify.register(ps.EQ)
def _elementwise_equal(op: Any, node: Any, **_: Any) -> Callable[..., Tensor]:
    """PyTensor 3.3 maps numpy's ``equal`` to ``torch.equal``, one bool for the whole tensor."""
    return torch.eq


class TorchModel:
    """A converted model. Made by `convert`; holds no state that changes.

    Attributes
    ----------
    dim : number of unconstrained coordinates; may be 0.
    names : one label a coordinate, ``rv`` or ``rv[i,j]``.
    """

    def __init__(
        self,
        model: pm.Model,
        outputs: Sequence[str],
        *,
        declared: Sequence[str],
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.model = model
        self.device, self.dtype = device, dtype
        # freezing may reorder the variables; the declared order is kept
        self.free = sorted(model.free_RVs, key=lambda v: declared.index(v.name))
        self.slots = _slots(model, self.free)
        self.dim = self.slots[-1].stop if self.slots else 0
        self.names = tuple(label for slot in self.slots for label in _labels(slot))
        self._wanted = tuple(outputs)
        self._variables = tuple(v.name for v in self.free)
        values = [model.rvs_to_values[v] for v in self.free]
        graphs = [
            [model.logp()],
            model.replace_rvs_by_values([model[name] for name in outputs]),
            model.replace_rvs_by_values(list(self.free)),
        ]
        self._logp, self._outputs, self._values = _translate(values, graphs)
        self._ndim = {v.name: v.type.ndim for v in self.free}
        self._ndim |= {name: model[name].type.ndim for name in outputs}

    def _split(self, theta: Tensor) -> list[Tensor]:
        """(n, dim) -> one (n, *shape) a value variable."""
        return [theta[:, s.start : s.stop].reshape(-1, *s.shape) for s in self.slots]

    def logp(self, theta: Tensor) -> Tensor:
        """Log density in unconstrained space, Jacobians included; differentiable.

        Parameters
        ----------
        theta : (particles, dim).

        Returns
        -------
        (particles,)
        """
        (value,) = self._logp(*self._split(theta))
        return self._expand(value, theta, 0)

    def outputs(self, theta: Tensor) -> dict[str, Tensor]:
        """The named outputs, each (particles, ...); differentiable."""
        found = self._outputs(*self._split(theta))
        return {
            n: self._expand(v, theta, self._ndim[n])
            for n, v in zip(self._wanted, found, strict=True)
        }

    def constrained(self, theta: Tensor) -> dict[str, np.ndarray[Any, Any]]:
        """The free variables as the model names them, each (particles, ...)."""
        found = self._values(*self._split(theta))
        return {
            n: self._expand(v, theta, self._ndim[n]).detach().cpu().numpy()
            for n, v in zip(self._variables, found, strict=True)
        }

    def _expand(self, value: Tensor, theta: Tensor, ndim: int) -> Tensor:
        """Give an output of ``ndim`` axes that depends on no variable its particle axis."""
        value = torch.as_tensor(value, dtype=self.dtype, device=self.device)
        return value.expand(theta.shape[0], *value.shape) if value.ndim == ndim else value

    def sample_prior(self, n: int, seed: int) -> Tensor:
        """Prior draws in unconstrained space, (n, dim).

        Scrambled Sobol points through the quantile functions where every variable has
        constant parameters and a known one, which the library's mechanisms have; plain
        draws otherwise.
        """
        values = prior_quantiles(self.free, n, seed)
        if values is None:
            with self.model:
                values = pm.draw(list(self.free), draws=n, random_seed=seed, mode=INTERPRETED)
        drawn = dict(zip(self.free, map(np.asarray, values), strict=True))
        columns = [
            _forward(self.model, slot, rv, drawn).reshape(n, -1)
            for rv, slot in zip(self.free, self.slots, strict=True)
        ]
        flat = np.concatenate(columns, axis=1) if columns else np.zeros((n, 0))
        # a Sobol sequence in its own order must not be taken at regular steps
        flat = np.random.default_rng(seed).permutation(flat)
        return torch.as_tensor(flat, dtype=self.dtype, device=self.device)

    @cached_property
    def prior_pool(self) -> Tensor | None:
        """Prior draws (POOL, dim) from which single variables may be redrawn.

        None where that would not be from their prior: variables that depend on each other.
        """
        independent = prior_quantiles(self.free, 1, 0) is not None
        return self.sample_prior(POOL, 0) if independent and self.dim else None


def convert(
    model: pm.Model,
    outputs: Sequence[str] = (),
    *,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float64,
) -> TorchModel:
    """Translate ``model`` and its deterministics ``outputs`` to torch.

    Raises
    ------
    InferenceError : a free variable is discrete, or an operation has no translation.
    """
    discrete = [v.name for v in model.discrete_value_vars]
    if discrete:
        raise InferenceError(
            f"free variables {discrete} are discrete: sum them out, for example with pm.Mixture"
        )
    # without a stack trace for every node the translation takes half the time
    with config.change_flags(traceback__limit=0):
        try:
            return TorchModel(
                freeze_dims_and_data(model),
                outputs,
                declared=[v.name for v in model.free_RVs],
                device=torch.device(device),
                dtype=dtype,
            )
        except NotImplementedError as error:
            raise InferenceError(f"an operation of the model has no torch form: {error}") from error


def _translate(values: Iterable[Any], graphs: Sequence[Sequence[Any]]) -> list[Translated]:
    """Vectorise ``graphs`` over a leading axis of ``values``; one torch function a graph.

    Rewriting is what takes the time, so all graphs are rewritten as one.
    """
    batched = {v: pt.tensor(v.name, shape=(None, *v.type.shape), dtype=v.dtype) for v in values}
    flat = [output for graph in graphs for output in graph]
    vectorised = vectorize_graph(flat, replace=batched) if batched else flat
    whole = FunctionGraph(list(batched.values()), vectorised, clone=True)
    get_mode("PYTORCH").optimizer.rewrite(whole)  # type: ignore[no-untyped-call]
    in2out(local_remove_check_parameter).rewrite(whole)
    functions: list[Translated] = []
    start = 0
    for graph in graphs:
        outputs = whole.outputs[start : start + len(graph)]
        start += len(graph)
        part = FunctionGraph(whole.inputs, outputs, clone=True) if outputs else None
        functions.append(pytorch_funcify(part) if part else _nothing)
    return functions


def _nothing(*_: Tensor) -> tuple[()]:
    """What a graph without outputs gives."""
    return ()


def _slots(model: pm.Model, free: Sequence[Any]) -> tuple[Slot, ...]:
    values = [model.rvs_to_values[v] for v in free]
    shapes = [v.type.shape for v in values]
    if any(None in shape for shape in shapes):
        point = model.initial_point()
        shapes = [np.shape(point[v.name]) for v in values]
    slots, start = [], 0
    for rv, shape in zip(free, shapes, strict=True):
        slots.append(Slot(rv.name, tuple(int(s) for s in shape), start))
        start = slots[-1].stop
    return tuple(slots)


def _labels(slot: Slot) -> list[str]:
    if not slot.shape:
        return [slot.name]
    return [f"{slot.name}[{','.join(map(str, i))}]" for i in np.ndindex(*slot.shape)]


def _forward(
    model: pm.Model, slot: Slot, rv: Any, drawn: Mapping[Any, np.ndarray[Any, Any]]
) -> np.ndarray[Any, Any]:
    """Carry the draws of one variable, (n, ...), into unconstrained space.

    A transform may depend on other variables (the bounds of a Uniform), whose draws then
    stand in for them.
    """
    transform = model.rvs_to_transforms[rv]
    if transform is None:
        return drawn[rv]
    one = rv.type("one")
    unconstrained = transform.forward(one, *rv.owner.inputs)
    needed = set(ancestors([unconstrained]))
    batches = {
        (one if v is rv else v): pt.as_tensor(values.astype(v.dtype))
        for v, values in drawn.items()
        if v is rv or v in needed
    }
    moved = vectorize_graph(unconstrained, replace=batches)
    found = moved.eval(mode=INTERPRETED)
    return np.asarray(found).reshape(len(drawn[rv]), *slot.shape)
