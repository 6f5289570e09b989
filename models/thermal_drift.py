"""The machine slows as it heats up, whichever arm runs."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="What differs is when each arm ran, not what it ran.",
    part="measurement",
    signature="slower with elapsed time, not with the arm; temperature up",
    decisive_probe="end_to_end",
    intervention="cool down, and counterbalance the order",
    confused_with=("measurement_artefact", "power_cap", "data_dependent_power"),
    sources=("assumption: drift of about 5 %, 1 to 20",),
)
def thermal_drift(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.05, spread=0.8)
    step.extends(extra)
    step.moves("sm_clock", -extra, spread=0.3)
    step.moves("temperature", 10.0, spread=0.5)
