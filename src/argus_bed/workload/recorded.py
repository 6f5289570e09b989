"""A recorded case: a public performance question cut into priced measurements.

The case plays the system. Asking for a probe pays its price and shows its outcomes;
nothing else of the file is looked at but what a replay may know: declared
interventions, stages, side effects, kinds and prices of probes. Names are labels.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from argus_bed.contrast import planned_readings
from argus_bed.errors import FileRejected, UnknownName, UsageError
from argus_bed.frame import BASELINE, CANDIDATE, Cell, Condition, Frame, Stage, StageKind
from argus_bed.probe import Observation, Plan, Price, Sample, SideEffect
from argus_bed.quantity import convert

SCHEMA = "argus-bed/case/1"
MAX_BYTES = 16 * 2**20

# Probability of a circumstance that a side effect names in words, by its kind.
CIRCUMSTANCE = {
    "inflates_host": 0.3,
    "removes_overlap": 0.5,
    "flushes_cache": 0.8,
    "locks_clocks": 0.8,
    "serializes": 0.8,
    "other": 0.3,
}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class OutcomeSpec(_Strict):
    """Readings of one quantity in one condition."""

    condition: str
    quantity: str
    stage: str | None = None
    unit: str
    values: tuple[float, ...] = Field(min_length=1, max_length=24)


class SideEffectSpec(_Strict):
    """What an instrument of this kind does beside reading."""

    kind: str
    when: str = ""
    voids: tuple[str, ...] = ()


class ProbeSpec(_Strict):
    """A priced measurement and what it read."""

    name: str
    kind: str
    cost_s: float = Field(ge=0)
    perturbation: float = Field(ge=0)
    needs: tuple[str, ...] = ()
    side_effects: tuple[SideEffectSpec, ...] = ()
    basis: Literal["recorded", "derived"]
    outcomes: tuple[OutcomeSpec, ...] = Field(min_length=1)
    note: str = ""


class InterventionSpec(_Strict):
    """What turning one knob means, declared before any outcome."""

    of: str
    removes: tuple[str, ...]
    adds: tuple[str, ...]
    knob: str
    value: str
    system: str | None = None


class StageSpec(_Strict):
    """A part of the step."""

    kind: StageKind
    changed: bool | None
    what: str = ""


class MetricSpec(_Strict):
    """The quantity in which the question is asked."""

    quantity: str
    unit: str


class VerdictSpec(_Strict):
    """The recorded answer; for scoring only."""

    status: Literal["decided", "no_effect", "undetermined"]
    causes: tuple[str, ...]
    why: str = ""


class Case(_Strict):
    """A case file as it stands on disk."""

    schema_: Literal["argus-bed/case/1"] = Field(alias="schema")
    name: str
    question: str
    source: str = ""
    established: Literal["intervention", "asserted", "open"]
    metric: MetricSpec
    conditions: Mapping[str, str]
    interventions: Mapping[str, InterventionSpec]
    stages: Mapping[str, StageSpec]
    hypotheses: tuple[str, ...]
    probes: tuple[ProbeSpec, ...] = Field(min_length=1)
    verdict: VerdictSpec


def load_case(path: str | Path) -> Case:
    """Read a case file.

    Raises
    ------
    FileRejected : missing, too large, not JSON, or not of schema argus-bed/case/1; the
        message names the first field that does not fit.
    """
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise FileRejected(f"{path}: {size} bytes; a case file has at most {MAX_BYTES}")
        raw = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_no_duplicates)
    except OSError as error:
        raise FileRejected(f"{path}: {error.strerror or error}") from error
    except (UnicodeDecodeError, RecursionError, ValueError) as error:
        raise FileRejected(f"{path}: not a JSON case file ({error})") from error
    try:
        return Case.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the top level"
        raise FileRejected(
            f"{path}: not a case of schema {SCHEMA}: {where}: {first['msg']}"
        ) from error


def _check_probes(case: Case) -> None:
    """Raise unless every probe's name, needs, quantities, units and values can be meant."""
    names = [p.name for p in case.probes]
    for spec in case.probes:
        if names.count(spec.name) > 1:
            raise FileRejected(f"probe {spec.name!r} stands twice")
        for need in spec.needs:
            if need not in names:
                raise UnknownName(f"probe that {spec.name!r} needs:", need, names)
        for outcome in spec.outcomes:
            for value in outcome.values:
                convert(value, outcome.unit, outcome.quantity)


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"key {key!r} stands twice in one object")
        found[key] = value
    return found


class RecordedSystem:
    """Plays a case: plans its probes, and shows the outcomes of those paid for."""

    exact_prices = True

    def __init__(self, case: Case) -> None:
        self.case = case
        self.question = case.question
        try:
            _check_probes(case)
        except UsageError as error:
            raise FileRejected(f"case {case.name!r}: {error}") from error
        self._probes = {p.name: p for p in case.probes}
        self.frame = _frame(case)

    def plans(self, known: Mapping[Cell, Sample], done: Iterable[str]) -> list[Plan]:
        """Probes that have not been paid for and whose needs are met."""
        finished = set(done)
        return [
            self._plan(spec, known)
            for spec in self.case.probes
            if spec.name not in finished and set(spec.needs) <= finished
        ]

    def side_effects(self, plan: Plan) -> tuple[SideEffect, ...]:
        return tuple(
            SideEffect(e.kind, e.when, CIRCUMSTANCE.get(e.kind, 0.3), frozenset(e.voids))
            for e in self._probes[plan.probe].side_effects
        )

    def describe(self, plan: Plan) -> str:
        return self._probes[plan.probe].kind.replace("_", " ")

    def signal(self, plan: Plan) -> Mapping[str, str]:
        spec = self._probes[plan.probe]
        read = ", ".join(sorted({o.quantity.replace("_", " ") for o in spec.outcomes}))
        return {
            "question": self.describe(plan),
            "establishes": f"the report's {read}",
            "leaves_open": "whatever the report did not measure: nothing was run here",
            "level": "log",
            "locality": ", ".join(sorted({o.stage or "step" for o in spec.outcomes})),
            "objective_check": "the source that the case names",
            "disturbance": f"x{1 + spec.perturbation:g} while it is on",
        }

    def execute(self, plan: Plan, seed: int) -> Observation:
        spec = self._probes[plan.probe]
        paired = spec.kind == "end_to_end"
        samples = tuple(
            Sample(_cell(o), tuple(convert(v, o.unit, o.quantity) for v in o.values), paired)
            for o in spec.outcomes
        )
        return Observation(samples, {"recorded": True, "basis": spec.basis}, 0.0, spec.cost_s)

    def close(self) -> None:
        """Nothing is held open."""

    def _plan(self, spec: ProbeSpec, known: Mapping[Cell, Sample]) -> Plan:
        here = {_cell(o): len(o.values) for o in spec.outcomes}
        return Plan(
            probe=spec.name,
            settings={},
            conditions=tuple(dict.fromkeys(o.condition for o in spec.outcomes)),
            measurements=tuple(planned_readings(self.frame, here, known)),
            price=Price(0.0, spec.cost_s, min(spec.perturbation, 3.0), "case file"),
            needs=spec.needs,
            reads=tuple(here),
            kind=spec.kind,
        )


def _cell(outcome: OutcomeSpec) -> Cell:
    return Cell(outcome.quantity, outcome.condition, outcome.stage)


def _frame(case: Case) -> Frame:
    for arm in (BASELINE, CANDIDATE):
        if arm not in case.conditions:
            raise FileRejected(f"case {case.name!r}: no condition {arm!r}")
    conditions = [Condition(BASELINE), Condition(CANDIDATE)]
    waiting = [n for n in case.conditions if n not in (BASELINE, CANDIDATE)]
    placed = {BASELINE, CANDIDATE}
    while waiting:
        ready = [
            n for n in waiting if n in case.interventions and case.interventions[n].of in placed
        ]
        if not ready:
            raise FileRejected(
                f"case {case.name!r}: condition {waiting[0]!r} has no intervention that leads "
                "back to an arm"
            )
        for name in ready:
            spec = case.interventions[name]
            conditions.append(
                Condition(
                    name,
                    spec.of,
                    spec.knob,
                    spec.value,
                    frozenset(spec.removes),
                    frozenset(spec.adds),
                    spec.system,
                )
            )
            placed.add(name)
        waiting = [n for n in waiting if n not in placed]
    cells = tuple(dict.fromkeys(_cell(o) for p in case.probes for o in p.outcomes))
    try:
        return Frame(
            case.metric.quantity,
            tuple(conditions),
            tuple(Stage(n, s.kind, s.changed, s.what) for n, s in case.stages.items()),
            cells,
        )
    except UnknownName as error:
        raise FileRejected(f"case {case.name!r}: {error}") from error
