"""Hidden copies make inputs contiguous."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="An operation copies its inputs into another layout before it can work.",
    part="memory path",
    signature="contiguous copies that nobody wrote; copy count and copy time up",
    decisive_probe="torch_profiler_window",
    intervention="an operation that accepts strides",
    confused_with=("inserted_casts", "redundant_work", "allocator_stall"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "three device copies per attention call, removed for 10 % (public report, catalogue)",
    ),
)
def layout_copies(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra)
    step.carries("copy_time", extra, 0.8, spread=0.3)
    step.moves("copy_count", 2.0, spread=0.6)
    step.moves("launch_count", 0.4, spread=0.6)
