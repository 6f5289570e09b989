"""The collective library runs with worse settings for these messages."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="The collectives themselves are slower in the configuration of the candidate.",
    part="synchronisation boundary",
    signature="communication and its exposed part up, computation flat",
    decisive_probe="controlled_variant",
    intervention="sweep channels and threads of the collective",
    confused_with=("straggler_wait", "overlap_lost", "bandwidth_contention"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "catalogue section 1",
    ),
)
def comm_config(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra)
    step.carries(
        "exposed_comm",
        extra,
        0.8,
        spread=0.3,
    )
    step.moves("comm_time", 0.4, spread=0.6)
    step.moves("rank_time_min", 0.4, spread=0.6)
