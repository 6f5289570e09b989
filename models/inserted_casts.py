"""Conversions between number formats eat what the faster format gains."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="The faster multiply is paid for in casts around it.",
    part="memory path",
    signature="multiplies faster, copies and conversions up",
    decisive_probe="torch_profiler_window",
    intervention="fuse or drop the casts",
    confused_with=("layout_copies", "precision_path", "fusion_barrier"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "names of library kernels carry the number format (CUTLASS profiler documentation)",
        "catalogue section 1",
    ),
)
def inserted_casts(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra)
    step.carries("copy_time", extra, 0.8, spread=0.3)
    step.moves("copy_count", 1.5, spread=0.6)
    step.moves("launch_count", 0.4, spread=0.6)
    # a multiply in another format is another kernel
    step.moves("kernel_name_changed", 6.0, spread=0.2)
