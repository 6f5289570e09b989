"""Both arms, whole steps, interleaved."""

from __future__ import annotations

from collections.abc import Iterable

from argus_bed.probes._paired import ARMS, block_s, contrast, samples

from argus_bed.frame import Cell
from argus_bed.probe import Bench, Observation, Plan, Price, Probe, Target

BLOCKS = (12, 4, 40)  # by default, in a hurry, and for small effects


class PairedEndToEnd(Probe):
    """Times blocks of whole steps; nothing is attached to the process."""

    name = "paired_end_to_end"
    question = "Is the whole step faster or slower in the candidate, and by how much?"
    level = "end_to_end"
    establishes = "the size of the effect on whole steps, drift of the machine cancelled"
    leaves_open = "where in the step it comes from"
    locality = "the step as a whole"
    objective_check = "time a thousand steps of each arm with a stop-watch, arms taking turns"

    def plans(self, target: Target) -> Iterable[Plan]:
        keys = list(dict.fromkeys((target.frame.metric, "step_time")))
        reads = tuple(Cell(name, arm) for name in keys for arm in ARMS)
        for blocks in BLOCKS:
            yield Plan(
                probe=self.name,
                settings={"blocks": blocks},
                conditions=ARMS,
                measurements=(contrast(target.frame, target.frame.metric, blocks),),
                price=Price(
                    run_s=len(ARMS) * (blocks + 1) * block_s(target),
                    source="blocks x arms x time of a block; nothing is attached",
                ),
                reads=reads,
            )

    def run(self, plan: Plan, bench: Bench, seed: int) -> Observation:
        blocks = int(plan.settings["blocks"])
        taken = bench.interleave(ARMS, blocks=blocks, steps=0, seed=seed)
        return Observation(samples(taken, plan.reads), overhead=0.0)


paired_end_to_end = PairedEndToEnd()
