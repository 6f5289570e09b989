"""The part that became faster is too small, or too well hidden, to show in the whole."""

from argus_bed.anatomy import Anatomy
from argus_bed.hypothesis import hypothesis


@hypothesis(
    claim="The changed part is faster, but the step does not wait for it.",
    part="computation",
    signature="the part's own time falls; share x (1 - 1/s) already equals the gain seen; "
    "a delay put into the part does not lengthen the step",
    decisive_probe="delay_injection",
    intervention="delay the changed part on purpose: the slope is flat",
    confused_with=("no_effect", "hot_cache_benchmark"),
    sources=(
        "criticality as the slope of an injected delay: Curtsinger and Berger, Coz, SOSP 2015",
        "a kernel 3.5x faster gave 2.3 % end to end (catalogue, facts)",
        "assumption: the part became 1.65x faster, 1.2 to 3.7x",
        "zoo `flat`: 2.3x faster, -0.5 to +2 % end to end",
    ),
    presumes_faster=True,
)
def off_critical_path(step: Anatomy) -> None:
    # hidden behind something longer (kappa near 0); a part that is merely small is
    # covered by the share, which a hidden part makes irrelevant
    step.local = -step.positive("faster", median=0.5, spread=0.6)
    step.hidden()
