"""How long a second ``ask()`` takes in a warm process.

    uv run python benchmarks/ask.py --json OUT

A real study of the zoo's workload with the library's default hypotheses: one run is made,
so that beliefs are no longer the priors, then ``Study.score`` (all of what ``ask`` computes)
is timed again and again. Medians and the range, in seconds.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from argus_bed import open_study
from argus_bed.zoo import ZOO


def main(
    workload: str = "gil",
    repeats: Annotated[int, typer.Option(min=3)] = 15,
    out: Annotated[Path | None, typer.Option("--json", help="Write the figures here too.")] = None,
) -> None:
    """Time the weighing of every plan."""
    with open_study("ask", workload=ZOO[workload].load(), ledger="sqlite://") as study:
        study.execute(study.ask()[0])
        taken = []
        for _ in range(repeats):
            started = time.perf_counter()
            scored = study.score()
            taken.append(time.perf_counter() - started)
    found = {
        "schema": "argus-bed/benchmark-ask/1",
        "workload": workload,
        "hypotheses": len(study.hypotheses),
        "probes": len({s.plan.probe for s in scored}),
        "plans": len(scored),
        "repeats": repeats,
        "median_s": statistics.median(taken),
        "min_s": min(taken),
        "max_s": max(taken),
    }
    text = json.dumps(found, indent=1)
    if out is not None:
        out.write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    typer.run(main)
