"""Whether errors of the result differ between the arms, over scales and partitionings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from argus_bed.probes._paired import ARMS, contrast

from argus_bed.errors import ProbeFailed
from argus_bed.frame import Cell
from argus_bed.probe import Bench, Observation, Plan, Price, Probe, Sample, Target

INPUTS = 2  # drawn anew for each; both arms get the same ones


def error(workload: Any, state: Any, operation: str, scale: int, parts: int, seed: int) -> float:
    """Relative error of ``operation`` at one point of its sweep, in the child."""
    check = next(c for c in workload.checks if c.sweep.operation == operation)
    return float(check.error(state, scale, parts, seed))


class NumericCheck(Probe):
    """Runs an operation at growing scale, in one piece and partitioned, in both arms.

    One length says little: an error that is harmless there may grow with the input, and one
    that partitioning adds or takes away lies at another site than one that it leaves alone.
    The sweep is therefore one plan and not a choice of points.
    """

    name = "numeric_check"
    question = "Does the candidate's result get worse, and does that grow with the input?"
    level = "correctness"
    establishes = (
        "the relative error of the operation's result in both arms, at each scale, in one piece "
        "and partitioned"
    )
    leaves_open = "inputs that are not like those drawn; scales beyond the largest"
    locality = "the result of one operation"
    objective_check = "compute one result in float64 and take the norm of the difference"

    def plans(self, target: Target) -> Iterable[Plan]:
        for sweep in target.sweeps:
            points = sweep.points()
            yield Plan(
                probe=self.name,
                settings={"operation": sweep.operation},
                conditions=ARMS,
                measurements=tuple(
                    contrast(target.frame, "numeric_error", INPUTS, point) for point in points
                ),
                price=Price(
                    run_s=len(ARMS) * INPUTS * sweep.seconds,
                    source="arms x inputs x what the workload declares; the step does not run",
                ),
                reads=tuple(Cell("numeric_error", arm, point) for point in points for arm in ARMS),
            )

    def run(self, plan: Plan, bench: Bench, seed: int) -> Observation:
        operation = str(plan.settings["operation"])
        found = []
        for cell in plan.reads:
            scale, parts = _point(str(cell.stage), operation)
            values = tuple(
                float(
                    bench.call(
                        cell.condition,
                        f"{__name__}:error",
                        operation=operation,
                        scale=scale,
                        parts=parts,
                        seed=seed + i,
                    )
                )
                for i in range(INPUTS)
            )
            if any(not v >= 0 for v in values):
                raise ProbeFailed(f"{cell}: errors {values}; a relative error is not below zero")
            found.append(Sample(cell, values, paired=True))
        return Observation(tuple(found), overhead=0.0)


def _point(stage: str, operation: str) -> tuple[int, int]:
    """(scale, parts) of a stage that `Sweep.points` named."""
    scale, _, parts = stage.removeprefix(f"{operation}-").partition("x")
    return int(scale), int(parts)


numeric_check = NumericCheck()
