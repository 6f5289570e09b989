"""The step model: frames that contradict themselves, roots, and the arithmetic of a step."""

from __future__ import annotations

import math

import numpy as np
import pytest

from argus_bed.anatomy import Anatomy
from argus_bed.errors import ConfigError, UnknownName
from argus_bed.frame import BASELINE, CANDIDATE, Cell, Condition, Frame, Stage, benign, is_metric
from argus_bed.hypothesis import Hypothesis, hypothesis

ARMS = (Condition(BASELINE), Condition(CANDIDATE))


def test_the_arms_come_first():
    with pytest.raises(ConfigError, match="baseline"):
        Frame("step_time", (Condition("a"), Condition("b")))
    with pytest.raises(ConfigError, match="arms"):
        Frame("step_time", ARMS[::-1])


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"metric": "step_tim"}, "step_time"),
        ({"conditions": (*ARMS, Condition("x", "nobody"))}, "nobody"),
        ({"cells": (Cell("step_time", "candidat"),)}, "candidate"),
        ({"cells": (Cell("stage_time", CANDIDATE, "wrok"),)}, "work"),
        ({"cells": (Cell("stage_tim", CANDIDATE),)}, "stage_time"),
    ],
)
def test_what_a_frame_does_not_know_is_named(parts, says):
    given = {"metric": "step_time", "conditions": ARMS, "stages": (Stage("work"),), **parts}
    with pytest.raises(UnknownName, match=says):
        Frame(**given)


def test_every_condition_leads_back_to_an_arm():
    frame = Frame("step_time", (*ARMS, Condition("x", CANDIDATE), Condition("y", "x")))
    assert [frame.root(c.name) for c in frame.conditions] == [BASELINE, *[CANDIDATE] * 3]
    with pytest.raises(UnknownName, match="candidate"):
        frame.condition("canddate")


def test_cells_are_added_once_and_in_order():
    one, two = Cell("step_time", BASELINE), Cell("gil_wait", CANDIDATE)
    frame = Frame("step_time", ARMS, cells=(one,)).with_cells([two, one, two])
    assert frame.cells == (one, two)
    assert str(two) == "gil_wait[candidate]"
    assert str(Cell("stage_time", BASELINE, "work")) == "stage_time[work@baseline]"


def test_a_setting_moves_levels_more_than_turning_a_knob_and_that_more_than_the_arms():
    frame = Frame(
        "step_time",
        (
            *ARMS,
            Condition("knob", CANDIDATE, "k", "1", removes=frozenset({"gil_held"})),
            Condition("load", CANDIDATE, "load", "high"),
        ),
    )

    def at(name: str) -> Cell:
        return Cell("step_time", name)

    arms = benign(frame, at(CANDIDATE), at(BASELINE))[0]
    knob = benign(frame, at("knob"), at(CANDIDATE))[0]
    load = benign(frame, at("load"), at(CANDIDATE))[0]
    assert arms < knob < load
    assert is_metric(frame, at(BASELINE))
    assert not is_metric(frame, Cell("gil_wait", BASELINE))


# -- the arithmetic of a step --------------------------------------------------------------


def made(changes: object) -> Hypothesis:
    return hypothesis(claim="It is so.", part="thread")(changes)  # type: ignore[arg-type]


def cells_of(found: Hypothesis, frame: Frame, draws: int = 1) -> np.ndarray:
    import pymc as pm
    from pytensor.compile.mode import Mode

    with found.model(frame) as model:
        return pm.draw(
            model["cells"],
            draws=draws,
            random_seed=2,
            mode=Mode(linker="py", optimizer="fast_compile"),
        )


def test_extra_time_lengthens_the_step_where_it_is_active_and_is_found_again():
    @made
    def lost(step: Anatomy) -> None:
        step.no_local_change()
        step.extends(0.25)
        step.carries("gil_wait", 0.25, 0.8)

    steps = tuple(Cell("step_time", arm.name) for arm in ARMS)
    waits = tuple(Cell("gil_wait", arm.name) for arm in ARMS)
    frame = Frame("step_time", ARMS, (), (*steps, *waits), "same")
    base, candidate, quiet, wait = cells_of(lost, frame)
    assert base == pytest.approx(0)
    assert candidate == pytest.approx(math.log(1.25))
    assert quiet == pytest.approx(0)
    assert wait == pytest.approx(10 * 0.8 * 0.25 / 1.25)  # tenths of the longer step


def test_a_saving_counts_by_its_share_and_not_at_all_where_it_is_hidden():
    """Amdahl: a part of share s that becomes r times as long saves s (1 - r)."""

    @made
    def faster(step: Anatomy) -> None:
        step._share, step.local = 0.4, math.log(0.5)

    @made
    def hidden(step: Anatomy) -> None:
        step._share, step.local, step.kappa = 0.4, math.log(0.5), 0.0

    frame = Frame(
        "step_time", ARMS, (), tuple(Cell("step_time", arm.name) for arm in ARMS), "faster"
    )
    assert cells_of(faster, frame)[1] == pytest.approx(math.log(1 - 0.4 * 0.5))
    assert cells_of(hidden, frame)[1] == pytest.approx(0)


def test_an_intervention_that_removes_a_mechanism_leaves_little_of_it():
    @made
    def lost(step: Anatomy) -> None:
        step.no_local_change()
        step.extends(0.25)

    conditions = (
        *ARMS,
        Condition("off", CANDIDATE, "k", "off", removes=frozenset({"lost"})),
        Condition("on", BASELINE, "k", "on", adds=frozenset({"lost"})),
        Condition("else", CANDIDATE, "other", "1", removes=frozenset({"something"})),
    )
    cells = tuple(Cell("step_time", c.name) for c in conditions)
    frame = Frame("step_time", conditions, (), cells, "same")
    base, candidate, off, on, other = cells_of(lost, frame, draws=400).T
    assert np.all(base == 0)
    assert np.allclose(candidate, math.log(1.25))
    assert np.allclose(other, candidate)
    assert np.allclose(on, candidate)
    assert off.max() < math.log(1.25)
    # what both arms had of it goes as well
    assert -0.2 < np.median(off) < 0
    assert np.all(off <= candidate)
