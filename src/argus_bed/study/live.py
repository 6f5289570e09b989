"""A workload that runs on this machine, as a system that a study can ask."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

from argus_bed.errors import ConfigError, ProbeUnavailable
from argus_bed.execution import LocalBench
from argus_bed.execution.vetting import announced, measured, planned
from argus_bed.frame import Cell, Frame
from argus_bed.probe import Observation, Plan, Probe, Sample, SideEffect
from argus_bed.study.system import System
from argus_bed.workload import Workload


class LiveSystem(System):
    """Warm child processes of one workload, and the probes that apply to it.

    The plans are made once: a plan depends on what the workload and the machine offer and
    never on an outcome. Use `close`, or let the study do it; no process outlives it.

    Raises
    ------
    WorkloadFailed : an arm does not start or does not survive its warm-up.
    ConfigError : no probe applies to the workload.
    """

    exact_prices = False

    def __init__(self, workload: Workload, probes: Mapping[str, Probe]) -> None:
        self.workload = workload
        self.question = workload.question
        self.probes = dict(probes)
        self._bench = LocalBench(workload)
        try:
            self.target = self._bench.target()
            self._plans = [
                plan for _, p in sorted(probes.items()) for plan in planned(p, self.target)
            ]
        except BaseException:
            self._bench.close()
            raise
        if not self._plans:
            self._bench.close()
            raise ConfigError(f"no probe of {sorted(probes)} applies to workload {workload.name!r}")
        self.frame: Frame = workload.frame().with_cells(
            cell for plan in self._plans for cell in announced(plan)
        )

    def plans(self, known: Mapping[Cell, Sample], done: Iterable[str]) -> list[Plan]:
        """Every plan that was not spoilt; one may be run again if that still tells something."""
        spoilt = set(done) - set(self.probes)
        return [p for p in self._plans if p.key not in spoilt]

    def side_effects(self, plan: Plan) -> tuple[SideEffect, ...]:
        return tuple(self.probes[plan.probe].side_effects)

    def describe(self, plan: Plan) -> str:
        return self.probes[plan.probe].question

    def signal(self, plan: Plan) -> Mapping[str, str]:
        probe = self.probes[plan.probe]
        return {
            "question": probe.question,
            "level": probe.level,
            "establishes": probe.establishes,
            "leaves_open": probe.leaves_open,
            "locality": probe.locality,
            "objective_check": probe.objective_check,
            "disturbance": f"{plan.price.perturbation:.1%} while it is on ({plan.price.source})",
        }

    def execute(self, plan: Plan, seed: int) -> Observation:
        """Run the plan's probe. Raises `ProbeError` if nothing usable came of it."""
        probe = self.probes.get(plan.probe)
        if probe is None:
            raise ProbeUnavailable(f"probe {plan.probe!r} is not among {sorted(self.probes)}")
        wall, started = time.time(), time.monotonic()
        observation = measured(probe, plan, self._bench, seed)
        return replace(
            observation,
            started_at=wall,
            seconds=time.monotonic() - started,
            environment={**self._bench.environment(), **observation.environment},
        )

    def close(self) -> None:
        self._bench.close()
