"""The kernel keeps more than fits in registers."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="Values spill to local memory.",
    part="computation",
    signature="local memory above zero",
    decisive_probe="static",
    intervention="a sweep of launch bounds",
    confused_with=("redundant_work", "wave_quantization"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "catalogue section 1",
    ),
)
def register_spill(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra)
    step.moves(
        "local_memory_bytes",
        3.0,
        spread=0.6,
    )
    step.moves("isolated_time", 0.3, spread=0.6)
    step.moves("bytes_moved", 0.3, spread=0.6)
