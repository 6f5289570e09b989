"""The bench that probes run a workload on: interleaved blocks in warm processes.

Order of a run with conditions A and B: A B B A B A A B ..., each round of two blocks the
mirror of the one before, the first of every pair drawn by the seed. A drift that is
linear over four blocks cancels in the contrast.
"""

from __future__ import annotations

import math
import pickle
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from argus_bed.errors import UnknownName, UsageError
from argus_bed.execution.environment import environment
from argus_bed.execution.supervisor import Child
from argus_bed.frame import BASELINE, CANDIDATE
from argus_bed.probe import BARE, Instrument, Target
from argus_bed.workload.model import Workload

Readings = dict[str, dict[tuple[str, str | None], list[float]]]

BLOCK_S = 0.1
"""Length of a block (assumption): long against a time slice, short against drift."""
MAX_STEPS = 10_000
MAX_WARM = 8
"""Processes kept warm; the one unused for longest goes first."""
USER_FILES = "argus_bed_user_"
"""Prefix of modules that `discovery.load_file` made from files in a user's folder."""


def rounds(conditions: Sequence[str], count: int, seed: int) -> Iterator[tuple[str, ...]]:
    """``count`` orders of the conditions, counterbalanced in pairs: an order, its mirror."""
    draw = random.Random(seed)
    order: list[str] = []
    for i in range(count):
        if i % 2 == 0:
            order = draw.sample(list(conditions), len(conditions))
        else:
            order.reverse()
        yield tuple(order)


class LocalBench:
    """Implements `argus_bed.probe.Bench` with processes on this machine.

    Use as a context manager, or call `close`; no process outlives it either way.
    """

    def __init__(self, workload: Workload, environment: Mapping[str, str] | None = None) -> None:
        self.workload = workload
        self._environment = dict(environment or {})
        self._warm: dict[str, Child] = {}
        self._names = [c.name for c in workload.frame().conditions]

    def __enter__(self) -> LocalBench:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every process."""
        while self._warm:
            _, child = self._warm.popitem()
            child.close()

    def child(self, condition: str) -> Child:
        """The warm process that holds ``condition``; started if need be.

        Raises
        ------
        UnknownName, WorkloadFailed
        """
        if condition not in self._names:
            raise UnknownName("condition", condition, self._names)
        held = self._warm.pop(condition, None)
        if held is None or not held.alive:
            if held is not None:
                held.close()
            while len(self._warm) >= MAX_WARM:
                self._warm.pop(next(iter(self._warm))).close()
            held = Child(self.workload, condition, self._environment)
        self._warm[condition] = held  # last used, last to go
        return held

    def target(self) -> Target:
        """What probes may know when they plan. Starts both arms and times their warm-up."""
        arms = [self.child(arm) for arm in (BASELINE, CANDIDATE)]
        times = [a.step_s for a in arms if a.step_s]
        loaded = frozenset.union(*(a.loaded for a in arms))
        return Target(
            frame=self.workload.frame(),
            step_s=max(times, default=BLOCK_S),
            operations=tuple(self.workload.operations),
            capabilities=loaded,
            risks=self.workload.risks(),
            reports=tuple(self.workload.reports),
            claims=tuple(c.operation for c in self.workload.claims),
            sweeps=tuple(c.sweep for c in self.workload.checks),
        )

    def environment(self) -> dict[str, Any]:
        """Load, clocks, temperature, versions: what a run is logged with."""
        return environment()

    # -- what a probe calls -------------------------------------------------------------

    def interleave(
        self,
        conditions: Sequence[str],
        *,
        blocks: int,
        steps: int = 0,
        instrument: Instrument | None = None,
        seed: int = 0,
        bare: bool = False,
    ) -> Readings:
        """See `argus_bed.probe.Bench.interleave`. One unrecorded block each comes first."""
        if blocks < 1 or steps < 0 or len(set(conditions)) != len(conditions) or not conditions:
            raise UsageError(
                f"interleave: conditions={list(conditions)}, blocks={blocks}, steps={steps}; at "
                "least one block of distinct conditions"
            )
        children = {name: self.child(name) for name in conditions}
        shipped = _ship(instrument)
        steps = steps or self.workload.steps or max(_steps(c) for c in children.values())
        taken: Readings = {name: {} for name in conditions}
        for child in children.values():
            self._block(child, steps, shipped)
        coin = random.Random(seed ^ 0x5EED)
        for order in rounds(conditions, blocks, seed):
            for name in order:
                kinds = [True, False] if bare and instrument is not None else [True]
                coin.shuffle(kinds)
                for instrumented in kinds:
                    found = self._block(children[name], steps, shipped if instrumented else _NONE)
                    if instrumented:
                        for quantity, stage, value in found:
                            taken[name].setdefault((quantity, stage), []).append(value)
                    else:
                        time = next(v for q, s, v in found if (q, s) == ("step_time", None))
                        taken[name].setdefault(BARE, []).append(time)
        return taken

    def _block(
        self, child: Child, steps: int, shipped: Mapping[str, Any]
    ) -> list[tuple[str, str | None, float]]:
        doing = f"a block of {steps} steps"
        found = child.request("block", doing, steps=steps, **shipped)
        if self.workload.metric == "throughput":
            time = next(v for q, s, v in found if (q, s) == ("step_time", None))
            if not any((q, s) == ("throughput", None) for q, s, _ in found):
                found.append(("throughput", None, self.workload.items / time))
        return [(q, s, v) for q, s, v in found]

    def call(
        self, condition: str, function: str, *, limit_s: float | None = None, **arguments: Any
    ) -> Any:
        """See `argus_bed.probe.Bench.call`. Returns plain data: numbers, texts, lists, dicts."""
        child = self.child(condition)
        files = _files(function.partition(":")[0])
        pickled = pickle.dumps(arguments)
        return child.request(
            "call", function, limit_s, function=function, arguments=pickled, files=files
        )


_NONE: dict[str, Any] = {"instrument": None}


def _ship(instrument: Instrument | None) -> dict[str, Any]:
    if instrument is None:
        return _NONE
    return {"instrument": pickle.dumps(instrument), "files": _files(type(instrument).__module__)}


def _files(module: str) -> dict[str, str]:
    """Where the child finds a module that was loaded from a user's folder."""
    found = sys.modules.get(module)
    if not module.startswith(USER_FILES) or found is None or not found.__file__:
        return {}
    return {module: found.__file__}


def _steps(child: Child) -> int:
    step_s = child.step_s or BLOCK_S
    return min(max(math.ceil(BLOCK_S / step_s), 1), MAX_STEPS)
