"""Two activities share the memory system and slow each other."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="The step is slower because something beside it uses the memory bandwidth it needs.",
    part="memory path",
    signature="stages left alone slow down while copies or collectives run beside them",
    decisive_probe="controlled_variant",
    intervention="run the stage beside a traffic generator, and without it",
    confused_with=("overlap_lost", "cache_eviction", "coscheduling_stall"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "catalogue section 1: slows beside copies even with few cores taken",
    ),
)
def bandwidth_contention(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra)
    step.moves(
        "stage_time",
        0.2,
        spread=0.6,
        kinds=("compute", "communication"),
        changed=(False, None),
    )
    step.moves(
        "neighbour_slowdown",
        0.3,
        spread=0.6,
    )
    step.moves("comm_time", 0.2, spread=0.6)
