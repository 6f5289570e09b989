"""Allocations stall the step."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="Memory is allocated anew in the step: cached blocks are freed, or pages are faulted in.",
    part="memory path",
    signature="allocation retries above zero; page faults climb; kernel time of the process up",
    decisive_probe="rusage_counters",
    intervention="keep headroom, or reuse buffers",
    confused_with=("layout_copies", "gc_pause", "cache_eviction"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "46 allocation retries only in the slow twin (public report, catalogue)",
    ),
)
def allocator_stall(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra)
    step.moves("alloc_retries", 2.0, spread=0.6)
    step.moves("page_faults", 2.0, spread=0.8)
    step.carries("fault_time", extra, 0.6, spread=0.5)
    step.carries("host_wait", extra, 0.7, spread=0.5)
