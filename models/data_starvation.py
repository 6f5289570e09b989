"""The step waits for its next input."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="The loader cannot keep up, so the step waits in next().",
    part="thread",
    signature="the time in next() is the step",
    decisive_probe="stage_timer",
    intervention="synthetic data already in memory",
    confused_with=("host_bound_postprocess", "gil_held", "thread_oversubscription"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "catalogue section 1",
    ),
)
def data_starvation(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra, "waiting")
    step.carries("data_wait", extra, 0.8, spread=0.3)
    step.moves(
        "stage_time",
        1.0,
        spread=0.6,
        kinds=("wait",),
    )
