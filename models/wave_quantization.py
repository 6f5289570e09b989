"""The last wave of blocks is nearly empty."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="The grid is just over a whole number of waves.",
    part="computation",
    signature="waves per unit just over an integer",
    decisive_probe="bound_check",
    intervention="another tile or batch",
    confused_with=("register_spill", "redundant_work"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "catalogue section 1",
    ),
)
def wave_quantization(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra)
    step.moves("isolated_time", 0.3, spread=0.6)
    step.moves("occupancy", -0.7, spread=0.6)
