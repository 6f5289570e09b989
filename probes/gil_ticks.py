"""A background thread that only needs to be let run tells how late it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from statistics import median
from typing import Any

from argus_bed.probes._held_stack import HeldStack
from argus_bed.probes._paired import ARMS, Key, PairedProbe, block_s, overhead
from argus_bed.probes._ticks import Ticks

from argus_bed.errors import ProbeUnavailable, WorkloadFailed
from argus_bed.frame import Cell
from argus_bed.probe import Bench, Instrument, Observation, Plan, SideEffect, Target

WORTH_NAMING = 0.05  # of the step: from here on the calls are looked for
NAMING_BLOCKS = 3  # blocks with stacks, as many without, and one of each first
KEPT = 6  # call chains of an arm that are told
CHANCE = 0.2  # that an arm keeps the lock as long (assumption), for the price


class GilTicks(PairedProbe):
    """Reads how long a runnable Python thread waits for the interpreter lock.

    Where that is `WORTH_NAMING` of a step or more, a few more blocks follow in that arm, in
    which the stack is kept for as long as the lock is held. No reading comes from those.

    The observation's environment holds ``call_chains``, a list of ``{"condition", "chain",
    "share", "samples", "prompt"}`` as `_held_stack.collected` describes them, and
    ``call_chains_about``: per arm, what the ticks waited, and by how much steps got longer
    while stacks were kept, or why none could be.
    """

    name = "gil_ticks"
    question = "Does anything keep Python's other threads from running?"
    level = "counter"
    establishes = (
        "how long a runnable thread waits for the interpreter lock, per step; where that is "
        "5 % of a step or more also the call chains that held it, by share of the wait"
    )
    leaves_open = (
        "whether another thread had work meanwhile; a chain is where the thread stood when it "
        "gave the lock up: exact for calls in the main thread, not always for other threads"
    )
    locality = "the threads of one Python process"
    objective_check = "py-spy dump --gil during a step shows which thread holds the lock"
    side_effects = (
        SideEffect(
            "other", "the step runs Python code throughout and must now share the lock", 0.3
        ),
    )
    perturbation = 0.02
    price_source = (
        "measured on two loaded cores: under 0.5 % of a step that waits, 4 to 7 % of one that "
        "is Python throughout (assumption: 3 in 10 are); 15 ms of idle ticks before each "
        "block; 1 chance in 5 that an arm's call chains are looked for"
    )

    def reads(self, target: Target) -> list[Key]:
        return [("gil_wait", None), ("progress_rate", None)]

    def instrument(self, plan: Plan) -> Instrument:
        ticks: Instrument = Ticks()
        return ticks

    def plans(self, target: Target) -> Iterable[Plan]:
        naming_s = CHANCE * 2 * (NAMING_BLOCKS + 1) * block_s(target)
        for plan in super().plans(target):
            price = plan.price
            yield replace(plan, price=replace(price, run_s=price.run_s + naming_s))

    def run(self, plan: Plan, bench: Bench, seed: int) -> Observation:
        found: Observation = super().run(plan, bench, seed)
        middle = {s.cell: median(s.values) for s in found.samples}
        chains: list[dict[str, Any]] = []
        about: dict[str, dict[str, Any]] = {}
        for arm in ARMS:
            waited = middle.get(Cell("gil_wait", arm), 0.0)
            share = waited / middle[Cell("step_time", arm)]
            about[arm] = {"share_of_step": share}
            if share >= WORTH_NAMING:
                told, how = name_calls(bench, arm, seed)
                chains += [{"condition": arm, **chain} for chain in told]
                about[arm] |= how
        facts = {"call_chains": chains, "call_chains_about": about}
        return replace(found, environment={**found.environment, **facts})


def name_calls(bench: Bench, arm: str, seed: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Call chains that hold the lock in ``arm``, and what finding them did to the step.

    What has been read by now stands, whatever becomes of this: a system without the
    timers, or a workload that fails here, is told and not raised.
    """
    try:
        taken = bench.interleave(
            (arm,), blocks=NAMING_BLOCKS, steps=0, instrument=HeldStack(), seed=seed, bare=True
        )
        told = bench.call(arm, "argus_bed.probes._held_stack:collected")
    except (ProbeUnavailable, WorkloadFailed) as error:
        return [], {"unnamed": str(error)}
    how = {"waited_s": told["waited_s"], "overhead": overhead(taken)}
    return told["chains"][:KEPT], how


gil_ticks = GilTicks()
