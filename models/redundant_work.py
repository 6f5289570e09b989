"""The same result is computed more than once."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="The candidate does work again that could be done once.",
    part="computation",
    signature="instructions, calls or bytes up at equal results",
    decisive_probe="rusage_counters",
    intervention="hoist the repeated work at an equal tile: tile x hoist factorial",
    confused_with=("layout_copies", "cache_eviction", "wave_quantization"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "merged tile 1.54x, hoisting alone 1.09x (zoo `vtile`): count before timing",
    ),
)
def redundant_work(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra, "busy")
    step.moves("instructions", 0.3, spread=0.6)
    step.moves("launch_count", 0.4, spread=0.6)
    step.moves("bytes_moved", 0.3, spread=0.6)
