"""Beliefs over a study's hypotheses: probabilities, and a posterior within each."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from argus_bed.errors import InferenceError, UnknownName, UsageError
from argus_bed.frame import Frame
from argus_bed.hypothesis import Hypothesis, prior_probabilities
from argus_bed.inference.bridge import TorchModel, convert
from argus_bed.inference.evidence import Evidence
from argus_bed.inference.likelihood import Density, stack
from argus_bed.inference.particles import Particles, advance, glance, start, systematic
from argus_bed.inference.prior import sobol
from argus_bed.inference.threads import one_thread
from argus_bed.probe import Measurement, Reading

if TYPE_CHECKING:
    import xarray as xr

REPLICATES = 512  # of the predictive check
THINNED = 256  # particles a hypothesis in a predictive check
OUT_OF_THE_RUNNING = 1e-4
"""Below this probability particles are reweighted and not moved: it saves most of the time."""
FORGOTTEN = 0.02  # share of effective particles below which one that comes back begins again

Array = np.ndarray[Any, np.dtype[np.float64]]


class Belief:
    """What is believed after the readings so far; immutable.

    `update` and `wake` give another belief that shares the converted models with this one.

    Composites are many, and most never matter. One that is ``asleep`` has no particles:
    it stands as if its second cause explained nothing, so that its evidence is that of
    the better of its causes. They hold its probability until somebody wakes it.

    Parameters
    ----------
    hypotheses : the rival explanations.
    frame : what can be read; fixes the cells.
    seed : with the readings, in the order of the updates, fixes every number here.
    particles : per hypothesis.
    prior : probability of each hypothesis; their weights by default.
    asleep : composites of ``hypotheses`` that wait to be woken.

    Raises
    ------
    UsageError : no hypothesis, two of one name, or a prior that is none.
    InferenceError : a model cannot be converted.
    """

    @one_thread()
    def __init__(
        self,
        hypotheses: Sequence[Hypothesis],
        frame: Frame,
        *,
        seed: int,
        particles: int = 1024,
        prior: Mapping[str, float] | None = None,
        device: str = "cpu",
        asleep: Sequence[Hypothesis] = (),
    ) -> None:
        names = [h.name for h in (*hypotheses, *asleep)]
        if not names or len(set(names)) < len(names):
            raise UsageError(f"hypotheses = {names}: at least one, each name once")
        self.hypotheses = tuple(hypotheses)
        self.frame, self.seed = frame, seed
        every = prior_probabilities((*hypotheses, *asleep), frame.intent)
        self.prior = _normal(prior or every, names)
        self.evidence = Evidence()
        self._updates = 0
        self._models: dict[str, TorchModel] = {}
        self._particles: dict[str, Particles] = {}
        self._size, self._device = particles, device
        self._begun = (tuple(hypotheses), tuple(asleep))
        for h in hypotheses:
            self._models[h.name], self._particles[h.name] = self._begin(h)
        self._asleep = {h.name: h for h in asleep}
        for h in asleep:
            for cause in h.causes:
                self._known(cause)

    def _begin(self, hypothesis: Hypothesis) -> tuple[TorchModel, Particles]:
        """The converted model of a hypothesis, and particles of its prior."""
        name = hypothesis.name
        try:
            written = hypothesis.model(self.frame)
            outputs = [n for n in ("cells", "free", "parts") if n in written.named_vars]
            model = convert(written, outputs, device=self._device)
            return model, start(model, self._size, self._seed(name))
        except InferenceError as error:
            raise InferenceError(f"hypothesis {name}: {error}") from error

    def _seed(self, name: str) -> int:
        """A seed of its own for each hypothesis and update, the same in every process."""
        root = [self.seed, self._updates, zlib.crc32(name.encode())]
        return int(np.random.SeedSequence(root).generate_state(1)[0])

    @one_thread()
    def update(self, readings: Iterable[Reading]) -> Belief:
        """The belief after ``readings``; this one stays as it is.

        Raises
        ------
        ValueRejected : a reading that is not finite.
        UnknownName : a reading of a cell outside the frame.
        InferenceError : a hypothesis cannot be brought to the readings.
        """
        added = tuple(readings)
        if not added:
            return self
        evidence = self.evidence.add(added)
        found = object.__new__(Belief)
        found.__dict__.update(self.__dict__)
        found.evidence = evidence
        found._updates = self._updates + 1
        index = self.frame.cell_index
        found._particles = {n: glance(p, evidence, index) for n, p in self._particles.items()}
        rough = found.probabilities()
        for name, particles in self._particles.items():
            if rough[name] < OUT_OF_THE_RUNNING:
                continue
            try:
                found._particles[name] = self._advance(name, particles, evidence, found)
            except InferenceError as error:
                raise InferenceError(f"hypothesis {name}: {error}") from error
        return found

    def over(self, frame: Frame) -> Belief:
        """The belief as it began, over another frame, with nothing read."""
        hypotheses, asleep = self._begun
        return Belief(
            hypotheses,
            frame,
            seed=self.seed,
            particles=self._size,
            prior=self.prior,
            device=self._device,
            asleep=asleep,
        )

    @one_thread()
    def wake(self, names: Iterable[str]) -> Belief:
        """The belief in which composites ``names`` have been brought to all the readings.

        Raises
        ------
        UnknownName : none of that name is asleep.
        InferenceError : one cannot be converted or brought to the readings.
        """
        woken = dict.fromkeys(names)
        for name in woken:
            if name not in self._asleep:
                raise UnknownName("hypothesis asleep:", name, self._asleep)
        found = object.__new__(Belief)
        found.__dict__.update(self.__dict__)
        found.hypotheses = (*self.hypotheses, *(self._asleep[n] for n in woken))
        found._asleep = {n: h for n, h in self._asleep.items() if n not in woken}
        found._models, found._particles = dict(self._models), dict(self._particles)
        index = self.frame.cell_index
        for name in woken:
            model, particles = self._begin(self._asleep[name])
            if self.evidence:
                particles = advance(
                    model, particles, Evidence(), self.evidence, index, self._seed(name)
                )
            found._models[name], found._particles[name] = model, particles
        return found

    @property
    def asleep(self) -> tuple[Hypothesis, ...]:
        """Composites without particles of their own."""
        return tuple(self._asleep.values())

    def _advance(
        self, name: str, particles: Particles, evidence: Evidence, found: Belief
    ) -> Particles:
        model, seed, old = self._models[name], found._seed(name), self.evidence
        if particles.effective < FORGOTTEN * len(particles.log_weight):
            # it was out of the running and comes back: begin again from its prior
            particles, old = start(model, len(particles.log_weight), seed), Evidence()
        return advance(model, particles, old, evidence, self.frame.cell_index, seed)

    @property
    def log_evidence(self) -> dict[str, float]:
        """Log marginal likelihood of all readings under each hypothesis, in nats.

        That of a composite asleep is the larger of its causes'.
        """
        own = {name: p.log_evidence for name, p in self._particles.items()}
        return own | {n: max(own[c] for c in h.causes) for n, h in self._asleep.items()}

    def probabilities(self, apart: Iterable[str] = ()) -> dict[str, float]:
        """Posterior probability of each hypothesis that is awake.

        Composites asleep count towards their causes, by how well each explains what was
        read; save those named ``apart``, which are listed.
        """
        evidence = self.log_evidence
        score = {n: math.log(self.prior[n]) + e for n, e in evidence.items()}
        top = max(score.values())
        odds = {n: math.exp(s - top) for n, s in score.items()}
        total = math.fsum(odds.values())
        listed = {*self._particles, *apart}
        found = {n: o / total for n, o in odds.items() if n in listed}
        for name in self._asleep.keys() - listed:
            causes = self._asleep[name].causes
            best = max(evidence[c] for c in causes)
            share = {c: math.exp(evidence[c] - best) for c in causes}
            for cause in causes:
                found[cause] += odds[name] / total * share[cause] / math.fsum(share.values())
        return found

    def particles(self, name: str) -> Particles:
        """The particles of one hypothesis."""
        return self._particles[self._known(name)]

    def model(self, name: str) -> TorchModel:
        """The converted model of one hypothesis."""
        return self._models[self._known(name)]

    def _known(self, name: str) -> str:
        if name not in self._particles:
            raise UnknownName("hypothesis", name, self._particles)
        return name

    def samples(self, hypothesis: str) -> tuple[dict[str, Array], Array]:
        """Values of the free variables, (particles, ...) each, and weights (particles,)."""
        held = self.particles(hypothesis)
        return self.model(hypothesis).constrained(held.theta), held.weights.cpu().numpy()

    def parts(self, hypothesis: str) -> tuple[Array, Array]:
        """What the candidate's step has more of each cause than the baseline's, in shares
        of the candidate's step, (particles, causes), and weights (particles,).
        """
        held, model = self.particles(hypothesis), self.model(hypothesis)
        found = model.outputs(held.theta).get("parts", held.theta.new_zeros(len(held.theta), 0))
        return found.detach().cpu().numpy(), held.weights.cpu().numpy()

    def density(
        self, name: str, measurements: Sequence[Measurement], n: int | None = None
    ) -> Density:
        """Density of new readings under one hypothesis's particles, given what was read.

        With ``n`` the particles are thinned to so many of equal weight.
        """
        held = self.particles(name)
        cells, free = held.cells, held.free
        if n is not None:
            index = systematic(held.weights, n, 0.5)
            cells, free = cells[index], free[index]
        return self.evidence.predictive(measurements, cells, free, self.frame.cell_index)

    @one_thread()
    def predict(self, measurements: Sequence[Measurement]) -> dict[str, tuple[Array, Array]]:
        """What each hypothesis expects: mean and sd in link space, (readings,) each."""
        found = {}
        for name, held in self._particles.items():
            mean, variance = self.density(name, measurements).moments()
            w = held.weights[:, None]
            centre = (w * mean).sum(0)
            spread = (w * (variance + (mean - centre) ** 2)).sum(0)
            found[name] = (centre.cpu().numpy(), torch.sqrt(spread).cpu().numpy())
        return found

    @one_thread()
    def predictive_p(self, readings: Iterable[Reading]) -> float:
        """How often the belief expects something at least as improbable as ``readings``.

        The tail probability of the log predictive density, the hypotheses mixed by their
        probabilities (Box, 1980, JRSS A 143), from `REPLICATES` simulated outcomes:
        (1 + as improbable) / (1 + replicates). Call it before the update.
        """
        seen = self.evidence.add(readings).readings[len(self.evidence) :]
        if not seen:
            return 1.0
        shares = {n: p for n, p in self.probabilities().items() if p > 1e-4}
        planned = [r.measurement for r in seen]
        parts = [self.density(n, planned, THINNED) for n in shares]
        mixture = stack(parts)
        log_share = torch.cat(
            [torch.full((THINNED,), math.log(p / THINNED)) for p in shares.values()]
        ).to(mixture.loc)
        replicates = self._replicates(mixture, log_share)
        value = replicates.new_tensor([[r.value for r in seen]])
        outcomes = torch.cat([value, replicates])
        log_density = torch.logsumexp(mixture.joint(outcomes) + log_share, dim=1)
        improbable = int((log_density[1:] <= log_density[0] + 1e-12).sum())
        return (1 + improbable) / (1 + len(replicates))

    def _replicates(self, mixture: Density, log_share: torch.Tensor) -> torch.Tensor:
        """Outcomes of the mixture, (REPLICATES, readings)."""
        rows = systematic(torch.exp(log_share), REPLICATES, 0.5)
        m = mixture.readings
        uniform = torch.as_tensor(sobol(REPLICATES, 2 * m, self._seed("check"))).to(mixture.loc)
        return mixture.rows(rows).sample(uniform[:, :m], uniform[:, m:])

    def datatree(self, draws: int = 1000) -> xr.DataTree:
        """Everything as an ArviZ DataTree that can be saved as NetCDF.

        Group ``belief`` holds prior, probability and log_evidence by hypothesis; group
        ``NAME/posterior`` equally weighted draws (chain, draw, ...) of its free variables.
        """
        import xarray as xr

        names = list(self._particles)
        shares, evidence = self.probabilities(), self.log_evidence
        groups: dict[str, xr.Dataset] = {
            "belief": xr.Dataset(
                {
                    "prior": ("hypothesis", [self.prior[n] for n in names]),
                    "probability": ("hypothesis", [shares[n] for n in names]),
                    "log_evidence": ("hypothesis", [evidence[n] for n in names]),
                },
                {"hypothesis": names},
                {"readings": len(self.evidence), "seed": self.seed},
            )
        }
        for name in names:
            values, weights = self.samples(name)
            rows = systematic(torch.as_tensor(weights), draws, 0.5).numpy()
            groups[f"{name}/posterior"] = xr.Dataset(
                {v: (("chain", "draw", *_axes(v, a)), a[rows][None]) for v, a in values.items()},
                {"chain": [0], "draw": np.arange(draws)},
            )
        return xr.DataTree.from_dict(groups)


def _axes(name: str, values: Array) -> list[str]:
    """Names of the axes after the first, as ArviZ names them."""
    return [f"{name}_dim_{i}" for i in range(values.ndim - 1)]


def _normal(prior: Mapping[str, float], names: Sequence[str]) -> dict[str, float]:
    for name in names:
        if name not in prior:
            raise UnknownName("hypothesis in the prior:", name, prior)
    chosen = {n: float(prior[n]) for n in names}
    wrong = {n: p for n, p in chosen.items() if not (math.isfinite(p) and p > 0)}
    if wrong:
        raise UsageError(f"prior = {wrong}: prior probabilities are positive numbers")
    total = math.fsum(chosen.values())
    return {n: p / total for n, p in chosen.items()}
