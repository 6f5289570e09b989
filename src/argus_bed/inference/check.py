"""A second way to the same posterior, sharing nothing with the first but the model.

The likelihood is written again, in PyTensor, from the text of `probe.Measurement`; the
posterior comes from NUTS (nutpie) and the log evidence from PyMC's SMC. If the
particles disagree with either, the belief is not to be trusted.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.fg import FunctionGraph
from pytensor.scalar.basic import LT
from scipy import stats

from argus_bed.errors import InferenceError
from argus_bed.frame import COINCIDENCE_SPREAD, Frame
from argus_bed.hypothesis import Hypothesis
from argus_bed.inference.bridge import INTERPRETED
from argus_bed.probe import Measurement, Reading

TOLERANCE = 0.1  # nats of log evidence
SHIFT = 0.15  # posterior sds of a mean
CONVERGED = 1.01  # split R-hat up to which NUTS is listened to (Vehtari et al., 2021)
LONGER = (1, 4, 16)  # times as many draws of NUTS, until it has converged
SIGMAS = 3.0
NEGLIGIBLE = 1e-4  # share of a branch below which its evidence need not be exact
NUTS_FROM = 0.01  # share of a branch from which NUTS looks at it
STAGE_KEEPS, FORGET = 0.9, 1e-3
"""Effective share of SMC's draws after a stage, and when its moves stop. With the usual 0.5
and 1e-2 the log evidence of a posterior in two modes was 0.2 nats low with 1000 draws."""
MAX_DOUBLINGS = 4
"""Of SMC's draws, until the standard error is a third of the tolerance."""


COINCIDENCE_DOF = 3.0

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Check:
    """How the particles compare.

    Attributes
    ----------
    log_evidence_difference : particles minus sequential Monte Carlo, in nats.
    log_evidence_error : standard error of the latter over its chains.
    mean_differences : particles minus NUTS (where it converged, else SMC), in posterior sds.
    unconverged : variables on which NUTS did not converge.
    ok : whether all differences are within tolerance.
    """

    log_evidence_difference: float
    log_evidence_error: float
    mean_differences: Mapping[str, float]
    unconverged: tuple[str, ...]
    ok: bool

    def require(self, name: str) -> None:
        """Raise `InferenceError` unless the two ways agree; ``name`` is the hypothesis's."""
        if self.ok:
            return
        worst = max(self.mean_differences.items(), key=lambda i: abs(i[1]), default=("-", 0.0))
        raise InferenceError(
            f"hypothesis {name}: the particles and the check disagree: log evidence by "
            f"{self.log_evidence_difference:+.2f} nats, mean of {worst[0]} by {worst[1]:+.2f} sd"
        )


def check(
    hypothesis: Hypothesis,
    frame: Frame,
    readings: Iterable[Reading],
    samples: tuple[Mapping[str, Array], Array],
    log_evidence: float,
    *,
    seed: int = 0,
    draws: int = 1000,
    chains: int = 4,
) -> Check:
    """Recompute a posterior and its log evidence from the readings alone, and compare.

    Takes 5 to 20 s: two samplers are compiled. SMC's draws are doubled until the standard
    error of its log evidence is a third of `TOLERANCE`.

    Parameters
    ----------
    samples, log_evidence : from `Belief.samples` and `Belief.log_evidence`.
    """
    plain = hypothesis.model(frame)
    switches = find_switches(plain)
    if switches:
        plain = pm.do(plain, {s.name: s.inside(0, 0.5) for s in switches})
    model = with_likelihood(plain, frame, merged(readings))
    if not model.free_RVs and not switches:
        exact = float(model.compile_logp(jacobian=False)({}))
        gap = log_evidence - exact
        return Check(gap, 0.0, {}, (), abs(gap) <= 1e-6 * max(1.0, abs(exact)))
    branches = [Branch(sides, draws) for sides in product((0, 1), repeat=len(switches))]
    smc = Smc(model, seed)
    exact_evidence, error = _evidence(smc, switches, branches, chains)
    values, weights = samples
    theirs, unconverged = _posterior(smc, switches, branches, seed, draws, chains)
    shifts = {name: _shift(ours, weights, *theirs[name]) for name, ours in values.items()}
    gap = log_evidence - exact_evidence
    fine = abs(gap) <= max(TOLERANCE, SIGMAS * error)
    fine = fine and all(abs(s) <= SHIFT for s in shifts.values())
    return Check(gap, error, shifts, unconverged, fine)


@dataclass(frozen=True)
class Switch:
    """A variable that matters only by being below a threshold or not.

    below : probability of that in the prior.
    """

    name: str
    variable: Any
    below: float

    def share(self, side: int) -> float:
        """Prior probability of one side: 0 below, 1 above."""
        return 1 - self.below if side else self.below

    def inside(self, side: int, u: float) -> float:
        """The quantile ``u`` of the prior within one side."""
        p = self.below * u if side == 0 else self.below + (1 - self.below) * u
        return float(pm.icdf(self.variable, p).eval(mode=INTERPRETED))


@dataclass
class Branch:
    """One side of every switch, and what SMC found there: log evidences, last draws."""

    sides: tuple[int, ...]
    draws: int
    evidence: list[float] = field(default_factory=list)
    ends: list[Array] = field(default_factory=list)

    def settings(self, switches: Sequence[Switch]) -> dict[str, float]:
        return {s.name: s.inside(k, 0.5) for s, k in zip(switches, self.sides, strict=True)}

    def restart(self) -> None:
        """Forget the chains: longer ones follow, whose log evidence is less biased, too."""
        self.draws *= 2
        self.evidence.clear()
        self.ends.clear()

    def log_joint(self, switches: Sequence[Switch]) -> float:
        """Log of its prior probability times its evidence."""
        share = math.prod(s.share(k) for s, k in zip(switches, self.sides, strict=True))
        mean = np.logaddexp.reduce(self.evidence) - math.log(len(self.evidence))
        return math.log(share) + float(mean)

    @property
    def error(self) -> float:
        """Standard error of the mean log evidence; of one chain, infinite."""
        n = len(self.evidence)
        return float(np.std(self.evidence, ddof=1) / math.sqrt(n)) if n > 1 else math.inf


def find_switches(model: pm.Model) -> tuple[Switch, ...]:
    """Free variables that enter ``cells`` and ``free`` only as ``variable < constant``.

    Neither NUTS nor SMC moves well across a step. Each side by itself is smooth, and
    within a side such a variable keeps its prior; so they are summed out exactly.
    """
    graph = FunctionGraph(outputs=[model["cells"], model["free"]], clone=False)
    found = []
    for variable in model.free_RVs:
        uses = [node for node, _ in graph.clients.get(variable, [])]
        compared = [_threshold(node, variable) for node in uses]
        if uses and None not in compared and len(set(compared)) == 1:
            below = float(pm.logcdf(variable, compared[0]).exp().eval(mode=INTERPRETED))
            found.append(Switch(variable.name, variable, below))
    return tuple(found)


def _threshold(node: Any, variable: Any) -> float | None:
    """The constant with which a node compares ``variable`` from above; None if it does not."""
    scalar = getattr(getattr(node, "op", None), "scalar_op", None)
    if not isinstance(scalar, LT) or node.inputs[0] is not variable:
        return None
    constant = node.inputs[1]
    return float(constant.data) if hasattr(constant, "data") else None


def _evidence(
    smc: Smc, switches: Sequence[Switch], branches: Sequence[Branch], chains: int
) -> tuple[float, float]:
    """Log evidence over all branches and its standard error; fills the branches."""

    def shares() -> Array:
        joint = np.array([b.log_joint(switches) for b in branches])
        found: Array = np.exp(joint - np.logaddexp.reduce(joint))
        return found

    for branch in branches:
        smc.chain(branch, branch.settings(switches))
    for branch, w in zip(branches, shares(), strict=True):
        while w > NEGLIGIBLE and len(branch.evidence) < chains:
            smc.chain(branch, branch.settings(switches))
    for _ in range(MAX_DOUBLINGS):
        errors = [b.error if len(b.evidence) > 1 else 0.0 for b in branches]
        terms = shares() * np.array(errors)
        if math.hypot(*terms) <= TOLERANCE / SIGMAS:
            break
        worst = branches[int(np.argmax(terms))]
        worst.restart()
        for _ in range(chains):
            smc.chain(worst, worst.settings(switches))
    errors = [b.error if len(b.evidence) > 1 else 0.0 for b in branches]
    terms = shares() * np.array(errors)
    joint = [b.log_joint(switches) for b in branches]
    return float(np.logaddexp.reduce(joint)), math.hypot(*terms)


def _posterior(
    smc: Smc,
    switches: Sequence[Switch],
    branches: Sequence[Branch],
    seed: int,
    draws: int,
    chains: int,
) -> tuple[dict[str, tuple[Array, Array]], tuple[str, ...]]:
    """Mean and sd of every variable over the branches, and those on which NUTS did not converge.

    NUTS in each branch that has some weight; elsewhere, and where it did not converge, SMC.
    """
    joint = np.array([b.log_joint(switches) for b in branches])
    weight = np.exp(joint - np.logaddexp.reduce(joint))
    nuts = Nuts(smc.model)
    means: dict[str, list[Array]] = {}
    squares: dict[str, list[Array]] = {}
    unconverged: set[str] = set()
    quantiles = (np.arange(20) + 0.5) / 20
    for share, branch in zip(weight, branches, strict=True):
        found = smc.ends(branch, branch.settings(switches))
        if share > NUTS_FROM:
            for times in LONGER:
                long, rhat = nuts.draws(branch.settings(switches), seed, times * draws, chains)
                bad = {n for n, r in rhat.items() if not r <= CONVERGED}
                if not bad:
                    break
            unconverged |= bad
            found = {n: found[n] if n in bad else long[n] for n in found}
        for switch, side in zip(switches, branch.sides, strict=True):
            found[switch.name] = np.array([switch.inside(side, float(x)) for x in quantiles])
        for n, values in found.items():
            means.setdefault(n, []).append(share * values.mean(0))
            squares.setdefault(n, []).append(share * (values**2).mean(0))
    result = {}
    for n in means:
        mean = np.sum(means[n], axis=0)
        result[n] = (mean, np.sqrt(np.maximum(np.sum(squares[n], axis=0) - mean**2, 1e-24)))
    return result, tuple(sorted(unconverged))


def _shift(ours: Array, weights: Array, mean: Array, sd: Array) -> float:
    """Largest difference of means in sds, over a variable's entries."""
    shift = np.ravel((np.tensordot(weights, ours, 1) - mean) / np.maximum(sd, 1e-12))
    return float(shift[np.argmax(np.abs(shift))])


def merged(readings: Iterable[Reading]) -> list[tuple[Measurement, float, float, float, float]]:
    """Readings of one key as one: (widest measurement, value, noise^2, coincidence, dof)."""
    groups: dict[Any, list[Reading]] = {}
    for r in readings:
        groups.setdefault(r.measurement.key, []).append(r)
    found = []
    for group in groups.values():
        planned = [r.measurement for r in group]
        noise2 = np.array([max(m.noise, 1e-9) ** 2 for m in planned])
        noise2 = noise2 + _between(np.array([r.value for r in group]), noise2, planned[0].family)
        chance = np.array([m.coincidence for m in planned])
        trust = np.maximum(1 - chance, 1e-6) / noise2
        widest = max(planned, key=lambda m: m.benign)
        found.append(
            (
                widest,
                float(np.average([r.value for r in group], weights=trust)),
                float(1 / np.sum(1 / noise2)),
                float(np.average(chance, weights=trust)),
                float(np.average([m.dof for m in planned], weights=trust)),
            )
        )
    return found


def _between(values: Array, noise2: Array, family: str) -> float:
    """Variance between runs beyond their noise (DerSimonian and Laird, 1986)."""
    if family == "bernoulli" or len(values) < 2:
        return 0.0
    w = 1 / noise2
    q = float(np.sum(w * (values - np.average(values, weights=w)) ** 2))
    return max(0.0, (q - len(values) + 1) / float(w.sum() - (w**2).sum() / w.sum()))


def with_likelihood(
    model: pm.Model,
    frame: Frame,
    readings: Sequence[tuple[Measurement, float, float, float, float]],
) -> pm.Model:
    """The model with the log density of the readings as a potential.

    Readings of one family are one vector, so that a model of a hundred readings compiles
    as fast as one of three.
    """
    with model:
        total = pt.as_tensor_variable(0.0)
        for family in ("student", "normal", "bernoulli"):
            group = [r for r in readings if r[0].family == family]
            if group:
                total = total + _log_density(model, frame, family, group).sum()
        pm.Potential("readings", total)
    model.deterministics.clear()  # both samplers would compile and keep them
    return model


def _log_density(
    model: pm.Model,
    frame: Frame,
    family: str,
    readings: Sequence[tuple[Measurement, float, float, float, float]],
) -> Any:
    """Log density of readings of one family, (readings,)."""
    planned = [r[0] for r in readings]
    value, noise2, chance, dof = (np.array([r[i] for r in readings]) for i in (1, 2, 3, 4))
    own2 = noise2 + np.array([m.benign**2 for m in planned])
    cells, free2 = model["cells"], model["free"] ** 2
    here = [frame.cell_index[m.cell] for m in planned]
    there = [frame.cell_index[m.against or m.cell] for m in planned]
    compared = np.array([float(m.against is not None) for m in planned])
    mean = cells[here] - compared * cells[there]
    variance = own2 + free2[here] + compared * free2[there]
    if family == "bernoulli":
        one = pm.math.sigmoid(mean / pt.sqrt(1 + np.pi * variance / 8))
        one = (1 - chance) * one + 0.5 * chance
        return value * pt.log(one) + (1 - value) * pt.log(1 - one)
    if family == "normal":
        ordinary = pm.logp(pm.Normal.dist(mean, pt.sqrt(variance)), value)
    else:
        ordinary = pm.logp(pm.StudentT.dist(nu=dof, mu=mean, sigma=pt.sqrt(variance)), value)
    wide = np.sqrt(COINCIDENCE_SPREAD**2 + own2)
    elsewhere = stats.t.logpdf(value, COINCIDENCE_DOF, 0.0, wide)
    with np.errstate(divide="ignore"):  # a chance of zero leaves the ordinary part alone
        return pm.math.logaddexp(np.log1p(-chance) + ordinary, np.log(chance) + elsewhere)


class Smc:
    """PyMC's sequential Monte Carlo sampler, one chain at a time.

    What `pm.sample_smc` does, without compiling anew for every batch of chains, without a
    trace, which takes longer than the chain, and without a fork, which deadlocks with
    threads.
    """

    def __init__(self, model: pm.Model, seed: int) -> None:
        self.model = model
        self._kernel = pm.smc.IMH(
            model=model,
            random_seed=seed,
            threshold=STAGE_KEEPS,
            correlation_threshold=FORGET,
        )
        self._seeds = np.random.SeedSequence(seed)

    def chain(self, branch: Branch, settings: Mapping[str, float]) -> None:
        """Run one more chain in a branch.

        Raises
        ------
        InferenceError : it gives no finite log evidence.
        """
        _turn(self.model, settings)
        kernel = self._kernel
        kernel.draws = branch.draws
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kernel.initialize(None, np.random.default_rng(self._seeds.spawn(1)[0]))
            while kernel.beta < 1:
                kernel.update_beta_and_weights()
                kernel.step()
        found = float(kernel.log_marginal_likelihood)
        if not math.isfinite(found):
            raise InferenceError(f"sequential Monte Carlo gave the log evidence {found}")
        branch.evidence.append(found)
        branch.ends.append(kernel.tempered_posterior.copy())

    def ends(self, branch: Branch, settings: Mapping[str, float]) -> dict[str, Array]:
        """Where a branch's chains ended, (chains * draws, ...) for each free variable."""
        model = self.model
        _turn(model, settings)
        variables = model.replace_rvs_by_values(list(model.free_RVs))
        inputs = model.value_vars
        values = model.compile_fn(variables, inputs=inputs, mode=INTERPRETED, point_fn=False)
        point = model.initial_point()
        shapes = [np.shape(point[v.name]) for v in inputs]
        stops = np.cumsum([math.prod(s) for s in shapes])[:-1]
        rows = [
            values(*(np.reshape(x, s) for x, s in zip(np.split(row, stops), shapes, strict=True)))
            for row in np.concatenate(branch.ends)
        ]
        columns = zip(*rows, strict=True)
        return {v.name: np.array(c) for v, c in zip(model.free_RVs, columns, strict=True)}


def _turn(model: pm.Model, settings: Mapping[str, float]) -> None:
    """Put the switches of a model where ``settings`` say."""
    for name, value in settings.items():
        model[name].set_value(np.asarray(value, dtype=model[name].type.dtype))


class Nuts:
    """NUTS by nutpie, compiled once for all branches of a model."""

    def __init__(self, model: pm.Model) -> None:
        import nutpie

        self._model = model
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._compiled = nutpie.compile_pymc_model(model)

    def draws(
        self, settings: Mapping[str, float], seed: int, draws: int, chains: int
    ) -> tuple[dict[str, Array], dict[str, float]]:
        """Draws (chains * draws, ...) and the split R-hat of each free variable."""
        import nutpie

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = nutpie.sample(
                self._compiled.with_data(**settings) if settings else self._compiled,
                draws=draws,
                tune=draws,
                chains=chains,
                cores=2,
                seed=seed,
                progress_bar=False,
            )
        names = [v.name for v in self._model.free_RVs]
        rhat = {n: _split_rhat(tree["posterior"][n].values) for n in names}
        return _flat(tree, self._model), rhat


def _flat(tree: Any, model: pm.Model) -> dict[str, Array]:
    found = {}
    for v in model.free_RVs:
        values = np.asarray(tree["posterior"][v.name].values, dtype=float)
        found[v.name] = values.reshape(-1, *values.shape[2:])
    return found


def _split_rhat(values: Array) -> float:
    """Rank-normalised split R-hat (Vehtari et al., 2021), the largest over entries.

    values : (chains, draws, ...).
    """
    chains, draws = values.shape[0], values.shape[1] // 2 * 2
    halves = values[:, :draws].reshape(2 * chains, draws // 2, -1)
    worst = 1.0
    for i in range(halves.shape[2]):
        ranks = stats.rankdata(halves[:, :, i]).reshape(halves.shape[:2])
        z = stats.norm.ppf((ranks - 0.375) / (ranks.size + 0.25))
        within = z.var(axis=1, ddof=1).mean()
        between = z.mean(axis=1).var(ddof=1)
        worst = max(worst, math.sqrt((between + within * (1 - 2 / draws)) / max(within, 1e-12)))
    return worst
