"""The way of measuring made the difference."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="The difference is between two ways of measuring, not between the arms.",
    part="measurement",
    signature="it goes away when the arms are paired; two runs of one arm differ as much",
    decisive_probe="end_to_end",
    intervention="A/A runs, and ABBA pairing",
    confused_with=("no_effect", "thermal_drift", "warmup_counted"),
    sources=(
        "unpaired sd 3.5 s on 64 s, paired 1.87 s (catalogue, facts)",
        "assumption: about 4 %",
    ),
)
def measurement_artefact(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.04, spread=0.8)
    step.extends(extra)
    step.leaves_open(0.05, ("step_time", "throughput", "bandwidth_ratio"))
