"""What PyTorch counts, read in processes that use it and in one that does not."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

import pytest

from argus_bed.errors import ProbeUnavailable
from argus_bed.execution import LocalBench
from argus_bed.execution.vetting import measured
from argus_bed.frame import Cell
from argus_bed.probe import Observation, catalogue
from argus_bed.workload import Workload

sys.path.insert(0, str(Path(__file__).parent))
import compiling
import toy

PROBE = catalogue()["framework_counters"]


def watched(workload: Workload) -> Observation:
    with LocalBench(workload) as bench:
        plan = next(p for p in PROBE.plans(bench.target()) if p.settings["blocks"] == 3)
        return measured(PROBE, plan, bench, seed=1)


def test_a_workload_that_loads_torch_and_compiles_nothing_is_offered_a_reading_of_nothing() -> None:
    found = {s.cell: set(s.values) for s in watched(compiling.make("never", "never")).samples}
    for arm in ("baseline", "candidate"):
        assert found[Cell("recompiles", arm)] == {0.0}
        assert found[Cell("graph_breaks", arm)] == {0.0}


@pytest.mark.slow
def test_compilations_and_graph_breaks_are_counted_per_step_on_a_cpu() -> None:
    """Each step of the candidate forgets what was compiled: two graphs, one break between."""
    read = watched(compiling.make("once", "again"))
    found = {s.cell: median(s.values) for s in read.samples}
    assert found[Cell("recompiles", "baseline")] == 0
    assert found[Cell("graph_breaks", "baseline")] == 0
    assert found[Cell("recompiles", "candidate")] == 2
    assert found[Cell("graph_breaks", "candidate")] == 1
    step_s, compile_s = (found[Cell(name, "candidate")] for name in ("step_time", "compile_time"))
    assert 0.2 < compile_s / step_s <= 1.05


def test_without_torch_there_is_no_plan_and_a_reason() -> None:
    with LocalBench(toy.workload) as bench:
        assert list(PROBE.plans(bench.target())) == []
        with pytest.raises(ProbeUnavailable, match="has not imported it"):
            bench.interleave(
                ("baseline",),
                blocks=1,
                instrument=PROBE.instrument(None),  # type: ignore[attr-defined]
            )


def test_it_says_what_a_cpu_cannot_give() -> None:
    assert "CUDA" in PROBE.establishes
    assert "CPU" in PROBE.leaves_open
