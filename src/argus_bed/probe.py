"""A probe is a way to measure, and a measurement is an intervention.

A probe declares, before it runs, which cells it reads, what that costs, how it
disturbs its target, what it can establish and what it leaves open. When it runs, its
instrument lives inside the supervised child process that runs the workload.

What a probe knows about the world is its likelihood: `Measurement` is one planned
reading with its noise, `Reading` is the same with a value. A hypothesis never knows
which probes exist.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from argus_bed.discovery import discover
from argus_bed.frame import Cell, Frame

Risk = Literal["none", "rebuild", "numerics", "concurrency", "production"]
"""What a run changes beyond time. All but ``none`` and ``rebuild`` wait for a person."""

ReadingFamily = Literal["student", "normal", "bernoulli"]


@dataclass(frozen=True)
class Measurement:
    """One planned reading: a cell, or the contrast of a cell against another.

    Given the hypothesis, the link-space value is, with probability 1 - coincidence,
    location-scale around ``cells[cell] - cells[against]`` with variance
    ``noise**2 + benign**2 + free[cell]**2``, and otherwise a Student-t of scale
    `frame.COINCIDENCE_SPREAD`: the quantity moved for reasons of its own.

    noise : sd of the reading given the cell (sampling, pairing, drift), link space.
    benign : sd of the cell itself between conditions; repeating does not average it out.
    coincidence : probability of a move unrelated to the question, or of a void reading.
    dof : degrees of freedom of the Student-t.
    n : values of which a plan takes the median; once read, ``noise`` says all and it is 1.
    family : ``bernoulli`` reads a flag whose log odds is the cell.
    """

    cell: Cell
    against: Cell | None = None
    noise: float = 0.02
    benign: float = 0.0
    coincidence: float = 0.0
    dof: float = 4.0
    family: ReadingFamily = "student"
    n: int = 1

    @property
    def key(self) -> tuple[Cell, Cell | None]:
        """Readings with one key repeat each other."""
        return (self.cell, self.against)

    def __str__(self) -> str:
        return f"{self.cell} vs {self.against.condition}" if self.against else str(self.cell)


@dataclass(frozen=True)
class Reading:
    """A measurement and what it gave, in link space."""

    measurement: Measurement
    value: float


@dataclass(frozen=True)
class SideEffect:
    """What an instrument does to its target beside reading it.

    kind : removes_overlap, serializes, inflates_host, flushes_cache, locks_clocks, other.
    when : empty if it always holds, else the circumstance in words.
    probability : of that circumstance, before anything is known.
    voids : quantities whose values must then not be believed.
    """

    kind: str
    when: str = ""
    probability: float = 1.0
    voids: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Price:
    """What a run is expected to cost, in seconds of the target's time.

    setup_s is paid once per run, run_s grows with its length. ``perturbation`` is the
    share by which a step gets longer meanwhile.
    """

    setup_s: float = 0.0
    run_s: float = 0.0
    perturbation: float = 0.0
    source: str = "assumption"

    @property
    def seconds(self) -> float:
        return self.setup_s + self.run_s


@dataclass(frozen=True)
class Sample:
    """Values as they were read, in the order of reading, in the quantity's own unit.

    Values of two samples of one run share an index if ``paired``. ``doubt`` is the
    probability that the instrument voided them; the study sets it, from what is known about
    the instrument's side effects.
    """

    cell: Cell
    values: tuple[float, ...]
    paired: bool = False
    doubt: float = 0.0


@dataclass(frozen=True)
class Observation:
    """What one run read, with the environment it ran in."""

    samples: tuple[Sample, ...]
    environment: Mapping[str, Any] = field(default_factory=dict)
    started_at: float = 0.0
    seconds: float = 0.0
    overhead: float | None = None  # measured share by which steps got longer, if the run could tell


@dataclass(frozen=True)
class Plan:
    """One way to use a probe: its settings, and what it would read in which conditions."""

    probe: str
    settings: Mapping[str, Any]
    conditions: tuple[str, ...]
    measurements: tuple[Measurement, ...]
    price: Price
    risk: Risk = "none"
    needs: tuple[str, ...] = ()  # keys of plans that must have run before
    reads: tuple[Cell, ...] = ()  # every cell of which it brings samples
    kind: str = ""  # of probe, where its name does not say it (a recorded case's is a label)

    @property
    def key(self) -> str:
        """The plan in one word; equal keys mean the same measurement."""
        settings = ",".join(f"{k}={v}" for k, v in sorted(self.settings.items()))
        return f"{self.probe}({settings})" if settings else self.probe


@runtime_checkable
class Instrument(Protocol):
    """Lives in the child process, around a block of steps. Must be picklable.

    ``start`` and ``stop`` bracket the block; ``stop`` returns one value per (quantity,
    stage), in the quantity's own unit and per step where that makes sense. Around each
    stage of the workload ``enter`` and ``leave`` are called if the instrument has them.
    """

    def start(self, workload: Any, state: Any) -> None: ...

    def stop(self, steps: int) -> Mapping[tuple[str, str | None], float]: ...


BARE = ("step_time", "bare")
"""Under which `Bench.interleave` returns step times without the instrument."""


class Bench(Protocol):
    """What a probe gets to run the workload with (implemented in `execution`)."""

    def interleave(
        self,
        conditions: Sequence[str],
        *,
        blocks: int,
        steps: int,
        instrument: Instrument | None = None,
        seed: int = 0,
        bare: bool = False,
    ) -> Mapping[str, Mapping[tuple[str, str | None], list[float]]]:
        """Run blocks of steps, conditions in counterbalanced random order.

        Returns condition -> (quantity, stage) -> one value per block, ``step_time``
        always among them. Block i of every condition ran next to block i of the others.
        ``steps`` 0: as many as make a block of about 0.1 s. ``bare``: beside every block
        runs one without the instrument, in random order; its step time is under `BARE`.
        """
        ...

    def call(self, condition: str, function: str, **arguments: Any) -> Any:
        """Call a module-level function ``"module:name"`` with (workload, state, **arguments)
        in the child that holds ``condition``.
        """
        ...


@dataclass(frozen=True)
class Sweep:
    """Where an operation's result can be held against one of higher precision.

    operation : its name.
    scales : sizes of the input (tokens, elements, steps), shortest first.
    parts : in how many partitions it is computed; 1: in one piece.
    seconds : about what the whole sweep takes in one arm; for prices only.
    """

    operation: str
    scales: tuple[int, ...]
    parts: tuple[int, ...] = (1,)
    seconds: float = 1.0

    def points(self) -> dict[str, tuple[int, int]]:
        """(scale, parts) by the name of the stage under which its error is kept."""
        return {
            f"{self.operation}-{scale}x{parts}": (scale, parts)
            for scale in self.scales
            for parts in self.parts
        }


@dataclass(frozen=True)
class Target:
    """What a probe may know when it plans: never an outcome.

    step_s : seconds of a step in the warm-up, for prices only.
    operations, capabilities : what the workload and its process offer.
    risks : of each derived condition, as its knob declares it.
    reports : (quantity, stage) that the workload tells by itself.
    claims : operations of which a benchmark's result is declared.
    sweeps : where results can be held against a reference.
    """

    frame: Frame
    step_s: float
    operations: tuple[str, ...] = ()
    capabilities: frozenset[str] = frozenset()
    risks: Mapping[str, Risk] = field(default_factory=dict)
    reports: tuple[tuple[str, str | None], ...] = ()
    claims: tuple[str, ...] = ()
    sweeps: tuple[Sweep, ...] = ()


class Probe(ABC):
    """Base of every probe. One file, one probe.

    The engine owns the order of runs, the processes and the ledger; a probe owns what
    is read and how. ``plans`` must be cheap, pure and free of outcomes. ``run`` is called
    in the engine's process, may take long, and either returns an `Observation` whose
    samples lie in the cells that the plan announced, or raises `ProbeFailed`,
    `ProbeUnavailable` or `WorkloadFailed`. Instances hold no state between runs.
    """

    name: str
    question: str
    """The question it answers, as a person would put it."""
    level: Literal[
        "correctness",
        "log",
        "trace",
        "microbenchmark",
        "end_to_end",
        "counter",
        "static",
    ]
    establishes: str
    leaves_open: str
    locality: str
    """Where in the system it looks: step, stage, thread, process, device."""
    objective_check: str
    """How a person could tell that its reading is right, without this product."""
    side_effects: tuple[SideEffect, ...] = ()
    excludes: frozenset[str] = frozenset()
    """Resources that no two probes may hold at once, such as ``cupti``."""

    @abstractmethod
    def plans(self, target: Target) -> Iterable[Plan]:
        """The ways in which this probe could be used on ``target``; none if it does not apply."""

    @abstractmethod
    def run(self, plan: Plan, bench: Bench, seed: int) -> Observation:
        """Measure."""

    def __repr__(self) -> str:
        return f"<Probe {self.name}>"


def catalogue(folders: Iterable[str] = ()) -> dict[str, Probe]:
    """Every known probe by name. Raises `ConfigError` if a file does not load."""
    return discover(Probe, "argus_bed.probes", folders)  # type: ignore[type-abstract]
