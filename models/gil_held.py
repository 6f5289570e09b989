"""A call keeps the interpreter lock while it waits."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="A call waits without releasing the interpreter lock; other Python threads stand still.",
    part="thread",
    signature="a background thread's ticks stop during the wait; enqueue-to-submit latency jumps",
    decisive_probe="gil_ticks",
    intervention="swap the call for one that releases the lock",
    confused_with=("thread_oversubscription", "gc_pause", "hidden_sync"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "zoo `gil`: 22.6 % of the step (IQR 22.0 to 23.6) held, 0.1 % released",
    ),
)
def gil_held(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra)
    step.carries("gil_wait", extra, 1.5, spread=0.8)
    step.moves("progress_rate", -2.0, spread=0.8)
