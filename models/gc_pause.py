"""The cyclic garbage collector stops the world."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="Collections stop every Python thread, and the candidate causes more or longer ones.",
    part="thread",
    signature="silences per step; collector callbacks report the time",
    decisive_probe="gc_callbacks",
    intervention="raise the thresholds, or collect between steps: 2x2 with the arm",
    confused_with=("gil_held", "allocator_stall", "host_bound_postprocess"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "thresholds gave +20.0 % on one image and +0.3 % on another (catalogue, facts)",
    ),
)
def gc_pause(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra, "busy")
    step.carries("gc_pause", extra, 0.9, spread=0.3)
    step.moves("gc_collections", 1.0, spread=0.8)
    # a collection keeps the interpreter lock from its beginning to its end
    step.carries("gil_wait", extra, 0.9, spread=0.5)
    step.moves("progress_rate", -extra, spread=0.6)
