"""Memory or threads sit on the wrong node."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="Threads run far from their memory.",
    part="memory path",
    signature="heavy-tailed rounds",
    decisive_probe="controlled_variant",
    intervention="pin threads and memory",
    confused_with=("thread_oversubscription", "bandwidth_contention"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "catalogue section 1",
    ),
)
def numa_affinity(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra)
    step.moves(
        "stage_time",
        0.2,
        spread=0.6,
        kinds=("compute", "copy"),
        changed=(False, None),
    )
