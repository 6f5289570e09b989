"""Everything read so far, as one likelihood that does not depend on the order.

Readings with one key repeat each other: they see the same deviation of the cell from
what the hypothesis says, so averaging them shrinks the noise and never that deviation.
They are merged into one reading whose value is the mean weighted by ``(1-c)/noise^2``
(a reading that is probably void counts for little), whose noise is
``1/sqrt(sum 1/noise^2)``, and whose ``benign`` is the largest of theirs. Runs that scatter
more than their noise says have the variance between them added to each (`between_runs`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from argus_bed.errors import ValueRejected
from argus_bed.frame import COINCIDENCE_SPREAD, Cell
from argus_bed.inference.likelihood import MIN_SCALE, Density, density, location
from argus_bed.probe import Measurement, Reading


@dataclass(frozen=True)
class Evidence:
    """Readings in the order in which they came; immutable.

    Attributes
    ----------
    readings : as they were read.
    """

    readings: tuple[Reading, ...] = ()

    def add(self, readings: Iterable[Reading]) -> Evidence:
        """The evidence with ``readings`` added.

        Raises
        ------
        ValueRejected : a value or noise that is not finite, a flag that is not 0 or 1.
        """
        return Evidence((*self.readings, *map(_checked, readings)))

    def __len__(self) -> int:
        return len(self.readings)

    @cached_property
    def merged(self) -> tuple[Reading, ...]:
        """One reading a key, ordered by key so that the order of reading cannot show."""
        groups: dict[tuple[Cell, Cell | None], list[Reading]] = {}
        for reading in self.readings:
            groups.setdefault(reading.measurement.key, []).append(reading)
        return tuple(merge(groups[key]) for key in sorted(groups, key=str))

    def blurred(self, noise: float, sharp: Evidence) -> Evidence:
        """The same with ``noise`` (sd, link space) added to what ``sharp`` does not hold yet."""
        known = sharp.by_key
        return Evidence(
            tuple(
                r if known.get(r.measurement.key) == r else _with_noise(r, noise)
                for r in self.merged
            )
        )

    @cached_property
    def by_key(self) -> Mapping[tuple[Cell, Cell | None], Reading]:
        """The merged reading of every key that was read."""
        return {r.measurement.key: r for r in self.merged}

    def log_likelihood(self, cells: Tensor, free: Tensor, index: Mapping[Cell, int]) -> Tensor:
        """Log density of everything read, (particles,); differentiable.

        Parameters
        ----------
        cells, free : (particles, cells).
        index : column of each cell.
        """
        if not self.merged:
            return cells.new_zeros(cells.shape[0])
        values = cells.new_tensor([r.value for r in self.merged])
        planned = [r.measurement for r in self.merged]
        return density(planned, cells, free, index).each(values).sum(-1)

    def predictive(
        self,
        measurements: Sequence[Measurement],
        cells: Tensor,
        free: Tensor,
        index: Mapping[Cell, int],
    ) -> Density:
        """Density of new readings, given the cells and what was read before.

        For a key that was read (value v, noise s1), the deviation of the cell is partly
        known. With tau^2 = benign^2 + free^2 and k = tau^2 / (tau^2 + s1^2) a new reading
        of noise s2 has mean ``(1-k) mu + k v`` and variance ``s2^2 + tau^2 s1^2 /
        (tau^2 + s1^2)`` (conditioning of two normals that share tau; used for the
        Student-t as well), and whether it is a coincidence is known as far as v tells.
        """
        fresh = density(measurements, cells, free, index)
        again = [i for i, m in enumerate(measurements) if m.key in self.by_key]
        if not again:
            return fresh
        old = [self.by_key[measurements[i].key] for i in again]
        known = density([r.measurement for r in old], cells, free, index)
        loc, scale, weight = self._condition(
            [measurements[i] for i in again], old, known, cells, free, index
        )
        found = replace(
            fresh, loc=fresh.loc.clone(), scale=fresh.scale.clone(), weight=fresh.weight.clone()
        )
        found.loc[:, :, again] = loc
        found.scale[:, :, again] = scale
        found.weight[:, :, again] = weight
        return found

    def _condition(
        self,
        new: Sequence[Measurement],
        old: Sequence[Reading],
        known: Density,
        cells: Tensor,
        free: Tensor,
        index: Mapping[Cell, int],
    ) -> tuple[Tensor, Tensor, Tensor]:
        """loc, scale and weight of repeated readings, each (2, particles, readings)."""
        v = cells.new_tensor([r.value for r in old])
        s1 = cells.new_tensor([max(r.measurement.noise, MIN_SCALE) ** 2 for r in old])
        s2 = cells.new_tensor([m.noise**2 for m in new])
        benign2 = cells.new_tensor(
            [max(m.benign, r.measurement.benign) ** 2 for m, r in zip(new, old, strict=True)]
        )
        _, open2 = location(new, cells, free, index)
        tau2 = torch.stack([benign2 + open2, (COINCIDENCE_SPREAD**2 + benign2).expand_as(open2)])
        k = tau2 / (tau2 + s1)
        loc = (1 - k) * known.loc + k * v
        scale = torch.sqrt(s2 + tau2 * s1 / (tau2 + s1)).clamp_min(MIN_SCALE)
        log_weight = torch.stack([known._bell(v, 0), known._bell(v, 1)])
        weight = torch.softmax(log_weight, dim=0)
        # a flag that was read stays what it was, whatever the hypothesis
        seen = (0.98 * v + 0.01).expand_as(known.loc[0])
        flagged = torch.where(known.flag, seen, loc[0])
        return torch.stack([flagged, loc[1]]), scale, weight


def merge(readings: Sequence[Reading]) -> Reading:
    """Readings of one key as one reading; their order does not matter."""
    if len(readings) == 1:
        return readings[0]
    ordered = sorted(readings, key=_rank)
    planned = [r.measurement for r in ordered]
    between = between_runs(ordered)
    precision = [1.0 / (max(m.noise, MIN_SCALE) ** 2 + between) for m in planned]
    trust = [p * max(1.0 - m.coincidence, 1e-6) for p, m in zip(precision, planned, strict=True)]
    total = math.fsum(trust)

    def mean(values: Iterable[float]) -> float:
        return math.fsum(t * v for t, v in zip(trust, values, strict=True)) / total

    merged = replace(
        planned[0],
        noise=1.0 / math.sqrt(math.fsum(precision)),
        benign=max(m.benign for m in planned),
        coincidence=mean(m.coincidence for m in planned),
        dof=mean(m.dof for m in planned),
    )
    return Reading(merged, mean(r.value for r in ordered))


def between_runs(readings: Sequence[Reading]) -> float:
    """Variance between runs beyond what their own noise explains, zero or more.

    The moment estimate of a random-effects analysis (DerSimonian and Laird, 1986,
    Controlled Clinical Trials 7): a machine with other work is not the same machine a
    minute later, and no number of steps within one run shows that.
    """
    if readings[0].measurement.family == "bernoulli":
        return 0.0
    weight = [1.0 / max(r.measurement.noise, MIN_SCALE) ** 2 for r in readings]
    total = math.fsum(weight)
    centre = math.fsum(w * r.value for w, r in zip(weight, readings, strict=True)) / total
    scatter = math.fsum(w * (r.value - centre) ** 2 for w, r in zip(weight, readings, strict=True))
    scale = total - math.fsum(w * w for w in weight) / total
    return max(0.0, (scatter - (len(readings) - 1)) / scale) if scale > 0 else 0.0


def _with_noise(reading: Reading, noise: float) -> Reading:
    planned = reading.measurement
    return replace(reading, measurement=replace(planned, noise=math.hypot(planned.noise, noise)))


def _rank(reading: Reading) -> tuple[float, float, str]:
    return (reading.measurement.noise, reading.value, reading.measurement.family)


def _checked(reading: Reading) -> Reading:
    planned = reading.measurement
    if not math.isfinite(reading.value):
        raise ValueRejected(f"{planned} = {reading.value}: a reading must be a finite number")
    if not (math.isfinite(planned.noise) and planned.noise >= 0):
        raise ValueRejected(f"{planned}: noise = {planned.noise} must be finite and not negative")
    if planned.family == "bernoulli" and reading.value not in (0.0, 1.0):
        raise ValueRejected(f"{planned} = {reading.value:g}: a flag is 0 or 1")
    return reading
