"""The arms do not differ in the metric: the gain is zero, or noise was read as an effect."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="The arms take the same time; what was seen was noise.",
    part="none",
    signature="the metric agrees between paired arms, and so does everything else",
    decisive_probe="end_to_end",
    intervention="more counterbalanced blocks of the same two arms",
    confused_with=("off_critical_path", "measurement_artefact"),
    sources=("assumption: a fifth of reported surprises are no effect at all",),
    weight=2.0,
)
def no_effect(step: Anatomy) -> None:
    step.no_local_change()
