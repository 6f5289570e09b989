"""Every hypothesis of the library: its page is complete, its model sound, its marks decide."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from argus_bed.contrast import planned_readings
from argus_bed.frame import BASELINE, CANDIDATE, Cell, Condition, Frame, Stage
from argus_bed.hypothesis import NO_EFFECT, NONE_OF_THESE, Hypothesis, catalogue
from argus_bed.inference.belief import Belief
from argus_bed.probe import Reading, Sample
from argus_bed.quantity import QUANTITIES
from argus_bed.study.opening import DEFAULT_HYPOTHESES
from argus_bed.study.readings import to_readings

LIBRARY = catalogue()
FILES = Path(__file__).parents[2] / "models"
every = pytest.mark.parametrize("name", sorted(LIBRARY))

# -- its page ---------------------------------------------------------------------------


def test_one_file_one_hypothesis_of_its_name():
    files = {p.stem for p in FILES.glob("*.py") if not p.name.startswith("_")}
    assert set(LIBRARY) == files
    assert len(files) >= 16


@every
def test_nothing_on_its_page_is_blank(name):
    found = LIBRARY[name]
    for field in ("claim", "signature", "decisive_probe", "intervention"):
        assert getattr(found, field).strip(), field
    assert found.sources
    assert all(source.strip() for source in found.sources)
    assert found.claim.strip()[-1] == "."
    assert found.causes == (name,)
    assert math.isfinite(found.weight)
    assert found.weight > 0


@every
def test_its_rivals_are_known_and_not_itself(name):
    rivals = LIBRARY[name].confused_with
    assert rivals or name == NONE_OF_THESE  # that one is confused with all of them
    assert set(rivals) <= set(LIBRARY) - {name}


@every
def test_it_blames_a_part_that_can_be_pointed_at(name):
    part = LIBRARY[name].part
    if name in (NO_EFFECT, NONE_OF_THESE):
        assert part == "none"
    else:
        assert part in {
            "computation",
            "thread",
            "memory path",
            "synchronisation boundary",
            "measurement",
        }


# -- its model --------------------------------------------------------------------------

ARMS = (Condition(BASELINE), Condition(CANDIDATE))
STAGES = (Stage("part", "compute", True), Stage("rest", "compute", False), Stage("queue", "wait"))
WHOLE = Frame(
    "step_time",
    (*ARMS, Condition("turned", CANDIDATE, "knob", "on", frozenset(LIBRARY))),
    STAGES,
    tuple(
        Cell(quantity, condition, stage)
        for quantity in sorted(QUANTITIES)
        for condition in (BASELINE, CANDIDATE, "turned")
        for stage in (None, "part", "rest", "queue")
    ),
)


@every
def test_prior_draws_over_every_quantity_are_finite(name):
    import pymc as pm
    from pytensor.compile.mode import Mode

    model = LIBRARY[name].model(WHOLE)
    with model:
        cells, free = pm.draw(
            [model["cells"], model["free"]],
            draws=64,
            random_seed=5,
            mode=Mode(linker="py", optimizer="fast_compile"),
        )
    assert cells.shape == free.shape == (64, len(WHOLE.cells))
    assert np.isfinite(cells).all()
    assert np.isfinite(free).all()
    assert (free >= 0).all()
    where = [WHOLE.cell_index[Cell("step_time", arm)] for arm in (BASELINE, CANDIDATE)]
    contrast = cells[:, where[1]] - cells[:, where[0]]
    if name == NO_EFFECT:
        assert np.all(contrast == 0)
        assert np.all(free[:, where] < 1e-3)
    assert np.all(np.abs(contrast) < math.log(1000))


# -- its marks --------------------------------------------------------------------------

Mark = dict[tuple[str, str | None], tuple[float, float]]


@dataclass(frozen=True)
class Example:
    """What the arms read if the mechanism is at work, and what if it is not.

    marks : (quantity, stage) -> (baseline, candidate). A mark that is absent reads the
        baseline's value in both arms, unless ``otherwise`` says what it reads then.
    """

    marks: Mark
    step: tuple[float, float] = (0.1, 0.125)
    otherwise: Mark | None = None


EXAMPLES: dict[str, Example] = {
    "allocator_stall": Example(
        {("page_faults", None): (100, 1500), ("fault_time", None): (0.001, 0.017)}
    ),
    "cache_eviction": Example({("stage_time", "rest"): (0.05, 0.068)}),
    "data_starvation": Example({("data_wait", None): (0.001, 0.022)}),
    "gc_pause": Example({("gc_pause", None): (0.0003, 0.024), ("gc_collections", None): (1, 4)}),
    "gil_held": Example({("gil_wait", None): (0.0002, 0.03), ("progress_rate", None): (970, 250)}),
    "hidden_sync": Example(
        {("host_wait", None): (0.001, 0.022), ("voluntary_switches", None): (10, 30)}
    ),
    "hot_cache_benchmark": Example(
        {("isolated_time", "part"): (0.02, 0.012), ("bandwidth_ratio", "part"): (0.6, 1.8)},
        step=(0.1, 0.106),
        otherwise={
            ("isolated_time", "part"): (0.02, 0.027),
            ("bandwidth_ratio", "part"): (0.6, 0.5),
        },
    ),
    "launch_bound": Example(
        {
            ("host_time", None): (0.05, 0.1),
            ("gap_time", None): (0.005, 0.026),
            ("device_busy", None): (0.92, 0.7),
        }
    ),
    "layout_copies": Example({("copy_time", None): (0.001, 0.022), ("copy_count", None): (2, 14)}),
    "off_critical_path": Example(
        {("isolated_time", "part"): (0.02, 0.012), ("delay_slope", "part"): (0.02, 0.03)},
        step=(0.1, 0.1),
        otherwise={("isolated_time", "part"): (0.02, 0.02), ("delay_slope", "part"): (1.0, 1.0)},
    ),
    "overlap_lost": Example(
        {("exposed_comm", None): (0.002, 0.024), ("overlap_fraction", None): (0.9, 0.4)}
    ),
    "probe_effect": Example(
        {
            ("host_time", None): (0.05, 0.075),
            ("overlap_fraction", None): (0.9, 0.5),
            ("launch_count", None): (100, 122),
        }
    ),
    "redundant_work": Example(
        {
            ("instructions", None): (1e9, 1.35e9),
            ("bytes_moved", None): (1e8, 1.35e8),
            ("cpu_time", None): (0.09, 0.111),
        }
    ),
    "thread_oversubscription": Example(
        {
            ("involuntary_switches", None): (3, 14),
            ("thread_count", None): (2, 4),
            ("cpu_time", None): (0.15, 0.21),
        }
    ),
}


def rivals(name: str) -> tuple[Hypothesis, ...]:
    """Nothing, none of these, and the closest of the default set."""
    others = [n for n in LIBRARY[name].confused_with if n in DEFAULT_HYPOTHESES]
    others += [n for n in ("gil_held", "gc_pause", "hidden_sync") if n not in (*others, name)]
    return tuple(LIBRARY[n] for n in (NO_EFFECT, NONE_OF_THESE, others[0]))


def frame_of(example: Example) -> Frame:
    read = [("step_time", None), *example.marks]
    cells = tuple(Cell(q, arm.name, stage) for q, stage in read for arm in ARMS)
    return Frame("step_time", ARMS, STAGES, cells)


def readings(frame: Frame, example: Example, present: bool) -> list[Reading]:
    """Eight paired blocks of each arm with 1 % of noise, through the product's own path."""
    rng = np.random.default_rng(11)
    absent = {k: (a, a) for k, (a, _) in example.marks.items()} | (example.otherwise or {})
    levels: Mark = {("step_time", None): example.step, **(example.marks if present else absent)}
    samples = [
        Sample(
            Cell(quantity, arm.name, stage),
            tuple(float(v) for v in pair[i] * (1 + rng.normal(0, 0.01, 8))),
            paired=True,
        )
        for (quantity, stage), pair in levels.items()
        for i, arm in enumerate(ARMS)
    ]
    planned = planned_readings(frame, {s.cell: len(s.values) for s in samples}, {})
    found = to_readings(frame, planned, samples, {})
    assert all(r.reading is not None for r in found)
    return [r.reading for r in found if r.reading is not None]


def test_every_mechanism_of_the_default_set_has_an_example():
    assert set(EXAMPLES) == set(DEFAULT_HYPOTHESES)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_its_marks_convince_and_their_absence_does_not(name):
    example = EXAMPLES[name]
    frame = frame_of(example)
    against = rivals(name)
    prior = Belief((LIBRARY[name], *against), frame, seed=3, particles=256)

    seen = prior.update(readings(frame, example, present=True))
    bits = {h: e / math.log(2) for h, e in seen.log_evidence.items()}
    assert bits[name] - bits[NO_EFFECT] > 3
    ordinary = [bits[h.name] for h in against if h.name != NO_EFFECT]
    assert bits[name] - sum(ordinary) / len(ordinary) > 3
    chances = seen.probabilities()
    assert max(chances, key=chances.__getitem__) == name

    absent = prior.update(readings(frame, example, present=False)).probabilities()
    assert max(absent, key=absent.__getitem__) != name
    assert absent[name] < chances[name] / 2
