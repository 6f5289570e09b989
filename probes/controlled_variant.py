"""Turns one knob and holds everything else."""

from __future__ import annotations

from collections.abc import Iterable

from argus_bed.probes._paired import block_s, contrast, counterpart, samples

from argus_bed.frame import Cell
from argus_bed.probe import Bench, Observation, Plan, Price, Probe, Target

BLOCKS = (12, 4)  # by default, and in a hurry for effects that are large
OPEN_S = 1.0  # start, set-up and warm-up of a process for the variant


class ControlledVariant(Probe):
    """Compares a condition with the one that differs from it by one thing.

    That is the arm it derives from; where the same knob is turned in both arms, the
    other arm with the knob turned, so that the knob's own effect cancels.
    """

    name = "controlled_variant"
    question = "Does the effect go away, or come, when this one thing is changed?"
    level = "end_to_end"
    establishes = "the effect of one change on the step, everything else held"
    leaves_open = "whether the change did only what its knob declares"
    locality = "the step as a whole, in one more configuration"
    objective_check = "run both configurations by hand, taking turns, and time them"

    def plans(self, target: Target) -> Iterable[Plan]:
        frame = target.frame
        for condition in frame.conditions[2:]:
            other = counterpart(frame, condition)
            if other is None:
                continue
            names = (condition.name, other)
            keys = dict.fromkeys((frame.metric, "step_time"))
            for blocks in BLOCKS:
                yield Plan(
                    probe=self.name,
                    settings={"variant": condition.name, "blocks": blocks},
                    conditions=names,
                    measurements=(contrast(frame, frame.metric, blocks, None, *names),),
                    price=Price(
                        OPEN_S,
                        2 * (blocks + 1) * block_s(target),
                        0.0,
                        "measured: about 1 s to start a process; blocks x time of a block",
                    ),
                    risk=target.risks.get(condition.name, "none"),
                    reads=tuple(Cell(key, name) for key in keys for name in names),
                )

    def run(self, plan: Plan, bench: Bench, seed: int) -> Observation:
        blocks = int(plan.settings["blocks"])
        taken = bench.interleave(plan.conditions, blocks=blocks, steps=0, seed=seed)
        return Observation(samples(taken, plan.reads), overhead=0.0)


controlled_variant = ControlledVariant()
