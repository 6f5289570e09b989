"""Side streams help at one load and hurt at another."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="Work on side streams gets in the way of the main stream at this load.",
    part="synchronisation boundary",
    signature="the effect changes sign with load",
    decisive_probe="controlled_variant",
    intervention="side streams off, and a sweep of concurrency",
    confused_with=("bandwidth_contention", "coscheduling_stall", "overlap_lost"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "catalogue section 1",
    ),
)
def stream_interference(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra)
    step.moves(
        "neighbour_slowdown",
        0.4,
        spread=0.6,
    )
    step.moves(
        "overlap_fraction",
        -1.0,
        spread=0.6,
    )
