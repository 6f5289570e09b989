"""What people allow a study to do. The engine reads it and cannot change it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from argus_bed.probe import Risk


class Policy(BaseModel):
    """Limits and thresholds of a study.

    Attributes
    ----------
    budget_s : price that the whole study may cost, in seconds of the target's time.
    max_runs : number of runs after which the study stops.
    decide_at : posterior probability at which an explanation is accepted.
    min_gain_bits : a probe that is expected to tell less is not worth running.
    harm : seconds lost per second for which the target is disturbed (weight of perturbation).
    max_perturbation : cap on the share by which a probe may lengthen a step.
    approve : classes of risk that wait for a person.
    unattended_failures : how often a plan may fail before it is no longer offered.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    budget_s: float = Field(default=3600.0, gt=0, allow_inf_nan=False)
    max_runs: int = Field(default=40, ge=1)
    decide_at: float = Field(default=0.95, gt=0.5, lt=1)
    min_gain_bits: float = Field(default=0.02, gt=0, allow_inf_nan=False)
    harm: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    max_perturbation: float = Field(default=3.0, ge=0, allow_inf_nan=False)
    approve: frozenset[Risk] = frozenset({"numerics", "concurrency", "production"})
    unattended_failures: int = Field(default=2, ge=1)
