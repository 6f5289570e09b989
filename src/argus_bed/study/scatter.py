"""How far readings of one quantity scatter in this study, learned from its own runs.

The plan states a scatter before anything is read. Every run then shows its own, and the
runs before it showed theirs: the three are pooled by their degrees of freedom, as
variances of one quantity are (a scaled inverse chi-squared prior on the variance;
Gelman et al., Bayesian Data Analysis, 2013, section 2.6).

The scatter of a run is the median absolute deviation, which one disturbed block does not
move. Its factors for few readings and its efficiency are those of normal data (Croux and
Rousseeuw, 1992, Computational Statistics 1; both agree with 200,000 simulated sets).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from argus_bed.frame import Cell
from argus_bed.probe import Measurement, Sample
from argus_bed.quantity import Link, quantity

PRIOR_READINGS = 2.0  # weight of the planned scatter: known within a factor of two or so
MAD_TO_SD = 1.4826
MAD_EFFICIENCY = 0.37  # degrees of freedom of a deviation of n readings, over n - 1
_FEW = {2: 1.196, 3: 1.495, 4: 1.363, 5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}
MEDIAN_EFFICIENCY = 1.2533  # standard error of a median over that of a mean, normal data
MAX_DOF = 30.0
Of = tuple[str, str | None]
"""A quantity and its stage."""


@dataclass(frozen=True)
class Spread:
    """A standard deviation in link space, and how well it is known."""

    sd: float
    dof: float

    def pooled(self, other: Spread) -> Spread:
        """Both taken together, weighted by their degrees of freedom."""
        dof = self.dof + other.dof
        variance = (self.dof * self.sd**2 + other.dof * other.sd**2) / dof
        return Spread(math.sqrt(variance), dof)


def spread_of(values: Sequence[float]) -> Spread | None:
    """The scatter that two or more readings show; None for one."""
    n = len(values)
    if n < 2:
        return None
    centre = median(values)
    deviation = median(abs(v - centre) for v in values)
    factor = _FEW.get(n, n / (n - 0.8))
    return Spread(factor * MAD_TO_SD * deviation, MAD_EFFICIENCY * (n - 1))


@dataclass(frozen=True)
class Scatter:
    """Scatter of the differences of paired blocks, by quantity and stage; immutable."""

    seen: Mapping[Of, Spread] = field(default_factory=dict)

    def after(self, samples: Iterable[Sample]) -> Scatter:
        """The same with the samples of one more run."""
        runs: dict[Of, list[Sample]] = {}
        for s in samples:
            if s.paired and len(s.values) > 1 and quantity(s.cell.quantity).link is Link.LOG:
                runs.setdefault(_of(s.cell), []).append(s)
        seen = dict(self.seen)
        for of, (first, *others) in runs.items():
            to_link = quantity(of[0]).to_link
            for other in others:
                if len(other.values) != len(first.values):
                    continue
                pairs = zip(other.values, first.values, strict=True)
                found = spread_of([to_link(a) - to_link(b) for a, b in pairs])
                if found is not None:
                    seen[of] = seen[of].pooled(found) if of in seen else found
        return Scatter(seen)

    def of_one(self, measurement: Measurement) -> Spread:
        """What a single reading of ``measurement`` is expected to scatter by."""
        plan = stated(measurement)
        earlier = self.seen.get(_of(measurement.cell)) if measurement.against else None
        return plan if earlier is None else plan.pooled(earlier)

    def expects(self, measurements: Iterable[Measurement]) -> tuple[Measurement, ...]:
        """The same plans with the noise that earlier runs let expect."""
        return tuple(replace(m, noise=self.of_one(m).sd / math.sqrt(m.n)) for m in measurements)


UNSEEN = Scatter()


def stated(measurement: Measurement, part: float = 1.0) -> Spread:
    """What the plan says that ``part`` of a single reading scatters by."""
    return Spread(part * measurement.noise * math.sqrt(measurement.n), PRIOR_READINGS)


def noise_of_median(values: Sequence[float], planned: Spread) -> tuple[float, float]:
    """Standard error of the median of ``values``, and its degrees of freedom.

    ``planned`` is what one of them was expected to scatter by.
    """
    own = spread_of(values)
    spread = planned if own is None else planned.pooled(own)
    efficiency = MEDIAN_EFFICIENCY if len(values) > 2 else 1.0
    return efficiency * spread.sd / math.sqrt(len(values)), min(spread.dof, MAX_DOF)


def _of(cell: Cell) -> Of:
    return (cell.quantity, cell.stage)
