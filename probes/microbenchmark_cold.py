"""The changed operation alone, its inputs in no cache."""

from __future__ import annotations

from argus_bed.probes._micro import Microbenchmark

from argus_bed.probe import SideEffect


class MicrobenchmarkCold(Microbenchmark):
    """Takes turns over several inputs and empties the caches before each run."""

    name = "microbenchmark_cold"
    question = "Is the operation by itself faster when its data come from memory?"
    establishes = "the operation's time with cold caches: does the ranking of the arms hold?"
    leaves_open = "which of both states the step finds itself in"
    locality = "one operation, outside the step"
    objective_check = "read a buffer twice the last cache's size before every call"
    side_effects = (SideEffect("flushes_cache"),)
    quantity = "cold_time"
    cold = True
    budget_s = 0.15  # emptying the caches takes most of it


microbenchmark_cold = MicrobenchmarkCold()
