"""Another numeric format runs another kernel."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="The candidate computes in another precision.",
    part="computation",
    signature="kernel names change; the error grows with length",
    decisive_probe="numeric_check",
    intervention="flip the precision at one site",
    confused_with=("inserted_casts", "shape_specialization"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "names of library kernels carry the number format (CUTLASS profiler documentation)",
        "zoo `precision`",
    ),
)
def precision_path(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra)
    step.moves("kernel_name_changed", 6.0, spread=0.2)
    step.moves("numeric_error", 3.0, spread=0.6)
