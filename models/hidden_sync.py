"""The host stops and waits for a value that it reads back."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="A scalar is read back inside the step, so the host waits for the device each time.",
    part="synchronisation boundary",
    signature="the host waits on a read; the device is idle after it",
    decisive_probe="torch_profiler_window",
    intervention="defer the read to the end of the step",
    confused_with=("launch_bound", "gil_held", "fusion_barrier"),
    sources=(
        "assumption: it takes about 20 % of the step, 4 to 63 % (89 % interval)",
        "catalogue section 1",
    ),
)
def hidden_sync(step: Anatomy) -> None:
    # host and device one after the other take at most twice the longer one
    extra = step.fraction("extra", median=0.2, spread=1.2)
    step.extends(extra)
    step.carries("host_wait", extra, 0.8, spread=0.3)
    step.moves("host_time", step.log1p(extra), spread=0.6)
    step.carries("gap_time", extra, 0.5, spread=0.5)
    step.moves("device_busy", -1.0, spread=0.6)
    step.moves(
        "voluntary_switches",
        1.0,
        spread=0.6,
    )
