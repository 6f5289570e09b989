"""Collections over a large heap of objects that live for ever.

Both arms keep the same registry and allocate alike. The baseline moves the registry out of
the collector's sight once it is built (``gc.freeze``); the candidate does not, and every
full collection walks over it.
"""

from __future__ import annotations

import gc
from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from argus_bed.workload import Knob, Stage, Workload, stage

REGISTERED = 150_000  # entries that live for ever, each a container
REQUESTS = 40  # per step
RECORDS = 200  # per request, each a container that lives for a few steps
KEPT_STEPS = 12


@dataclass
class State:
    """What lives for ever, and what lives for a few steps."""

    registry: list[list[object]]
    recent: deque[list[list[int]]]
    weights: np.ndarray[tuple[int], np.dtype[np.float64]]


def setup(settle: bool, collector: bool = True, size: int = 60_000) -> State:
    """``settle`` decides how start-up ends; ``size`` is that of the vectors scored."""
    gc.collect()
    registry: list[list[object]] = [[i, str(i)] for i in range(REGISTERED)]
    if settle:
        gc.freeze()
    if not collector:
        gc.disable()
    recent: deque[list[list[int]]] = deque(maxlen=KEPT_STEPS)
    return State(registry, recent, np.linspace(0, 1, size))


def step(state: State) -> None:
    """Forty requests: make records, score them; keep the records for a while."""
    kept: list[list[int]] = []
    for request in range(REQUESTS):
        kept.extend([request, i] for i in range(RECORDS))
        with stage("score"):
            float(np.sqrt(state.weights).sum())
    state.recent.append(kept)


workload = Workload(
    name="records-and-scores",
    question="After a clean-up of the start-up code requests take longer, at the same work.",
    setup=setup,
    step=step,
    arms={"baseline": {"settle": True}, "candidate": {"settle": False}},
    stages=(Stage("score", "compute", changed=False, what="scoring them"),),
    knobs=(
        Knob("collector", "off", {"collector": False}, of="both", removes=frozenset({"gc_pause"})),
        Knob("vectors", "short", {"size": 30_000}, of="both"),
    ),
    intent="unknown",
    warmup=15,
)

twin = replace(workload, arms={"baseline": {"settle": True}, "candidate": {"settle": True}})
