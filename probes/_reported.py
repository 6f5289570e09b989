"""Reads what a workload says of itself."""

from __future__ import annotations

from collections.abc import Iterable

from argus_bed.probes._paired import ARMS, Key, block_s, contrast, counterpart, samples

from argus_bed.errors import ProbeFailed
from argus_bed.frame import Cell
from argus_bed.probe import Bench, Observation, Plan, Price, Probe, Target

BLOCKS = 8
OPEN_S = 1.0  # start, set-up and warm-up of a process for a variant
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
        yield self._plan(target, keys, ARMS)
        if self.correctness:
            # wrong results are the effect in question, so a knob's effect on them is read too
            for condition in target.frame.conditions[2:]:
                other = counterpart(target.frame, condition)
                if other is not None and condition.removes:
                    yield self._plan(target, keys, (other, condition.name))

    def _plan(self, target: Target, keys: list[Key], pair: tuple[str, str]) -> Plan:
        """``keys`` in the second of two conditions against the first."""
        both = [*keys, ("step_time", None)]
        variant = {} if pair == ARMS else {"variant": pair[1]}
        return Plan(
            probe=self.name,
            settings={"blocks": BLOCKS, **variant},
            conditions=pair,
            measurements=tuple(
                contrast(target.frame, name, BLOCKS, stage, pair[1], pair[0])
                for name, stage in keys
            ),
            price=Price(
                setup_s=OPEN_S if variant else 0.0,
                run_s=len(pair) * (BLOCKS + 1) * block_s(target),
                source="blocks x arms x time of a block; nothing is attached",
            ),
            risk=target.risks.get(pair[1], "none"),
            reads=tuple(Cell(name, one, stage) for name, stage in both for one in pair),
        )

    def run(self, plan: Plan, bench: Bench, seed: int) -> Observation:
        taken = bench.interleave(plan.conditions, blocks=BLOCKS, steps=0, seed=seed)
        found = samples(taken, plan.reads)
        wanted = {m.cell for m in plan.measurements}
        if not wanted & {s.cell for s in found}:
            names = ", ".join(sorted(map(str, wanted)))
            raise ProbeFailed(f"the workload declares {names} in `reports` and told none of them")
        return Observation(found, overhead=0.0)
