"""Transfers go through pageable memory and are staged by the driver."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="Host buffers are not pinned, so every transfer is staged and blocks.",
    part="memory path",
    signature="pageable transfers in the trace; the tail grows with threads",
    decisive_probe="torch_profiler_window",
    intervention="a pool of pinned buffers",
    confused_with=("layout_copies", "hidden_sync", "data_starvation"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "catalogue section 1",
    ),
)
def pageable_copy(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra)
    step.carries("copy_time", extra, 0.8, spread=0.3)
    step.moves("host_time", 0.3, spread=0.6)
