"""The device lowers its clock at its power limit."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="The clock is down because the power limit is reached.",
    part="computation",
    signature="clock down, power at its limit, throttle reason set",
    decisive_probe="clock_power_sampling",
    intervention="a lower load, or other data",
    confused_with=("thermal_drift", "data_dependent_power"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "an H100 PCIe at 350 W loses 15 % on random data (catalogue, facts)",
    ),
)
def power_cap(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra)
    step.moves("sm_clock", -0.15, spread=0.6)
    step.moves("throttle", 2.0, spread=0.6)
    step.moves("power", 0.2, spread=0.6)
    step.moves("temperature", 10.0, spread=0.6)  # more power is more heat
