"""The simulated studies of `policy.py`: one bench of probes, many truths.

Prices, disturbances and noise are assumptions of the size that the catalogue of instruments
names; they are the same for every study and know nothing of the truth.
"""

from __future__ import annotations

from argus_bed.frame import BASELINE, CANDIDATE, Cell, Condition, Frame, Stage
from argus_bed.probe import Price, SideEffect
from argus_bed.study.opening import DEFAULT_HYPOTHESES
from argus_bed.workload.simulated import Distortion, SimulatedProbe

HYPOTHESES = DEFAULT_HYPOTHESES
FEW = (
    "data_starvation",
    "gc_pause",
    "gil_held",
    "hidden_sync",
    "off_critical_path",
    "thread_oversubscription",
)
"""For a quick look: a study of these takes a third of the time."""

DISTORTIONS = {
    "weak marks": Distortion(marks=0.4),
    "marks the other way": Distortion(marks=-1.0),
    "three times the noise": Distortion(noise=3.0),
    "heavy tails": Distortion(dof=1.5),
}
UNLISTED = (
    {"numeric_error": 2.0, "bytes_moved": 2.0},
    {"instructions": 2.0},
    {"resident_bytes": 2.0, "bytes_moved": -2.0},
    {"neighbour_slowdown": 1.5, "temperature": 15.0},
)
"""What moves where no hypothesis is right: quantities that none of them says anything of."""

ARMS = (BASELINE, CANDIDATE)
KERNEL, REST, LOADER = (
    Stage("kernel", "compute", True, "the part that was changed"),
    Stage("rest", "compute", False, "everything else"),
    Stage("loader", "wait", False, "the next input"),
)
KNOBS = (
    Condition("no collector", CANDIDATE, "collector", "off", frozenset({"gc_pause"})),
    Condition("one worker", CANDIDATE, "workers", "1", frozenset({"thread_oversubscription"})),
    Condition("other call", CANDIDATE, "call", "other", frozenset({"gil_held", "hidden_sync"})),
    Condition("data in memory", CANDIDATE, "data", "memory", frozenset({"data_starvation"})),
    Condition("no monitor", CANDIDATE, "monitor", "off", frozenset({"probe_effect"})),
)
STEP_NOISE = 0.01


def bench(names: tuple[str, ...] = HYPOTHESES) -> tuple[Frame, tuple[SimulatedProbe, ...]]:
    """Frame and probes; knobs only for the mechanisms in ``names``."""
    knobs = tuple(c for c in KNOBS if c.removes & {*names})
    probes = (*_observing(), *(_variant(c) for c in knobs))
    cells = tuple(dict.fromkeys(c for p in probes for c in p.cells))
    conditions = (Condition(BASELINE), Condition(CANDIDATE), *knobs)
    return Frame("step_time", conditions, (KERNEL, REST, LOADER), cells), probes


def _both(*quantities: str, stage: str | None = None) -> tuple[Cell, ...]:
    return tuple(Cell(q, arm, stage) for q in quantities for arm in ARMS)


def _candidate(quantity: str, stage: str | None = None) -> tuple[Cell, ...]:
    return (Cell(quantity, CANDIDATE, stage),)


def _probe(
    kind: str,
    seconds: float,
    perturbation: float,
    *cells: Cell,
    step_noise: float = STEP_NOISE,
    noise: float | None = None,
    effects: tuple[SideEffect, ...] = (),
) -> SimulatedProbe:
    named = {} if noise is None else {c.quantity: noise for c in cells}
    price = Price(0.0, seconds, perturbation, "assumption, of the catalogue's size")
    return SimulatedProbe(
        kind, kind, cells, price, {**named, "step_time": step_noise}, side_effects=effects
    )


def _variant(condition: Condition) -> SimulatedProbe:
    cells = tuple(Cell("step_time", c) for c in (CANDIDATE, condition.name))
    price = Price(60.0, 240.0, 0.0, "assumption: a changed set-up, and both run in turns")
    return SimulatedProbe(
        condition.name, "controlled_variant", cells, price, {"step_time": STEP_NOISE}
    )


def _observing() -> tuple[SimulatedProbe, ...]:
    step = _both("step_time")
    watched = SideEffect(
        "inflates_host", "the host is the bottleneck", 0.3, frozenset({"host_time", "gap_time"})
    )
    traced = (
        *_both("launch_count", "copy_count", "host_time", "device_busy", "overlap_fraction"),
        *_both("host_wait", "gap_time", "copy_time", "data_wait", "exposed_comm"),
        *_both("stage_time", stage="kernel"),
        *_both("stage_time", stage="rest"),
        *_both("stage_time", stage="loader"),
    )
    return (
        _probe("bound_check", 1.0, 0.0, *_candidate("bandwidth_ratio")),
        _probe("framework_counters", 5.0, 0.0, *_both("launch_count", "alloc_retries")),
        _probe(
            "rusage_counters",
            8.0,
            0.0,
            *_both("page_faults", "voluntary_switches", "involuntary_switches", "cpu_time"),
            *_both("instructions", "bytes_moved", "resident_bytes"),
        ),
        _probe("gc_callbacks", 20.0, 0.001, *step, *_both("gc_pause", "gc_collections")),
        _probe("gil_ticks", 20.0, 0.01, *step, *_both("gil_wait", "progress_rate")),
        _probe("end_to_end", 120.0, 0.0, *step, step_noise=0.003),
        _probe(
            "stage_timer",
            60.0,
            0.01,
            *step,
            *_both("stage_time", stage="kernel"),
            *_both("stage_time", stage="rest"),
            *_both("stage_time", stage="loader"),
            *_both("data_wait"),
        ),
        _probe("event_pair", 30.0, 0.005, *step, *_both("host_wait", "copy_time")),
        _probe("clock_power_sampling", 30.0, 0.01, *_both("sm_clock", "temperature")),
        _probe("microbenchmark_hot", 40.0, 0.0, *_both("isolated_time", stage="kernel")),
        _probe("microbenchmark_cold", 60.0, 0.0, *_both("cold_time", stage="kernel")),
        _probe("numeric_check", 60.0, 0.0, *_both("numeric_error")),
        _probe("profiler_window", 120.0, 0.3, *step, *traced, effects=(watched,)),
        _probe("delay_injection", 200.0, 0.05, *_candidate("delay_slope", "kernel"), noise=0.1),
        _probe(
            "full_trace",
            900.0,
            1.0,
            *step,
            *traced,
            *_both("page_faults", "gc_pause", "gil_wait", "alloc_retries", "fault_time"),
            *_both("neighbour_slowdown", "instructions"),
            noise=0.05,
            effects=(watched,),
        ),
    )
