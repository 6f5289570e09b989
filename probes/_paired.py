"""What probes share that compare the two arms in interleaved blocks.

Noise is stated before anything is read, by the number of blocks: the sd of one block's
value in link space over the square root of how many there are. `argus_bed.study` replaces
it by what the blocks themselves show.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, log, sqrt
from statistics import median
from typing import Any

from argus_bed.contrast import BLOCK_READING
from argus_bed.errors import ProbeFailed
from argus_bed.frame import BASELINE, CANDIDATE, Cell, Condition, Frame, benign
from argus_bed.probe import (
    BARE,
    Bench,
    Instrument,
    Measurement,
    Observation,
    Plan,
    Price,
    Probe,
    Risk,
    Sample,
    Target,
)
from argus_bed.quantity import Family, Link, quantity

BLOCK_S = 0.1  # length of a block that the bench aims at
ARMS = (BASELINE, CANDIDATE)
Key = tuple[str, str | None]
Taken = Mapping[str, Mapping[Key, Sequence[float]]]


def block_s(target: Target) -> float:
    """Seconds of one block on ``target``: whole steps, at least `BLOCK_S`."""
    return max(ceil(BLOCK_S / target.step_s), 1) * target.step_s


def contrast(
    frame: Frame,
    name: str,
    blocks: int,
    stage: str | None = None,
    condition: str = CANDIDATE,
    against: str = BASELINE,
) -> Measurement:
    """``name`` in one condition against another, over ``blocks`` pairs."""
    cell, other = Cell(name, condition, stage), Cell(name, against, stage)
    noise = BLOCK_READING[quantity(name).family] * sqrt(2 / blocks)
    spread, coincidence = benign(frame, cell, other)
    return Measurement(cell, other, max(noise, 1e-6), spread, coincidence, 4.0, n=blocks)


def absolute(
    frame: Frame, name: str, blocks: int, condition: str, stage: str | None = None
) -> Measurement:
    """``name`` in one condition by itself, over ``blocks`` blocks."""
    cell = Cell(name, condition, stage)
    about = quantity(name)
    noise = BLOCK_READING[about.family] / sqrt(blocks)
    spread, coincidence = benign(frame, cell, None)
    if about.family is Family.FLAG:
        return Measurement(cell, None, 1e-6, spread, coincidence, 4.0, "bernoulli")
    return Measurement(cell, None, max(noise, 1e-6), spread, coincidence, 4.0, n=blocks)


def measured(frame: Frame, name: str, blocks: int, stage: str | None) -> list[Measurement]:
    """How a quantity read in both arms is used: as a contrast."""
    return [contrast(frame, name, blocks, stage)]


def counterpart(frame: Frame, condition: Condition) -> str | None:
    """What a derived condition is compared with: the arm that it derives from; where the knob
    is turned in both arms, the baseline's for the candidate's, and none for the baseline's.
    """
    twin = next(
        (
            c.name
            for c in frame.conditions
            if c.of != condition.of
            and not c.is_arm
            and (c.knob, c.value, c.system) == (condition.knob, condition.value, condition.system)
        ),
        None,
    )
    if twin is None:
        return condition.of
    # one plan for the pair: candidate against baseline, the knob turned in both
    return twin if (condition.of, frame.root(twin)) == (CANDIDATE, BASELINE) else None


def samples(taken: Taken, cells: Iterable[Cell], paired: bool = True) -> tuple[Sample, ...]:
    """The values of ``cells`` as samples. A zero where only logarithms make sense is no value.

    Where such values are left out, the others are no longer those of block 0, 1, 2, ...:
    the sample is then not paired.
    """
    found = []
    for cell in dict.fromkeys(cells):
        read = taken.get(cell.condition, {}).get((cell.quantity, cell.stage), ())
        log_only = quantity(cell.quantity).link is Link.LOG
        values = tuple(v for v in read if v > 0 or not log_only)
        if values:
            found.append(Sample(cell, values, paired and len(values) == len(read)))
    return tuple(found)


def overhead(taken: Taken) -> float | None:
    """Share by which steps got longer with the instrument, from blocks run side by side."""
    ratios = [
        log(with_it / without)
        for readings in taken.values()
        for with_it, without in zip(
            readings.get(("step_time", None), ()), readings.get(BARE, ()), strict=False
        )
    ]
    return median(ratios) if ratios else None


class PairedProbe(Probe):
    """Base of probes whose instrument watches both arms.

    Subclasses say what they read (`reads`) and with what (`instrument`). Every other
    block runs without the instrument: the step times that are reported come from those,
    and the difference is the overhead.
    """

    blocks: tuple[int, ...] = (8, 3)
    """How long it may run: by default, and in a hurry for effects that are large."""
    setup_s: float = 0.0
    perturbation: float = 0.0
    price_source: str = "assumption"
    plain_step_time = True
    """Whether the blocks without instrument also tell the contrast of the metric."""

    def applies(self, target: Target) -> bool:
        return True

    @abstractmethod
    def reads(self, target: Target) -> list[Key]:
        """What the instrument reads on ``target``: quantities, with their stage."""

    def settings(self, target: Target) -> Iterable[dict[str, Any]]:
        """What can be chosen beside the number of blocks."""
        return [{}]

    @abstractmethod
    def instrument(self, plan: Plan) -> Instrument | None:
        """What watches the blocks of ``plan``."""

    def measurements(self, target: Target, blocks: int, keys: list[Key]) -> list[Measurement]:
        frame = target.frame
        return [m for name, stage in keys for m in measured(frame, name, blocks, stage)]

    def plans(self, target: Target) -> Iterable[Plan]:
        if not self.applies(target):
            return
        keys = self.reads(target)
        if not keys:
            return
        for blocks in self.blocks:
            found = self.measurements(target, blocks, keys)
            if self.plain_step_time and target.frame.metric == "step_time":
                found.append(contrast(target.frame, "step_time", blocks))
            for extra in self.settings(target):
                yield self._plan(target, blocks, extra, keys, tuple(found))

    def _plan(
        self,
        target: Target,
        blocks: int,
        extra: Mapping[str, Any],
        keys: list[Key],
        found: tuple[Measurement, ...],
    ) -> Plan:
        bare_too = 2 * blocks + 1
        run_s = len(ARMS) * bare_too * block_s(target) * (1 + self.perturbation / 2)
        cells = [Cell(name, arm, stage) for name, stage in keys for arm in ARMS]
        cells += [Cell("step_time", arm) for arm in ARMS]
        return Plan(
            probe=self.name,
            settings={"blocks": blocks, **extra},
            conditions=ARMS,
            measurements=found,
            price=Price(self.setup_s, run_s, self.perturbation, self.price_source),
            risk=self.risk(target),
            reads=tuple(dict.fromkeys(cells)),
        )

    def risk(self, target: Target) -> Risk:
        return "none"

    def run(self, plan: Plan, bench: Bench, seed: int) -> Observation:
        blocks = int(plan.settings["blocks"])
        taken = bench.interleave(
            ARMS, blocks=blocks, steps=0, instrument=self.instrument(plan), seed=seed, bare=True
        )
        if not self.plain_step_time:
            return Observation(samples(taken, plan.reads), overhead=overhead(taken))
        plain = {
            arm: {**readings, ("step_time", None): readings[BARE]}
            for arm, readings in taken.items()
        }
        found = samples(plain, plan.reads)
        self.check(plan, found)
        return Observation(found, overhead=overhead(taken))

    def check(self, plan: Plan, found: tuple[Sample, ...]) -> None:
        """Raise `ProbeFailed` if nothing of what was planned came."""
        wanted = {m.cell for m in plan.measurements if m.cell.quantity != "step_time"}
        if wanted and not wanted & {s.cell for s in found}:
            raise ProbeFailed(f"{self.name} read none of {', '.join(sorted(map(str, wanted)))}")
