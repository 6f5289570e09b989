"""The instrument itself changes what it measures."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="The candidate is slower because it is being watched.",
    part="measurement",
    signature="the result moves with the monitor",
    decisive_probe="controlled_variant",
    intervention="the monitor on and off, interleaved",
    confused_with=("measurement_artefact", "queue_serialization", "no_effect"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "a profiler: 17.84 to 30.5 ms on a launch-bound step (catalogue section 2)",
    ),
)
def probe_effect(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra)
    step.moves("host_time", 0.4, spread=0.6)
    step.moves(
        "overlap_fraction",
        -2.0,
        spread=0.6,
    )
    step.moves("launch_count", 0.2, spread=0.6)
