"""Work on the host runs while the device waits."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="Post-processing on the host sits between two pieces of device work.",
    part="thread",
    signature="host samples fall inside device gaps",
    decisive_probe="host_sampling",
    intervention="move it to the device or to another thread",
    confused_with=("launch_bound", "gc_pause", "data_starvation"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "catalogue section 1",
    ),
)
def host_bound_postprocess(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra, "busy")
    step.carries("gap_time", extra, 0.8, spread=0.3)
    step.moves("host_time", 0.5, spread=0.6)
    step.moves("device_busy", -1.0, spread=0.6)
