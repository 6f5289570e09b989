"""New shapes trigger compilation again and again."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="The step pays for compilation whenever a new shape appears.",
    part="computation",
    signature="spikes at new shapes; the compile counter climbs",
    decisive_probe="framework_counters",
    intervention="fixed or padded shapes",
    confused_with=("warmup_counted", "fusion_barrier", "shape_specialization"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "catalogue section 1",
    ),
)
def recompilation(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra, "busy")
    step.moves("recompiles", 1.5, spread=0.6)
    step.moves("compile_time", 1.0, spread=0.6)
