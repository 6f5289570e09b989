"""Something that no hypothesis of the study describes: every quantity is left free."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="Something else is the cause: none of the explanations on the list.",
    part="none",
    signature="readings that every listed explanation finds surprising",
    decisive_probe="end_to_end",
    intervention="a new hypothesis, written as one file",
    sources=("assumption: the list misses the cause as often as any single entry is it",),
    weight=1.0,
)
def none_of_these(step: Anatomy) -> None:
    step.leaves_open(step.positive("spread", median=0.2, spread=0.8))
