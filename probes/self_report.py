"""What the workload measures of itself."""

from __future__ import annotations

from argus_bed.probes._reported import Reported


class SelfReport(Reported):
    """Reads quantities that the workload returns or prints."""

    name = "self_report"
    question = "What does the workload itself say about its steps?"
    level = "log"
    establishes = "the quantities that the workload reports, in both arms"
    leaves_open = "how the workload measured them"
    locality = "wherever the workload looks"
    objective_check = "read the code of its `report`, or the lines that its command prints"
    correctness = False


self_report = SelfReport()
