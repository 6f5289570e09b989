"""A single hardware queue runs streams in launch order."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="Independent streams share one hardware queue and run one after the other.",
    part="synchronisation boundary",
    signature="no overlap at all in the timeline; launch order rules",
    decisive_probe="controlled_variant",
    intervention="the default number of hardware queues",
    confused_with=("overlap_lost", "probe_effect"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "one hardware queue with timing events destroys overlap, P = 0.9, and neither alone "
        "destroys all of it (catalogue section 2)",
    ),
    # timed events and one hardware queue: neither alone destroys all of the overlap
    together_with={"probe_effect": 0.9},
)
def queue_serialization(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra)
    step.carries(
        "exposed_comm",
        extra,
        0.8,
        spread=0.3,
    )
    step.moves(
        "overlap_fraction",
        -3.0,
        spread=0.4,
    )
