"""More runnable threads than cores."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="Threads outnumber the cores and preempt each other.",
    part="thread",
    signature="involuntary context switches up; processor time above one core per step",
    decisive_probe="rusage_counters",
    intervention="cap the threads",
    confused_with=("gil_held", "bandwidth_contention", "numa_affinity"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "catalogue section 1",
    ),
)
def thread_oversubscription(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra, "busy")
    step.moves(
        "involuntary_switches",
        1.5,
        spread=0.6,
    )
    step.moves("cpu_time", 0.3, spread=0.8)
    step.moves("thread_count", 0.7, spread=0.6)
