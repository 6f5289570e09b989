"""An operation that the compiler cannot see splits its neighbours."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="The compiled graph breaks, so neighbours are no longer fused.",
    part="computation",
    signature="graph breaks; more kernels for the same work",
    decisive_probe="framework_counters",
    intervention="a traceable version of the operation",
    confused_with=("launch_bound", "hidden_sync", "recompilation"),
    sources=(
        "assumption: it takes about 20 % of the step, 3 to 150 % (89 % interval)",
        "41 graph breaks in one model compiled to 0.69x of eager (public report, catalogue)",
    ),
)
def fusion_barrier(step: Anatomy) -> None:
    extra = step.positive("extra", median=0.2, spread=1.2)
    step.extends(extra)
    step.moves("graph_breaks", 2.5, spread=0.6)
    step.moves("launch_count", 0.6, spread=0.6)
