"""Results come out of order although nothing is slower."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="Messages of one session overtake each other.",
    part="synchronisation boundary",
    signature="throughput unchanged; gaps in the sequence of a session",
    decisive_probe="correctness",
    intervention="a strict in-line retry",
    confused_with=("no_effect",),
    sources=("zoo `order`: 711, 348 and 0 violations at the same throughput",),
)
def order_violation(step: Anatomy) -> None:
    step.moves("violations", 3.0, spread=0.6)
