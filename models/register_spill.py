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
        "assumption: a cause worth asking about takes about 20 % of the step, 3 to 140 %",
        "catalogue section 1",
    ),
)
def register_spill(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.0)
    step.extends(extra)
    step.moves(
        "local_memory_bytes",
        step.positive("more_local_memory_bytes", median=3.0, spread=0.6),
    )
    step.moves(
        "isolated_time", step.positive("more_isolated_time", median=0.3, spread=0.6)
    )
    step.moves("bytes_moved", step.positive("more_bytes_moved", median=0.3, spread=0.6))
