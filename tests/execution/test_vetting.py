"""A probe that goes wrong is a failed run, never a lost study."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from argus_bed.errors import ConfigError, ProbeFailed, ProbeUnavailable, UsageError
from argus_bed.execution.vetting import measured, planned
from argus_bed.frame import BASELINE, CANDIDATE, Cell, Condition, Frame
from argus_bed.probe import Bench, Measurement, Observation, Plan, Price, Probe, Sample, Target

ARMS = (BASELINE, CANDIDATE)
READS = tuple(Cell("step_time", arm) for arm in ARMS)
PLAN = Plan("mine", {}, ARMS, (Measurement(READS[1], READS[0]),), Price(run_s=1.0), reads=READS)
TARGET = Target(Frame("step_time", tuple(Condition(arm) for arm in ARMS), (), ()), step_s=0.1)
BENCH: Any = None


class Mine(Probe):
    """Does whatever a test wants."""

    name = "mine"

    def __init__(self, does: Callable[[], Any], plan: Plan = PLAN) -> None:
        self.does, self.plan = does, plan

    def plans(self, target: Target) -> Iterable[Plan]:
        yield self.plan
        self.does()

    def run(self, plan: Plan, bench: Bench, seed: int) -> Observation:
        return self.does()  # type: ignore[no-any-return]


def raising(error: BaseException) -> Callable[[], Any]:
    def does() -> Any:
        raise error

    return does


def read(*values: Any, cell: Cell = READS[0]) -> Observation:
    return Observation((Sample(cell, values),))


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "returned None; an Observation is wanted"),
        (read(float("nan")), "step_time = nan"),
        (read(-1.0), "step_time = -1"),
        (read(0.0), "step_time = 0"),
        (read("0.1"), "step_time[baseline] = '0.1': a number is wanted"),
        (read(None), "nonsense"),
        (read(), "no value of anything"),
        (Observation(()), "no value of anything"),
        (Observation((1,)), "1 among its samples"),  # type: ignore[arg-type]
        (Observation(7), "nonsense"),  # type: ignore[arg-type]
        (read(0.1, cell=Cell("step_time", "elsewhere")), "was not announced by plan mine"),
        (read(0.1, cell=Cell("bogus", BASELINE)), "was not announced by plan mine"),
    ],
)
def test_nonsense_is_a_failed_probe(returned: Any, said: str) -> None:
    with pytest.raises(ProbeFailed) as caught:
        measured(Mine(lambda: returned), PLAN, BENCH, 0)
    assert said in str(caught.value)
    assert "'mine'" in str(caught.value)


@pytest.mark.parametrize(
    "error", [TypeError("one\ntwo"), UsageError("one two"), SystemExit("one two")]
)
def test_what_a_probe_raises_is_told_in_a_line(error: BaseException) -> None:
    with pytest.raises(ProbeFailed) as caught:
        measured(Mine(raising(error)), PLAN, BENCH, 0)
    (line,) = str(caught.value).splitlines()
    assert f"raised {type(error).__name__}: one two, at {__file__}, line" in line


def test_what_a_probe_says_on_purpose_stays() -> None:
    with pytest.raises(ProbeUnavailable, match=r"^no counters here$"):
        measured(Mine(raising(ProbeUnavailable("no counters here"))), PLAN, BENCH, 0)
    with pytest.raises(KeyboardInterrupt):
        measured(Mine(raising(KeyboardInterrupt())), PLAN, BENCH, 0)


def test_readings_survive_an_environment_that_cannot_be_kept() -> None:
    odd = {"load": 1.0, "nan": float("nan"), "thing": object(), "keys": {1: 2}}
    given = Observation(read(1, 2).samples, environment=odd, overhead=float("inf"))
    found = measured(Mine(lambda: given), PLAN, BENCH, 0)
    assert found.samples[0].values == (1.0, 2.0)
    assert found.environment == {"load": 1.0}
    assert found.overhead is None


def test_a_wrong_plan_names_its_probe() -> None:
    assert planned(Mine(lambda: None), TARGET) == [PLAN]
    with pytest.raises(ConfigError, match=r"probe 'mine' cannot plan: ZeroDivisionError: x, at"):
        planned(Mine(raising(ZeroDivisionError("x"))), TARGET)
    for cell in (
        Cell("bogus", BASELINE),
        Cell("step_time", "elsewhere"),
        Cell("stage_time", BASELINE, "no such stage"),
    ):
        wrong = Plan("mine", {}, ARMS, (Measurement(cell),), Price(run_s=1.0))
        with pytest.raises(ConfigError, match="probe 'mine' makes a wrong plan"):
            planned(Mine(lambda: None, wrong), TARGET)
