"""The values in the operands decide how much power they draw."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="One arm's data toggle more bits, so the clock falls at equal work.",
    part="computation",
    signature="clock and rate fall together; zeros are faster than real data",
    decisive_probe="clock_power_sampling",
    intervention="swap the inputs between the arms",
    confused_with=("power_cap", "thermal_drift", "precision_path"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "1080 to 917 TFLOP/s, 1590 to 1335 MHz on one part, nothing on another (catalogue, facts)",
    ),
)
def data_dependent_power(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra)
    # the rate follows the clock at equal work per cycle
    step.moves("sm_clock", -step.log1p(extra), spread=0.2)
    step.moves("power", 0.25, spread=0.6)
    step.moves("throttle", 1.5, spread=0.6)
    step.moves("temperature", 10.0, spread=0.6)  # more power is more heat
