"""A collective waits for its slowest peer."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="The time in collectives is waiting for a late rank.",
    part="synchronisation boundary",
    signature="a collective's mean far over its minimum across ranks",
    decisive_probe="controlled_variant",
    intervention="a barrier before the collective",
    confused_with=("comm_config", "overlap_lost", "host_bound_postprocess"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "catalogue section 1",
    ),
)
def straggler_wait(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra)
    step.carries(
        "exposed_comm",
        extra,
        0.8,
        spread=0.3,
    )
    step.moves("comm_time", 0.5, spread=0.6)
    step.moves("rank_time_mean", 0.5, spread=0.6)
