"""Whether the results are right, as the workload's own check tells."""

from __future__ import annotations

from argus_bed.probes._reported import Reported


class CorrectnessCheck(Reported):
    """Reads relative errors and violations of order that the workload reports."""

    name = "correctness_check"
    question = "Does the candidate still compute what it should?"
    level = "correctness"
    establishes = "errors and violations that the workload's own check counts, in both arms"
    leaves_open = "inputs that the check does not cover"
    locality = "the results of a step"
    objective_check = "compare one result of each arm with a reference of higher precision"
    correctness = True


correctness_check = CorrectnessCheck()
