"""The change pushes a neighbour out of the cache."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="Stages that nobody changed became slower because their data are evicted before use.",
    part="memory path",
    signature="unchanged stages slower; the changed part alone as fast as promised",
    decisive_probe="stage_timer",
    intervention="shrink the working set, or flush the cache before the unchanged stage",
    confused_with=("bandwidth_contention", "hot_cache_benchmark", "layout_copies"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "catalogue section 1: other stages slow down",
    ),
)
def cache_eviction(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra)
    step.moves(
        "stage_time",
        0.25,
        spread=0.8,
        kinds=("compute", "host", "copy"),
        changed=(False, None),
    )
