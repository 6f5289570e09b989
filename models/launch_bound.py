"""The host cannot issue work fast enough: the device waits between short operations."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="Issuing the operations takes longer than running them, so the host sets the pace.",
    part="computation",
    signature="host time per operation exceeds device time; shrinking kernels changes nothing",
    decisive_probe="stage_timer",
    intervention="replay the same operations from a captured graph, or make each of them larger",
    confused_with=("hidden_sync", "fusion_barrier", "gil_held"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "custom kernel with 4 % more device time and 4x the host time (catalogue, facts)",
    ),
)
def launch_bound(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra, "busy")
    # the host sets the pace: its time is the step's, and had to overtake the device first
    step.moves("host_time", 0.2 + step.log1p(extra), spread=0.4)
    step.carries("gap_time", extra, 0.8, spread=0.3)
    step.moves("device_busy", -1.5, spread=0.6)
    step.moves("launch_count", 0.4, spread=0.8)
