"""What a probe reads is what its quantity says: per step, in its unit, of whom it says."""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from argus_bed.probes import _ticks
from argus_bed.probes._held_stack import free_signal
from argus_bed.probes._paired import samples
from argus_bed.probes._stages import StageClock
from argus_bed.probes.event_pair import HostPair
from argus_bed.probes.gc_callbacks import Collections
from argus_bed.probes.rusage_counters import Usage
from argus_bed.probes.stage_timer import Timer
from argus_bed.probes.torch_profiler_window import window

from argus_bed.errors import ProbeUnavailable
from argus_bed.frame import Cell
from argus_bed.probe import Target, catalogue

sys.path.insert(0, str(Path(__file__).parent))
import toy

BURNT_S = 0.2
BURN = f"import time\nwhile time.process_time() < {BURNT_S}: pass"


def burn() -> None:
    end = time.thread_time() + BURNT_S
    while time.thread_time() < end:
        pass


# -- processor time, faults, switches ----------------------------------------------------


def test_processor_time_holds_other_threads_and_ended_children() -> None:
    for deed in (
        lambda: burn(),
        lambda: [t.start() or t.join() for t in [threading.Thread(target=burn)]],
        lambda: subprocess.run([sys.executable, "-c", BURN], check=True),
    ):
        usage = Usage()
        usage.start(None, None)
        deed()
        seconds = usage.stop(2)["cpu_time", None]
        assert BURNT_S / 2 * 0.9 < seconds < BURNT_S / 2 + 0.25


def test_page_faults_are_counted_per_step() -> None:
    import mmap

    pages, steps = 2000, 4
    usage = Usage()
    usage.start(None, None)
    for _ in range(steps):
        with mmap.mmap(-1, pages * mmap.PAGESIZE) as fresh:
            if hasattr(mmap, "MADV_NOHUGEPAGE"):
                fresh.madvise(mmap.MADV_NOHUGEPAGE)
            for i in range(pages):
                fresh[i * mmap.PAGESIZE] = 1
    faults = usage.stop(steps)["page_faults", None]
    assert pages <= faults < 1.2 * pages + 200


def test_switches_of_all_threads_are_counted_per_step() -> None:
    sleeps = 50

    def doze() -> None:
        for _ in range(sleeps):
            time.sleep(1e-4)

    usage = Usage()
    usage.start(None, None)
    doze()
    thread = threading.Thread(target=doze)
    thread.start()
    thread.join()
    switches = usage.stop(sleeps)["voluntary_switches", None]
    assert 2 <= switches < 3  # one of each thread a step, and a few to start and end


# -- collections -------------------------------------------------------------------------


def test_only_collections_within_the_block_count_whichever_thread_they_are_in() -> None:
    heard = Collections()
    enabled = gc.isenabled()
    gc.disable()
    try:
        gc.collect()
        heard.start(None, None)
        gc.collect(0)
        thread = threading.Thread(target=gc.collect)
        begin = time.perf_counter()
        thread.start()
        thread.join()
        took = time.perf_counter() - begin
        found = heard.stop(2)
        gc.collect()
    finally:
        if enabled:
            gc.enable()
    assert found["gc_collections", None] == 1.0
    assert 0 < found["gc_pause", None] < took
    assert heard._hear not in gc.callbacks


# -- stages ------------------------------------------------------------------------------


@pytest.mark.parametrize("clock", [StageClock(), HostPair("a")])
def test_a_stage_inside_itself_is_timed_once(clock: StageClock | HostPair) -> None:
    clock.start(None, None)
    for _ in range(2):
        clock.enter("a")
        clock.enter("a")
        time.sleep(0.1)
        clock.leave("a")
        time.sleep(0.01)
        clock.leave("a")
    seconds = clock.stop(2)["stage_time", "a"]
    assert 0.11 <= seconds < 0.17  # 0.21 if the inner visit were added, 0.10 if only it counted


def test_a_worker_that_waits_for_work_does_not_hold_the_step_up() -> None:
    timer = Timer(("next",))
    timer.start(None, None)

    def wait() -> None:
        timer.enter("next")
        time.sleep(0.1)
        timer.leave("next")

    thread = threading.Thread(target=wait)
    thread.start()
    timer.enter("next")
    time.sleep(0.01)
    timer.leave("next")
    thread.join()
    found = timer.stop(1)
    assert 0.01 <= found["data_wait", None] < 0.09
    assert found["stage_time", "next"] >= 0.11  # the stage's own time, in every thread


# -- ticks -------------------------------------------------------------------------------


def test_a_late_timer_is_no_wait_for_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tick is 2 ms late because its thread sleeps on; the lock is free throughout."""
    real = time.sleep
    monkeypatch.setattr(_ticks.time, "sleep", lambda s: real(s + 2e-3))
    ticks = _ticks.Ticks()
    monkeypatch.setattr(_ticks, "median", lambda late: 0.0)
    ticks.start(None, None)
    real(0.2)
    found = ticks.stop(1)
    assert found["gil_wait", None] < 0.02
    assert 100 < found["progress_rate", None] < 400


def test_a_free_signal_is_free() -> None:
    import signal

    one = free_signal()
    before = signal.signal(one, lambda *_: None)
    try:
        assert free_signal() != one
    finally:
        signal.signal(one, before)


# -- pairs -------------------------------------------------------------------------------


def test_values_that_lost_their_partner_are_not_paired() -> None:
    """Block 0 of one arm and block 2 of the other are left out: as many values, other blocks."""
    taken = {
        "baseline": {("cpu_time", None): [0.0, 1.0, 2.0], ("page_faults", None): [0.0, 1.0, 2.0]},
        "candidate": {("cpu_time", None): [1.0, 2.0, 0.0], ("page_faults", None): [0.0, 1.0, 2.0]},
    }
    cells = [Cell(q, arm) for q in ("cpu_time", "page_faults") for arm in taken]
    found = {s.cell: s for s in samples(taken, cells)}
    assert not any(found[Cell("cpu_time", arm)].paired for arm in taken)
    assert all(found[Cell("page_faults", arm)].paired for arm in taken)


# -- the profiler and the bound ----------------------------------------------------------


@pytest.mark.slow
def test_operations_of_a_backward_pass_are_counted() -> None:
    """x * w, sum, and back: fill the gradient of the sum, expand it, times w, accumulate."""
    import torch

    class Training:
        @staticmethod
        def step(state: torch.Tensor) -> None:
            (torch.mul(state, 3.0)).sum().backward()

    leaf = torch.ones(4, requires_grad=True)
    forward_only = window(_Forward, leaf.detach(), steps=4)
    both = window(Training, leaf, steps=4)
    assert forward_only["launch_count"] == 2
    # and ones_like, mul in MulBackward0, add_ or detach of the gradient
    assert both["launch_count"] >= 4


class _Forward:
    @staticmethod
    def step(state: object) -> None:
        import torch

        torch.mul(state, 3.0).sum()  # type: ignore[call-overload]


def test_a_claim_is_not_held_against_the_wrong_memory() -> None:
    probe = catalogue()["bound_check"]
    frame = toy.workload.frame()
    assert list(probe.plans(Target(frame, 0.01, claims=("work",))))
    on_device = Target(frame, 0.01, claims=("work",), capabilities=frozenset({"torch", "cuda"}))
    assert list(probe.plans(on_device)) == []


def test_the_kernel_counts_what_usage_reads() -> None:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    from argus_bed.probes.rusage_counters import COUNTED

    assert all(hasattr(usage, field) for fields in COUNTED.values() for field in fields)


def test_no_timer_is_a_reason_and_not_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    from argus_bed.probes._held_stack import Timer as KernelTimer

    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(ProbeUnavailable, match="64-bit Linux"):
        KernelTimer(1e-3, 40)
