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
        "assumption: one time in two it costs time, about 20 % of the step, 3 to 150 %; units "
        "that read fewer bits exist to be no slower",
        "rounding errors go by the bits stored: log ratio 9.0 from float32 to TF32 (13 bits), 11.1 "
        "to bfloat16 (16), 2.1 from float16 to bfloat16 (3); IEEE 754, and NVIDIA on TF32",
        "names of library kernels carry the number format (CUTLASS profiler documentation)",
        "zoo `precision`",
    ),
)
def precision_path(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra * step.sometimes("slower", 0.5))
    step.moves("kernel_name_changed", 6.0, spread=0.2)
    step.moves("numeric_error", 6.0, spread=0.6)
