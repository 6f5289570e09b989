"""Waits for the interpreter lock, and the call chains that held it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from argus_bed.execution import LocalBench
from argus_bed.execution.vetting import measured
from argus_bed.frame import Cell
from argus_bed.probe import Observation, catalogue
from argus_bed.workload import Workload
from argus_bed.zoo import ZOO

sys.path.insert(0, str(Path(__file__).parent))
import holding

PROBE = catalogue()["gil_ticks"]


def watched(workload: Workload, blocks: int = 3) -> Observation:
    with LocalBench(workload) as bench:
        plan = next(p for p in PROBE.plans(bench.target()) if p.settings["blocks"] == blocks)
        return measured(PROBE, plan, bench, seed=1)


def share(read: Observation, arm: str) -> float:
    """What the ticks waited, over the step."""
    middle = {s.cell: median(s.values) for s in read.samples}
    return middle[Cell("gil_wait", arm)] / middle[Cell("step_time", arm)]


def chains(read: Observation) -> list[dict[str, Any]]:
    return list(read.environment["call_chains"])


@pytest.mark.promise("A48")
def test_serialized_work_is_found_with_its_call_chain() -> None:
    """The zoo's ``gil``: the fault, its twin, and each arm without it."""
    faulty = watched(ZOO["gil"].load(), blocks=8)
    twin = watched(ZOO["gil"].load(fault_free=True), blocks=8)
    assert share(faulty, "candidate") > 0.20
    assert share(faulty, "baseline") < 0.01
    assert share(twin, "candidate") < 0.01
    assert share(twin, "baseline") < 0.01

    first = chains(faulty)[0]
    assert first["condition"] == "candidate"
    assert [entry.split()[-1] for entry in first["chain"]] == ["step", "_second"]
    assert first["share"] > 0.7
    assert chains(twin) == []
    assert json.loads(json.dumps(dict(faulty.environment))) == faulty.environment


@pytest.mark.promise("A48")
def test_no_chain_names_what_is_wrong() -> None:
    """Files and functions that a stack can show."""
    from argus_bed.zoo import _transfers

    workload = ZOO["gil"].load()
    assert workload.step.__code__.co_filename == _transfers.__file__
    words = Path(_transfers.__file__).read_text().lower()
    for telling in ("gil", "lock", "held", "hold", "serial", "keep"):
        assert telling not in words


@pytest.mark.promise("A48")
def test_releasing_the_call_ends_it() -> None:
    with LocalBench(ZOO["gil"].load()) as bench:
        arms = ("candidate", "candidate:call=third")
        taken = bench.interleave(arms, blocks=3, instrument=PROBE.instrument(None), seed=1)  # type: ignore[attr-defined]
    middle = {
        arm: median(taken[arm]["gil_wait", None]) / median(taken[arm]["step_time", None])
        for arm in arms
    }
    assert middle["candidate"] > 0.20
    assert middle["candidate:call=third"] < 0.01


@pytest.mark.parametrize(("how", "least"), [("main", 0.7), ("other", 0.4)])
def test_the_holder_is_named_whichever_thread_it_is(how: str, least: float) -> None:
    """Of another thread only where it stands when the next one runs: less is certain."""
    found = chains(watched(holding.make(how)))
    named = sum(c["share"] for c in found if c["chain"][-1].endswith(" kept"))
    assert named > least, found


def test_code_that_takes_turns_is_where_it_ran() -> None:
    found = chains(watched(holding.make("python")))
    named = sum(c["share"] for c in found if any(e.endswith(" outer") for e in c["chain"]))
    assert named > 0.7, found


def test_a_file_is_named_from_where_it_was_imported() -> None:
    (first, *_) = chains(watched(holding.make("main")))
    assert [e.split(":")[0] for e in first["chain"]] == ["holding.py"] * 3


def test_a_workload_that_uses_every_signal_is_measured_and_not_named() -> None:
    read = watched(holding.make("main", own="signals"))
    assert share(read, "candidate") > 0.20
    assert chains(read) == []
    assert "every real-time signal" in read.environment["call_chains_about"]["candidate"]["unnamed"]


def test_a_workload_may_have_its_own_traceback_timer() -> None:
    """`faulthandler.dump_traceback_later` is one for a process; it is left alone."""
    assert chains(watched(holding.make("main", own="traceback")))


def test_what_was_changed_for_the_stacks_is_changed_back() -> None:
    from argus_bed.probes._held_stack import HeldStack, collected

    with LocalBench(holding.make("main")) as bench:
        before = bench.call("candidate", "argus_bed.probes._held_stack:settings")
        bench.interleave(("candidate",), blocks=1, steps=3, instrument=HeldStack())
        assert bench.call("candidate", "argus_bed.probes._held_stack:settings") == before
        assert bench.call("candidate", "argus_bed.probes._held_stack:collected")["chains"]
    assert collected(None, None) == {"waited_s": 0, "chains": []}


@pytest.mark.slow
def test_busy_threads_survive_being_looked_at() -> None:
    """Stacks read from outside the interpreter ended such a process; see `_held_stack`."""
    from argus_bed.probes._held_stack import HeldStack

    with LocalBench(holding.make("python")) as bench:
        taken = bench.interleave(("candidate",), blocks=40, instrument=HeldStack(), seed=1)
    assert len(taken["candidate"]["gil_wait", None]) == 40
