"""Reads what a workload says of itself."""

from __future__ import annotations

from collections.abc import Iterable

from argus_bed.probes._paired import ARMS, Key, block_s, measured, samples

from argus_bed.errors import ProbeFailed
from argus_bed.frame import Cell
from argus_bed.probe import Bench, Observation, Plan, Price, Probe, Target

BLOCKS = 8
CORRECTNESS = frozenset({"numeric_error", "violations"})


class Reported(Probe):
    """Base of the two probes that pass on what `Workload.report` returns."""

    correctness: bool

    def plans(self, target: Target) -> Iterable[Plan]:
        keys: list[Key] = [
            (name, stage)
            for name, stage in target.reports
            if (name in CORRECTNESS) is self.correctness and name != "step_time"
        ]
        if not keys:
            return
        both = [*keys, ("step_time", None)]
        yield Plan(
            probe=self.name,
            settings={"blocks": BLOCKS},
            conditions=ARMS,
            measurements=tuple(
                m for name, stage in keys for m in measured(target.frame, name, BLOCKS, stage)
            ),
            price=Price(
                run_s=len(ARMS) * (BLOCKS + 1) * block_s(target),
                source="blocks x arms x time of a block; nothing is attached",
            ),
            reads=tuple(Cell(name, arm, stage) for name, stage in both for arm in ARMS),
        )

    def run(self, plan: Plan, bench: Bench, seed: int) -> Observation:
        taken = bench.interleave(ARMS, blocks=BLOCKS, steps=0, seed=seed)
        found = samples(taken, plan.reads)
        wanted = {m.cell for m in plan.measurements}
        if not wanted & {s.cell for s in found}:
            names = ", ".join(sorted(map(str, wanted)))
            raise ProbeFailed(f"the workload declares {names} in `reports` and told none of them")
        return Observation(found, overhead=0.0)
