"""The density of readings, given the cells.

A reading of particle ``n`` is a mixture of two bell curves (`probe.Measurement`):

* with weight ``1 - coincidence`` around the value that the hypothesis gives, with scale
  ``sqrt(noise^2 + benign^2 + free^2)`` (``free`` of both cells of a contrast), Student-t
  or normal;
* otherwise a Student-t of `COINCIDENCE_DOF` degrees of freedom around zero (no change,
  or the honest level of a quantity that is read by itself), with scale
  ``sqrt(COINCIDENCE_SPREAD^2 + noise^2 + benign^2)``: on top of ordinary variation, so
  that it is the wider of the two for every quantity, temperatures included. It does
  not depend on the hypothesis, so a coincidence or a void reading teaches nothing.

A flag is one with probability ``(1 - c) * sigmoid(logit / sqrt(1 + pi free^2 / 8)) + c/2``;
the root is MacKay's (1992) approximation of a normal spread on the log odds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy import special
from torch import Tensor

from argus_bed.errors import UnknownName
from argus_bed.frame import COINCIDENCE_SPREAD, Cell
from argus_bed.probe import Measurement

COINCIDENCE_DOF = 3.0
"""Degrees of freedom of a coincidence: heavy tails with a finite variance."""

MIN_SCALE = 1e-9
NORMAL_DOF = math.inf


@dataclass(frozen=True)
class Density:
    """Densities of ``m`` readings under each of ``n`` particles.

    Attributes
    ----------
    loc, scale, weight : (2, particles, readings); the ordinary and the coincidental part,
        ``weight`` sums to one over the first axis. For a flag ``loc[0]`` is its probability.
    dof : (2, readings); infinite for a normal.
    flag : (readings,) bool; readings that are 0 or 1.
    """

    loc: Tensor
    scale: Tensor
    weight: Tensor
    dof: Tensor
    flag: Tensor

    @property
    def particles(self) -> int:
        return int(self.loc.shape[1])

    @property
    def readings(self) -> int:
        return int(self.loc.shape[2])

    def rows(self, index: Tensor) -> Density:
        """The same for the particles ``index``."""
        return replace(
            self,
            loc=self.loc[:, index],
            scale=self.scale[:, index],
            weight=self.weight[:, index],
        )

    def to(self, dtype: torch.dtype) -> Density:
        """The same in another precision."""
        return Density(
            self.loc.to(dtype),
            self.scale.to(dtype),
            self.weight.to(dtype),
            self.dof.to(dtype),
            self.flag,
        )

    def each(self, y: Tensor) -> Tensor:
        """Log density of every reading by itself under the matching particle.

        Parameters
        ----------
        y : broadcastable to (..., particles, readings).

        Returns
        -------
        (..., particles, readings)
        """
        parts = torch.stack([self._bell(y, k) for k in (0, 1)])
        value = torch.logsumexp(parts, dim=0)
        if not bool(self.flag.any()):
            return value
        odds = self.loc[0].clamp(1e-12, 1 - 1e-12)
        flags = y * torch.log(odds) + (1 - y) * torch.log1p(-odds)
        return torch.where(self.flag, flags, value)

    def _bell(self, y: Tensor, k: int) -> Tensor:
        scale, dof = self.scale[k], self.dof[k]
        squared = ((y - self.loc[k]) / scale) ** 2
        tailed = torch.where(torch.isinf(dof), 1.0, dof)
        heavy = -0.5 * (tailed + 1) * torch.log1p(squared / tailed)
        kernel = torch.where(torch.isinf(dof), -0.5 * squared, heavy)
        # a weight of zero must not make the gradient NaN
        weight = self.weight[k].clamp_min(1e-300 if y.dtype == torch.float64 else 1e-30)
        return kernel + log_norm(dof) - torch.log(scale) + torch.log(weight)

    def joint(self, y: Tensor) -> Tensor:
        """Log density of outcomes (outcomes, readings) -> (outcomes, particles)."""
        return self.each(y[:, None, :]).sum(-1)

    def sample(self, u: Tensor, pick: Tensor) -> Tensor:
        """One outcome a particle, from uniforms.

        Parameters
        ----------
        u : (particles, readings), becomes the position within the curve.
        pick : (particles, readings), chooses between the two curves.

        Returns
        -------
        (particles, readings)
        """
        curve = (pick >= self.weight[0]).long()
        loc = torch.where(curve == 0, self.loc[0], self.loc[1])
        scale = torch.where(curve == 0, self.scale[0], self.scale[1])
        dof = torch.where(curve == 0, self.dof[0], self.dof[1])
        y = loc + scale * quantile(u, dof)
        return torch.where(self.flag, (u < self.loc[0]).to(y.dtype), y)

    def moments(self) -> tuple[Tensor, Tensor]:
        """Mean and variance of each reading under each particle, (particles, readings)."""
        dof = torch.where(torch.isinf(self.dof), 1e9, self.dof).clamp_min(2.1)
        variance = self.scale**2 * (dof / (dof - 2))[:, None, :]
        mean = (self.weight * self.loc).sum(0)
        spread = (self.weight * (variance + (self.loc - mean) ** 2)).sum(0)
        odds = self.loc[0]
        return (
            torch.where(self.flag, odds, mean),
            torch.where(self.flag, odds * (1 - odds), spread),
        )


def stack(densities: Sequence[Density]) -> Density:
    """The particles of several hypotheses one after the other."""
    return replace(
        densities[0],
        loc=torch.cat([d.loc for d in densities], dim=1),
        scale=torch.cat([d.scale for d in densities], dim=1),
        weight=torch.cat([d.weight for d in densities], dim=1),
    )


def log_norm(dof: Tensor) -> Tensor:
    """Log of the normalising constant of a Student-t of unit scale; a normal at infinity."""
    finite = torch.where(torch.isinf(dof), 1.0, dof)
    ratio = torch.lgamma((finite + 1) / 2) - torch.lgamma(finite / 2)
    heavy = ratio - 0.5 * torch.log(finite * math.pi)
    return torch.where(torch.isinf(dof), -0.5 * math.log(2 * math.pi), heavy)


def quantile(u: Tensor, dof: Tensor) -> Tensor:
    """Quantiles of the Student-t (or normal) of unit scale."""
    p = u.detach().cpu().numpy().astype(float)
    nu = np.broadcast_to(dof.detach().cpu().numpy(), p.shape)
    found = np.where(np.isinf(nu), special.ndtri(p), special.stdtrit(np.minimum(nu, 1e6), p))
    return torch.as_tensor(found, dtype=u.dtype, device=u.device)


def density(
    measurements: Sequence[Measurement],
    cells: Tensor,
    free: Tensor,
    index: Mapping[Cell, int],
) -> Density:
    """The densities of ``measurements`` when nothing was read before.

    Parameters
    ----------
    cells, free : (particles, cells), from the hypothesis's model.
    index : column of each cell.

    Raises
    ------
    UnknownName : a measurement reads a cell that is not in ``index``.
    """
    mean, spread2 = location(measurements, cells, free, index)
    noise2 = cells.new_tensor([m.noise**2 + m.benign**2 for m in measurements])
    chance = cells.new_tensor([m.coincidence for m in measurements])
    flag = torch.tensor([m.family == "bernoulli" for m in measurements], device=cells.device)
    scale = torch.sqrt(noise2 + spread2).clamp_min(MIN_SCALE)
    wide = torch.sqrt(COINCIDENCE_SPREAD**2 + noise2).expand_as(mean)
    odds = torch.sigmoid(mean / torch.sqrt(1 + math.pi * (noise2 + spread2) / 8))
    odds = (1 - chance) * odds + 0.5 * chance
    weight = torch.stack([(1 - chance).expand_as(mean), chance.expand_as(mean)])
    return Density(
        loc=torch.stack([torch.where(flag, odds, mean), torch.zeros_like(mean)]),
        scale=torch.stack([scale, wide]),
        weight=weight,
        dof=degrees(measurements, cells),
        flag=flag,
    )


def degrees(measurements: Sequence[Measurement], like: Tensor) -> Tensor:
    """Degrees of freedom of both curves, (2, readings)."""
    ordinary = [NORMAL_DOF if m.family == "normal" else m.dof for m in measurements]
    return torch.tensor(
        [ordinary, [COINCIDENCE_DOF] * len(measurements)], dtype=like.dtype, device=like.device
    )


def location(
    measurements: Sequence[Measurement],
    cells: Tensor,
    free: Tensor,
    index: Mapping[Cell, int],
) -> tuple[Tensor, Tensor]:
    """Value that the hypothesis gives, and the variance it leaves open: (particles, readings)."""
    here = [_column(index, m.cell) for m in measurements]
    there = [0 if m.against is None else _column(index, m.against) for m in measurements]
    contrast = torch.tensor(
        [m.against is not None for m in measurements], dtype=cells.dtype, device=cells.device
    )
    mean = cells[:, here] - contrast * cells[:, there]
    spread2 = free[:, here] ** 2 + contrast * free[:, there] ** 2
    return mean, spread2


def _column(index: Mapping[Cell, int], cell: Cell) -> int:
    try:
        return index[cell]
    except KeyError:
        raise UnknownName("cell", str(cell), map(str, index)) from None
