"""The changed operation alone, again and again on the same data."""

from __future__ import annotations

from argus_bed.probes._micro import Microbenchmark


class MicrobenchmarkHot(Microbenchmark):
    """What most benchmarks measure: inputs in cache, nothing beside it."""

    name = "microbenchmark_hot"
    question = "Is the operation by itself faster, in the best of circumstances?"
    establishes = "the operation's time with warm caches and an idle machine"
    leaves_open = "its time inside the step, where caches and cores are shared"
    locality = "one operation, outside the step"
    objective_check = "call the operation in a loop under timeit"
    quantity = "isolated_time"
    cold = False


microbenchmark_hot = MicrobenchmarkHot()
