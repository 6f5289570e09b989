"""A simulated system: a truth drawn from the hypotheses' own models answers the plans.

It shows how the reasoning does where everything that it assumes holds (`draw_truths`), and
where it does not (`Distortion`, `unlisted`). It measures nothing, and no verdict about a
real system follows from it.

Readings have the density of `probe.Measurement`, for one truth: with probability 1 - c

    y = cells[cell] - cells[against] + sqrt(g) * (tau * z + noise * e)

with ``tau^2 = benign^2 + free[cell]^2 + free[against]^2``, z and e standard normal, and
``g = dof / chi2(dof)``: a Student-t as a scale mixture of normals. c, g and z belong to
the cell and its partner and e to the run, so that readings which repeat each other are
merged without loss (`inference.evidence`). Otherwise y is a coincidence around zero, of
the same form with 3 degrees of freedom and ``tau^2 = COINCIDENCE_SPREAD^2 + benign^2``.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from argus_bed.contrast import partner, planned_readings
from argus_bed.errors import UnknownName, ValueRejected
from argus_bed.frame import (
    CANDIDATE,
    COINCIDENCE_SPREAD,
    Cell,
    Frame,
    is_metric,
    responds,
)
from argus_bed.hypothesis import Hypothesis, prior_probabilities
from argus_bed.probe import Measurement, Observation, Plan, Price, Sample, SideEffect
from argus_bed.quantity import TENTH, Family, Link, Quantity, quantity

Array = np.ndarray[Any, np.dtype[np.float64]]

COINCIDENCE_DOF = 3.0
LEVEL = {
    Link.LOG: math.log(0.1),
    Link.SOFT_LOG: math.log(1000.0),
    Link.LOGIT: 0.0,
    Link.SHARE: 5.0,  # tenths of the step: a difference downwards leaves something over
    Link.IDENTITY: 50.0,
    Link.BINARY: 0.0,
}
"""Link-space level of a quantity in the condition that others are compared with. It cancels
in every reading; it must only lie where the link loses nothing."""


@dataclass(frozen=True)
class Truth:
    """What is so in one simulated system.

    hypothesis : name of the one that holds; empty if none that is listed does.
    cells, free : (cells of the frame,), link space: the value that it gives each cell, and
        the sd that it leaves open.
    """

    hypothesis: str
    cells: Array
    free: Array


@dataclass(frozen=True)
class Distortion:
    """How the readings differ from what the models say; by default they do not.

    marks : factor on what the truth does to quantities other than the metric: below one the
        marks are weaker than believed, below zero they point the other way.
    noise : factor on noise and on what cells move by themselves.
    dof : degrees of freedom of all readings in place of those announced.
    """

    marks: float = 1.0
    noise: float = 1.0
    dof: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("noise", self.noise), ("dof", 1.0 if self.dof is None else self.dof)):
            if not (math.isfinite(value) and value > 0):
                raise ValueRejected(f"{name} = {value}: a positive number")
        if not math.isfinite(self.marks):
            raise ValueRejected(f"marks = {self.marks}: a finite number")


@dataclass(frozen=True)
class SimulatedProbe:
    """A way to measure a simulated system, once.

    name, kind : kinds are those of recorded cases.
    cells : read in one run, each together with the cell that it is compared with; lost time
        together with the step time.
    noise : sd of a reading in link space by quantity; that of one recorded reading
        where a quantity is not named.
    """

    name: str
    kind: str
    cells: tuple[Cell, ...]
    price: Price
    noise: Mapping[str, float] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    side_effects: tuple[SideEffect, ...] = ()


def draw_truths(
    hypotheses: Sequence[Hypothesis], frame: Frame, n: int, seed: int
) -> tuple[Truth, ...]:
    """``n`` independent truths from the prior: a hypothesis by its weight, and what its
    PyMC model then gives. Fixed by ``seed``.

    Raises
    ------
    ValueRejected : ``n`` is not a positive number.
    """
    import pymc as pm
    from pytensor.compile.mode import Mode

    if n < 1:
        raise ValueRejected(f"n={n}: draw at least one truth")
    prior = prior_probabilities(hypotheses, frame.intent)
    rng = np.random.default_rng(seed)
    names = list(prior)
    drawn = rng.choice(len(names), size=n, p=list(prior.values()))
    mode = Mode(linker="py", optimizer="fast_compile")  # compiling takes seconds a model
    found: dict[int, Truth] = {}
    for k, h in enumerate(hypotheses):
        rows = np.flatnonzero(drawn == k)
        if not len(rows):
            continue
        model = h.model(frame)
        own = int(np.random.SeedSequence([seed, zlib.crc32(h.name.encode())]).generate_state(1)[0])
        with model:
            wanted = [model["cells"], model["free"]]
            cells, free = pm.draw(wanted, draws=len(rows), random_seed=own, mode=mode)
        shape = (len(rows), len(frame.cells))
        cells, free = np.reshape(cells, shape), np.reshape(free, shape)
        found |= {int(r): Truth(h.name, c, f) for r, c, f in zip(rows, cells, free, strict=True)}
    return tuple(found[i] for i in range(n))


def unlisted(frame: Frame, moved: Mapping[str, float], longer: float = 0.3) -> Truth:
    """A truth that no hypothesis describes: the candidate's step takes longer by the share
    ``longer``, and the quantities ``moved`` differ by so much in link space.

    Raises
    ------
    UnknownName : no cell of the candidate has that quantity.
    """
    cells = np.zeros(len(frame.cells))
    present = {c.quantity for c in frame.cells if frame.root(c.condition) == CANDIDATE}
    for name in moved:
        if name not in present:
            raise UnknownName("quantity of the frame:", name, present)
    for i, cell in enumerate(frame.cells):
        if frame.root(cell.condition) != CANDIDATE or not responds(frame.stage(cell.stage)):
            continue
        if is_metric(frame, cell):
            cells[i] = math.log1p(longer) * (-1 if cell.quantity == "throughput" else 1)
        cells[i] += moved.get(cell.quantity, 0.0)
    return Truth("", cells, np.zeros(len(frame.cells)))


class SimulatedSystem:
    """Answers plans by simulation; a `System` like a live or a recorded one.

    Every probe may be used once. What a run reads does not depend on what ran before it, so
    that two policies which run the same probe on the same system read the same.

    Raises
    ------
    ValueRejected : a probe reads a cell without the one it is compared with, lost time
        without the step time, or has a side effect whose circumstance is a setting.
    UnknownName : a probe reads a cell outside the frame or needs one that does not exist.
    """

    exact_prices = True

    def __init__(
        self,
        frame: Frame,
        truth: Truth,
        probes: Sequence[SimulatedProbe],
        *,
        seed: int,
        distortion: Distortion | None = None,
        question: str = "What makes the simulated arms differ?",
    ) -> None:
        self.frame, self.truth, self.seed = frame, truth, seed
        self.question = question
        self.distortion = distortion or Distortion()
        self._probes = {p.name: p for p in probes}
        if len(self._probes) < len(probes):
            raise ValueRejected(f"probes {[p.name for p in probes]}: each name once")
        for probe in probes:
            _check(frame, probe, self._probes)

    def plans(self, known: Mapping[Cell, Sample], done: Iterable[str]) -> list[Plan]:
        """Probes that have not been paid for and whose needs are met. Comparisons are made
        within a run only: levels of two runs have nothing to do with each other.
        """
        finished = set(done)
        return [
            self._plan(probe)
            for probe in self._probes.values()
            if probe.name not in finished and set(probe.needs) <= finished
        ]

    def _plan(self, probe: SimulatedProbe) -> Plan:
        here = dict.fromkeys(probe.cells, 1)
        planned = planned_readings(self.frame, here, {})
        measurements = (
            replace(m, noise=probe.noise.get(m.cell.quantity, m.noise)) for m in planned
        )
        return Plan(
            probe=probe.name,
            settings={},
            conditions=tuple(dict.fromkeys(c.condition for c in probe.cells)),
            measurements=tuple(measurements),
            price=probe.price,
            needs=probe.needs,
            reads=probe.cells,
            kind=probe.kind,
        )

    def side_effects(self, plan: Plan) -> tuple[SideEffect, ...]:
        return self._probes[plan.probe].side_effects

    def describe(self, plan: Plan) -> str:
        return self._probes[plan.probe].kind.replace("_", " ")

    def signal(self, plan: Plan) -> Mapping[str, str]:
        probe = self._probes[plan.probe]
        read = ", ".join(sorted({c.quantity.replace("_", " ") for c in probe.cells}))
        return {
            "question": self.describe(plan),
            "establishes": f"the simulated {read}",
            "leaves_open": "every real system: nothing was run here",
            "level": "log",
            "locality": ", ".join(sorted({c.stage or "step" for c in probe.cells})),
            "objective_check": "the truth from which the readings were drawn",
            "disturbance": f"x{1 + probe.price.perturbation:g} while it is on",
        }

    def execute(self, plan: Plan, seed: int) -> Observation:
        """Draw what the plan reads. ``seed`` is not used: the system has its own."""
        link = self._link_values(plan)
        step = {
            c.condition: math.exp(v)
            for c, v in link.items()
            if c.quantity == "step_time" and c.stage is None
        }
        samples = tuple(
            Sample(c, (_unlinked(quantity(c.quantity), v, step.get(c.condition, 1.0)),), True)
            for c, v in link.items()
        )
        return Observation(samples, {"simulated": True}, 0.0, plan.price.seconds)

    def close(self) -> None:
        """Nothing is held open."""

    def reading(self, plan: Plan, measurement: Measurement) -> float:
        """The link-space value that a run of ``plan`` reads; the same every time."""
        index = self.frame.cell_index
        c = index[measurement.cell]
        a = None if measurement.against is None else index[measurement.against]
        truth, wrong = self.truth, self.distortion
        mean = truth.cells[c] - (0.0 if a is None else truth.cells[a])
        if not is_metric(self.frame, measurement.cell):
            mean *= wrong.marks
        free2 = truth.free[c] ** 2 + (0.0 if a is None else truth.free[a] ** 2)
        noise, benign = wrong.noise * measurement.noise, wrong.noise * measurement.benign
        void = 1.0 - math.prod(
            1.0 - e.probability
            for e in self.side_effects(plan)
            if measurement.cell.quantity in e.voids
        )
        cell, run = self._streams(plan, measurement)
        by_chance = (cell.random() < measurement.coincidence) | (run.random() < void)
        if measurement.family == "bernoulli":
            spread2 = noise**2 + benign**2 + free2
            odds = 1 / (1 + math.exp(-mean / math.sqrt(1 + math.pi * spread2 / 8)))
            return float(cell.random() < (0.5 if by_chance else odds))
        dof = measurement.dof if measurement.family == "student" else math.inf
        tau2 = benign**2 + free2
        if by_chance:
            mean, dof, tau2 = 0.0, COINCIDENCE_DOF, COINCIDENCE_SPREAD**2 + benign**2
        dof = dof if wrong.dof is None else wrong.dof
        g = 1.0 if math.isinf(dof) else dof / cell.chisquare(dof)
        away = math.sqrt(tau2) * cell.standard_normal() + noise * run.standard_normal()
        return float(mean + math.sqrt(g) * away)

    def _streams(
        self, plan: Plan, measurement: Measurement
    ) -> tuple[np.random.Generator, np.random.Generator]:
        """Random numbers of the cell and its partner, and of this run of them."""
        key = zlib.crc32(str(measurement).encode())
        run = zlib.crc32(plan.key.encode())
        return (
            np.random.default_rng([self.seed, key]),
            np.random.default_rng([self.seed, key, run]),
        )

    def _link_values(self, plan: Plan) -> dict[Cell, float]:
        """A value of every cell such that each planned reading comes out as drawn."""
        drawn = {m.cell: (m.against, self.reading(plan, m)) for m in plan.measurements}
        found: dict[Cell, float] = {}

        def value(cell: Cell) -> float:
            if cell not in found:
                against, y = drawn.get(cell, (None, LEVEL[quantity(cell.quantity).link]))
                found[cell] = y if against is None else value(against) + y
            return found[cell]

        return {cell: value(cell) for cell in plan.reads}


def _unlinked(about: Quantity, link: float, step_s: float) -> float:
    """The value in the quantity's unit; lost time from its share of a step of ``step_s``."""
    match about.link:
        case Link.LOG:
            return math.exp(link)
        case Link.SOFT_LOG:
            return math.exp(link) - about.floor
        case Link.LOGIT:
            return 1 / (1 + math.exp(-link))
        case Link.SHARE:
            return link * TENTH * step_s
        case _:
            return link


def _check(frame: Frame, probe: SimulatedProbe, known: Mapping[str, SimulatedProbe]) -> None:
    for need in probe.needs:
        if need not in known:
            raise UnknownName(f"probe that {probe.name!r} needs:", need, known)
    for cell in probe.cells:
        if cell not in frame.cell_index:
            raise UnknownName(
                f"cell that {probe.name!r} reads:", str(cell), map(str, frame.cell_index)
            )
        if quantity(cell.quantity).family is Family.LOST_TIME:
            step = Cell("step_time", cell.condition)
            if step not in probe.cells:
                raise ValueRejected(f"probe {probe.name!r} reads {cell} without {step}")
    reach = dict.fromkeys(probe.cells, 1)
    read = {m.cell for m in planned_readings(frame, reach, {})}
    read |= {other for c in probe.cells if (other := partner(frame, c, reach)) is not None}
    for cell in probe.cells:
        if cell not in read:
            raise ValueRejected(
                f"probe {probe.name!r} reads {cell} without the cell that it compares with"
            )
    for effect in probe.side_effects:
        if effect.when.startswith("setting "):
            raise ValueRejected(
                f"probe {probe.name!r}: side effect {effect.kind!r} holds when {effect.when!r}: "
                "a simulated system has no settings; give the circumstance a probability"
            )
