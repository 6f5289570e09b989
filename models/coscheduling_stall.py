"""A kernel that needs all its blocks at once waits for a neighbour that holds them."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="A persistent kernel stalls only beside one particular neighbour.",
    part="synchronisation boundary",
    signature="one kernel 2 to 4x slower beside one collective algorithm, normal beside another",
    decisive_probe="controlled_variant",
    intervention="another algorithm of the neighbour, or another layout of the kernel",
    confused_with=("bandwidth_contention", "stream_interference", "comm_config"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "2 to 4x slower beside one collective algorithm (catalogue section 1)",
    ),
)
def coscheduling_stall(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra)
    step.moves(
        "neighbour_slowdown",
        1.0,
        spread=0.4,
    )
    step.moves(
        "stage_time",
        1.0,
        spread=0.4,
        kinds=("compute",),
        changed=(False, None),
    )
