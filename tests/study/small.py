"""Small systems for the tests of the loop: recorded cases, and a rig that answers by formula.

Run as a script it is the victim of a ``kill -9``: see `test_resume.py`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from argus_bed.contrast import planned_readings
from argus_bed.errors import ProbeFailed
from argus_bed.frame import BASELINE, CANDIDATE, Cell, Condition, Frame
from argus_bed.hypothesis import catalogue, select
from argus_bed.ledger import Ledger
from argus_bed.probe import Observation, Plan, Price, Sample
from argus_bed.study.engine import Study
from argus_bed.study.policy import Policy
from argus_bed.study.replay import study_of
from argus_bed.workload.recorded import Case, RecordedSystem, load_case

CASES = Path(__file__).parents[1] / "cases"
LOCK, NOTHING, CONFOUNDED = (
    "lock-kept-while-waiting",
    "nothing-changed",
    "two-causes-one-symptom",
)


def case(name: str) -> Case:
    return load_case(CASES / f"{name}.json")


def without(found: Case, *probes: str) -> Case:
    """The same case with fewer ways to measure."""
    return found.model_copy(
        update={"probes": tuple(p for p in found.probes if p.name not in probes)}
    )


def opened(
    found: Case | str,
    ledger: Ledger | Path | None = None,
    *,
    policy: Policy | None = None,
    seed: int = 0,
    max_causes: int = 1,
) -> Study:
    """A study over a case; with a path, on a ledger file."""
    book = Ledger.open(ledger) if isinstance(ledger, Path) else ledger
    chosen = case(found) if isinstance(found, str) else found
    return study_of(chosen, ledger=book, policy=policy, seed=seed, max_causes=max_causes)[0]


Reader = Callable[[int], Mapping[str, list[float]]]


class Rig:
    """A system of two arms that reads whatever its probes' functions return.

    probes : name -> (price, quantities that it reads, seed -> values by
        ``quantity@condition``). A reader may raise `ProbeFailed`.
    """

    question = "Which of the two is it?"
    exact_prices = False

    def __init__(self, **probes: tuple[Price, tuple[str, ...], Reader]) -> None:
        self._probes = probes
        self.executed: list[str] = []
        cells = [
            Cell(q, arm)
            for _, quantities, _ in probes.values()
            for q in quantities
            for arm in (BASELINE, CANDIDATE)
        ]
        arms = (Condition(BASELINE), Condition(CANDIDATE))
        self.frame = Frame("step_time", arms, (), tuple(dict.fromkeys(cells)))

    def plans(self, known: Mapping[Cell, Sample], done: Iterable[str]) -> list[Plan]:
        """Like a live system it offers a probe again, unless its plan was spoilt."""
        spoilt = {d for d in done if d.endswith(")")}
        return [p for name in self._probes if (p := self._plan(name)).key not in spoilt]

    def _plan(self, name: str) -> Plan:
        price, quantities, _ = self._probes[name]
        here = {Cell(q, arm): 8 for q in quantities for arm in (BASELINE, CANDIDATE)}
        measured = tuple(planned_readings(self.frame, here, {}))
        arms = (BASELINE, CANDIDATE)
        return Plan(name, {"blocks": 8}, arms, measured, price, reads=tuple(here))

    def side_effects(self, plan: Plan) -> tuple[()]:
        return ()

    def describe(self, plan: Plan) -> str:
        return f"what does {plan.probe} read?"

    def signal(self, plan: Plan) -> Mapping[str, str]:
        keys = ["question", "level", "establishes", "leaves_open"]
        keys += ["locality", "objective_check", "disturbance"]
        return dict.fromkeys(keys, plan.probe)

    def execute(self, plan: Plan, seed: int) -> Observation:
        self.executed.append(plan.probe)
        read = self._probes[plan.probe][2](seed)
        samples = []
        for label, values in read.items():
            quantity, condition = label.split("@")
            samples.append(Sample(Cell(quantity, condition), tuple(values), paired=True))
        return Observation(tuple(samples), {}, 0.0, plan.price.seconds)

    def close(self) -> None:
        """Nothing is held open."""


def study_on(
    rig: Rig,
    *mechanisms: str,
    ledger: Ledger | None = None,
    policy: Policy | None = None,
    seed: int = 0,
) -> Study:
    """A study over a rig with the library's mechanisms of these names."""
    return Study(
        "rig",
        rig,
        select(mechanisms or ("gil_held", "gc_pause"), catalogue()),
        ledger or Ledger.open("sqlite://"),
        policy=policy or Policy(),
        seed=seed,
    )


def breaks(_: int) -> Mapping[str, list[float]]:
    raise ProbeFailed("the instrument fell off")


class Hanging(RecordedSystem):
    """A recorded case whose second measurement never comes back."""

    def execute(self, plan: Plan, seed: int) -> Observation:
        if self.asked:
            print("hanging", flush=True)
            time.sleep(600)
        self.asked = True
        return super().execute(plan, seed)

    asked = False


if __name__ == "__main__":
    study = opened(CONFOUNDED, Path(sys.argv[1]))
    study.system = Hanging(case(CONFOUNDED))
    study.run()
