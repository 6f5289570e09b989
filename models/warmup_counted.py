"""The first steps are slow and were counted."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="The arms differ in how much warm-up was counted.",
    part="measurement",
    signature="only the first steps are slow",
    decisive_probe="end_to_end",
    intervention="drop the first steps, or warm up before timing",
    confused_with=("recompilation", "measurement_artefact", "hot_cache_benchmark"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "catalogue section 1",
    ),
)
def warmup_counted(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra)
    step.moves("compile_time", 0.7, spread=0.6)
