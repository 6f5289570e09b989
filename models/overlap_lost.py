"""Work that ran side by side now runs one after the other."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="Communication or copies that computation used to hide are now exposed.",
    part="synchronisation boundary",
    signature="exposed communication up, each kernel alone as fast as before, overlap down",
    decisive_probe="torch_profiler_window",
    intervention="a smaller grid, fewer channels or another stream, so that both fit side by side",
    confused_with=(
        "queue_serialization",
        "bandwidth_contention",
        "thread_oversubscription",
    ),
    sources=(
        "assumption: it takes about 20 % of the step, 4 to 63 % (89 % interval)",
        "catalogue section 1: both longer together than alone",
    ),
)
def overlap_lost(step: Anatomy) -> None:
    # what ran side by side takes at most twice as long one after the other
    extra = step.fraction("extra", median=0.2, spread=1.2)
    step.extends(extra)
    step.carries(
        "exposed_comm",
        extra,
        0.8,
        spread=0.3,
    )
    step.moves(
        "overlap_fraction",
        -2.5,
        spread=0.6,
    )
    step.moves(
        "neighbour_slowdown",
        0.3,
        spread=0.6,
    )
