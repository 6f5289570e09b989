"""The application runs another tuned configuration than the benchmark."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="The configuration tuned for the benchmark is not the one the application runs.",
    part="computation",
    signature="the application logs another configuration; kernel names differ",
    decisive_probe="torch_profiler_window",
    intervention="pin the configuration",
    confused_with=("hot_cache_benchmark", "recompilation", "precision_path"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "catalogue section 1",
    ),
)
def shape_specialization(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra)
    step.moves("kernel_name_changed", 4.0)
    step.moves(
        "stage_time",
        0.25,
        spread=0.6,
        changed=(True,),
    )
