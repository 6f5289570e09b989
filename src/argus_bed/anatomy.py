"""The shared model of one step, on which every mechanism is written.

A `Frame` says what a study can talk about: two arms, the conditions derived from
them, the stages of a step, and the cells (quantity x stage x condition) that some
probe can read. An `Anatomy` is the generative model over those cells. It holds the
latents that all hypotheses share; a mechanism then says which part it changes.

The step time of condition ``c`` relative to the baseline is

    T[c] / T[baseline] = 1 - kappa * share * (1 - exp(local[c])) + sum_m extra_m * active_m[c]

``share``  part of the baseline step that the candidate changes on purpose,
``local``  log ratio of that part's own time, candidate over baseline,
``kappa``  how far that part lies on the critical path (1: a second saved there is a
           second saved; 0: something else hides it). This is Amdahl's law with a
           criticality, the quantity that causal profiling estimates by delays
           (Curtsinger and Berger, SOSP 2015).
``extra``  time that a mechanism takes in one arm and not in the other, as a share of the
           baseline step,
``active`` whether the mechanism is at work in a condition: it is in one arm, and an
           intervention that removes it leaves a small rest.

An intervention that removes a mechanism also takes away what both arms had of it (other
collections, other copies): its effect may be larger than the difference of the arms.

Cells hold link-space values (`quantity.Link`). Cells of log-linked quantities are
relative to the baseline: their level is common to every hypothesis and cancels in a
contrast, so no prior on absolute levels is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from argus_bed.errors import ValueRejected
from argus_bed.frame import (
    BASELINE,
    CANDIDATE,
    Cell,
    Frame,
    StageKind,
    is_metric,
    responds,
)
from argus_bed.quantity import TENTH, Family, Link, quantity

# Priors of the anatomy. Each is (value, source); "assumption" marks what nobody measured.
SHARE_PRIOR = (1.0, 3.0)  # Beta; assumption: most changed parts are a minor part of the step
SETTING_FREEDOM = 0.7  # sd of the log size of an effect under another setting; assumption
SIZE_SPREAD = 0.6  # sd of the log size of a mark; assumption: within a factor of 1.8, mostly
REST_PRIOR = (1.0, 12.0)  # Beta; assumption: "removes" is a strong belief and not a zero
COMMON_PRIOR = (1.0, 9.0)  # Beta; assumption: both arms have about a tenth of the step of it
MECHANISM_IN_CANDIDATE = 0.8  # assumption: people change the candidate and ask about it
HIDDEN_PRIOR = (0.4, 6.0)  # Beta of the criticality of a hidden part; assumption: near 0
LOST_IN_A_STAGE = 2.0  # a stage that takes the lost time is half the step; assumption
TOGETHER = 0.5  # probability that two causes only work together; assumption
NAME_CHANGE_LOG_ODDS = -2.0  # assumption: one change in eight renames kernels by the way
BELOW_PEAK = 0.7  # HalfNormal sd of -log(rate / peak); assumption: half of peak is ordinary
ON_PROCESSOR = {"busy": (1.0, 0.3), "waiting": (0.1, 0.2), "either": (0.5, 0.5)}
"""How a longer step shows in processor time: (share of it, sd of that); assumption."""
LOCK_KEPT = 0.5  # part of busy time that other threads may have to wait for; assumption
ACCRUES = ("involuntary_switches",)  # counts that grow with the time that a step takes
Spent = Literal["busy", "waiting", "either"]
ANY: tuple[bool | None, ...] = (True, False, None)
LOCAL_SPREAD = {"faster": (-0.6, 0.6), "same": (0.0, 0.0), "unknown": (0.0, 0.4)}
"""Centre and scale of the log ratio of the changed part, by what the change was meant to do."""
LOCAL_DOF = 4.0  # of its Student-t: most changes are small, a few are tenfold; assumption


@dataclass
class Anatomy:
    """The step model under construction, inside a PyMC model context.

    A mechanism receives it and calls its verbs. Sizes are PyMC variables or numbers.
    Tensors have one entry per condition (``conditions``) or per cell (``cells``).
    """

    frame: Frame
    scope: str = ""
    _extra: Any = 0.0
    _shift: Any = 0.0
    _free2: Any = 1e-12
    kappa: Any = 1.0
    local: Any = None
    _active: dict[str, Any] = field(default_factory=dict)
    _common: dict[str, Any] = field(default_factory=dict)
    _parts: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        import pymc as pm
        import pytensor.tensor as pt

        self._pm, self._pt = pm, pt
        frame = self.frame
        self._condition_of_cell = np.array(
            [frame.condition_index[c.condition] for c in frame.cells], dtype=int
        )
        self._share: Any = None

    # -- latents -----------------------------------------------------------------

    def name(self, label: str) -> str:
        """A variable's name, kept apart by mechanism in a composite."""
        return f"{self.scope}_{label}" if self.scope else label

    def positive(self, label: str, median: float, spread: float) -> Any:
        """A LogNormal latent by its median and the sd of its logarithm."""
        return self._pm.LogNormal(self.name(label), np.log(median), spread)

    def fraction(self, label: str, median: float, spread: float) -> Any:
        """A latent between 0 and 1 by its median and the sd of its log odds."""
        centre = np.log(median / (1.0 - median))
        log_odds = self._pm.Normal(self.name(f"{label}_log_odds"), centre, spread)
        return self._pt.sigmoid(log_odds)

    def sometimes(self, label: str, probability: float) -> Any:
        """1 with ``probability``, else 0: for what a mechanism may do and need not."""
        drawn = self._pm.Uniform(self.name(label), 0.0, 1.0)
        return self._pt.switch(self._pt.lt(drawn, probability), 1.0, 0.0)

    def no_local_change(self) -> None:
        """The candidate's part takes as long as the baseline's."""
        self.local = 0.0

    def hidden(self) -> None:
        """The changed part is hidden behind something longer, where active; a part that is
        merely small is covered by its share.
        """
        kappa = self._pm.Beta(self.name("kappa"), *HIDDEN_PRIOR)
        self.kappa = 1.0 - (1.0 - kappa) * self._removal()

    def _removal(self) -> Any:
        """What is left of the mechanism in scope in each condition, whichever arm it is in."""
        rest = {
            c.name: REST_PRIOR[0] / sum(REST_PRIOR) if self.scope in c.removes else 1.0
            for c in self.frame.conditions
        }
        return np.array([rest[c.name] for c in self.frame.conditions])

    def log1p(self, value: Any) -> Any:
        """log(1 + value), for sizes that act on a rate."""
        return self._pt.log1p(value)

    def active(self) -> Any:
        """Where the mechanism in scope is at work: a tensor over conditions, 0 to about 1."""
        if self.scope in self._active:
            return self._active[self.scope]
        pm, pt = self._pm, self._pt
        if self.frame.intent == "unknown":
            side = pm.Uniform(self.name("side"), 0.0, 1.0)
            in_candidate = pt.switch(pt.lt(side, MECHANISM_IN_CANDIDATE), 1.0, 0.0)
        else:
            in_candidate = pt.as_tensor_variable(1.0)
        values: dict[str, Any] = {BASELINE: 1.0 - in_candidate, CANDIDATE: in_candidate}
        removed: dict[str, Any] = {BASELINE: 0.0, CANDIDATE: 0.0}
        for condition in self.frame.conditions[2:]:
            parent, gone = values[str(condition.of)], removed[str(condition.of)]
            if self.scope in condition.removes:
                rest = pm.Beta(
                    self.name(f"rest_{self.frame.condition_index[condition.name]}"),
                    *REST_PRIOR,
                )
                parent, gone = parent * rest, 1.0 - rest
            elif self.scope in condition.adds:
                parent = parent + 1.0
            values[condition.name], removed[condition.name] = parent, gone
        self._active[self.scope] = pt.stack([values[c.name] for c in self.frame.conditions])
        self._common[self.scope] = 0.0
        if any(self.scope in c.removes for c in self.frame.conditions):
            common = pm.Beta(self.name("common"), *COMMON_PRIOR)
            gone = pt.stack([pt.as_tensor(removed[c.name]) for c in self.frame.conditions])
            self._common[self.scope] = common * gone
        return self._active[self.scope]

    def _taken(self, extra: Any) -> Any:
        """Time that the mechanism in scope takes in each condition, over what the baseline
        has of it; negative where an intervention takes away what both arms have.
        """
        at_work = extra * self.active()
        return at_work - self._common[self.scope]

    def entangle(self, one: str, other: str) -> None:
        """Let two mechanisms act each by itself, or only where both are at work."""
        pt = self._pt
        together = pt.lt(self._pm.Uniform("together", 0.0, 1.0), TOGETHER)
        scope, self.scope = self.scope, one
        a = self.active()
        self.scope = other
        b = self.active()
        self.scope = scope
        self._active[one] = pt.switch(together, a * b, a)
        self._active[other] = pt.switch(together, a * b, b)

    # -- what a mechanism can do ----------------------------------------------------

    def extends(self, extra: Any, spent: Spent = "either") -> None:
        """The step takes longer by ``extra`` (share of the baseline step) where active.

        ``spent`` says how the program's threads spend that time: ``busy`` on a processor,
        ``waiting`` off it, or ``either``, where it depends on what is at work. Processor
        time follows, and a busy interpreter may keep its lock meanwhile.
        """
        taken = self._taken(extra)
        self._extra = self._extra + taken
        self._parts[self.scope] = self._parts.get(self.scope, 0.0) + taken[1] - taken[0]
        longer = self._pt.log1p(self._pt.clip(taken, -0.9, np.inf))
        part, spread = ON_PROCESSOR[spent]
        self._add(self._mask("cpu_time", None, ANY), self._by_cell(part * longer), spread / part)
        if spent == "busy":
            self._open("gil_wait", LOCK_KEPT * taken / TENTH)
            self._open("progress_rate", LOCK_KEPT * longer)

    def carries(self, name: str, extra: Any, fidelity: float = 0.8, *, spread: float = 0.3) -> None:
        """The lost-time quantity ``name`` holds about ``fidelity`` of the ``extra`` time.

        ``spread`` is the relative sd of that part: the reading may see more or less of it.
        """
        quantity(name)
        mask = self._mask(name, None, ANY)
        if mask.any():
            total = self._pt.clip(1.0 + self._extra, 1e-3, np.inf)
            share = fidelity * self._taken(extra) / total / TENTH
            self._add(mask, self._by_cell(share), spread)

    def moves(
        self,
        name: str,
        by: Any,
        *,
        spread: float = SIZE_SPREAD,
        kinds: Sequence[StageKind] | None = None,
        changed: Sequence[bool | None] = ANY,
    ) -> None:
        """Shift ``name`` by about ``by`` in link space where active.

        ``spread`` is the relative sd of the shift, which belongs to the reading and not to
        the mechanism. Only cells of the step as a whole and of stages with a matching
        ``kind`` and ``changed`` are shifted.
        """
        quantity(name)
        if isinstance(by, int | float) and not np.isfinite(by):
            raise ValueRejected(f"moves({name!r}, {by}): a size must be a finite number")
        mask = self._mask(name, kinds, changed)
        if mask.any():
            where = self.active()
            if quantity(name).link is Link.BINARY:  # "changed" is said of both arms
                where = self._pt.abs(where - where[0])
            self._add(mask, by * self._by_cell(where), spread)

    def _by_cell(self, by_condition: Any) -> Any:
        return by_condition[self._condition_of_cell]

    def _open(self, name: str, spread: Any) -> None:
        """Leave ``name`` open by ``spread`` (sd, link space, by condition)."""
        mask = self._mask(name, None, ANY)
        self._free2 = self._free2 + mask * self._by_cell(spread) ** 2

    def _add(self, mask: Any, size: Any, spread: float) -> None:
        self._shift = self._shift + mask * size
        self._free2 = self._free2 + mask * (spread * size) ** 2

    def leaves_open(self, spread: Any, names: Sequence[str] | None = None) -> None:
        """Add ``spread`` (sd, link space) to what is said about the cells of ``names`` (all)."""
        mask = np.array(
            [names is None or c.quantity in names for c in self.frame.cells], dtype=float
        )
        self._free2 = self._free2 + mask * spread**2

    @property
    def share(self) -> Any:
        """Part of the baseline step that the candidate changes on purpose."""
        if self._share is None:
            self._share = self._pm.Beta("share", *SHARE_PRIOR)
        return self._share

    def _mask(
        self,
        name: str,
        kinds: Sequence[StageKind] | None,
        changed: Sequence[bool | None],
    ) -> np.ndarray[Any, np.dtype[np.float64]]:
        def hit(cell: Cell) -> bool:
            stage = self.frame.stage(cell.stage)
            if cell.quantity != name or not responds(stage):
                return False
            if stage is None:
                return True
            return (kinds is None or stage.kind in kinds) and stage.changed in changed

        return np.array([hit(c) for c in self.frame.cells], dtype=float)

    # -- the cells -------------------------------------------------------------------

    def _derives_from_candidate(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.array(
            [self.frame.root(c.name) == CANDIDATE for c in self.frame.conditions],
            dtype=float,
        )

    def _totals(self) -> Any:
        """The time of a step in each condition, in shares of the baseline step without what
        a mechanism takes there.
        """
        pt = self._pt
        total = pt.ones(len(self.frame.conditions)) + self._extra
        if self._local_matters():
            saved = -self.kappa * self.share * pt.expm1(self.local)
            total = total - saved * self._derives_from_candidate()
        return pt.clip(total, 1e-3, np.inf)

    def step_log_ratio(self) -> Any:
        """log T[c] / T[baseline], one entry per condition."""
        log_total = self._pt.log(self._totals())
        # relative to the baseline's own total: a mechanism may sit in the baseline
        return log_total - log_total[0]

    def _local_matters(self) -> bool:
        return not (isinstance(self.local, float) and self.local == 0.0)

    def finish(self, causes: Sequence[str] = ()) -> None:
        """Register ``cells`` and ``free``, both of shape (cells,), in the PyMC model, and
        ``parts``, of shape (causes,): what the candidate's step has more of each cause than
        the baseline's, in shares of the candidate's step.
        """
        pm, pt = self._pm, self._pt
        frame = self.frame
        if self.local is None:
            mean, sd = LOCAL_SPREAD[frame.intent]
            if sd > 0:
                self.local = pm.StudentT("local", nu=LOCAL_DOF, mu=mean, sigma=sd)
            else:
                self.local = mean
        step = self.step_log_ratio()
        by_cell = self._metric_weights() * self._by_cell(step)
        value = pt.zeros(len(frame.cells)) + self._shift + by_cell
        if self._local_matters():
            value = value + self._local_weights() * self.local
        value = value + self._share_cells() + self._slope_cells() + self._standing_cells()
        # under another setting the size of any effect is free
        free2 = self._free2 + self._setting_cells() * (SETTING_FREEDOM * by_cell) ** 2
        followed = self._following_cells() * self._by_cell(step)
        value, free2 = value + followed, free2 + (SIZE_SPREAD * followed) ** 2
        if self._local_matters():
            worked = self._processor_of_the_part()
            value, free2 = value + worked, free2 + worked**2
        # lost time falls into some stage, and the mechanism does not say into which
        extra = pt.zeros(len(frame.conditions)) + self._extra
        lost = pt.log1p(LOST_IN_A_STAGE * pt.abs(extra))
        free2 = free2 + self._stage_cells() * self._by_cell(lost) ** 2
        if causes:
            parts = [pt.as_tensor(self._parts.get(c, 0.0)) for c in causes]
            pm.Deterministic("parts", pt.stack(parts) / self._totals()[1])
        pm.Deterministic("cells", value)
        pm.Deterministic("free", pt.sqrt(pt.zeros(len(frame.cells)) + free2))

    def _following_cells(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """What lengthens about as the step does: totals over a part of the work (a request,
        its first token), and counts that accrue with time.
        """

        def follows(cell: Cell) -> bool:
            stage = self.frame.stage(cell.stage)
            timed = cell.quantity == "stage_time" and not is_metric(self.frame, cell)
            total = timed and stage is not None and stage.kind == "other"
            return total or cell.quantity in ACCRUES

        return np.array([float(follows(c)) for c in self.frame.cells])

    def _processor_of_the_part(self) -> Any:
        """Processor time that the changed part saves; half of it, or none, or all: the part
        may work on a processor of this program, or elsewhere.
        """
        pt = self._pt
        mask = self._mask("cpu_time", None, ANY)
        if not mask.any():
            return 0.0
        changed = pt.log1p(self.share * pt.expm1(self.local)) * self._derives_from_candidate()
        return mask * ON_PROCESSOR["either"][0] * self._by_cell(changed)

    def _stage_cells(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Times of single stages, where they are not the metric of the question."""
        return np.array(
            [
                float(c.quantity == "stage_time" and not is_metric(self.frame, c))
                for c in self.frame.cells
            ]
        )

    def _setting_cells(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.array(
            [
                float((c := self.frame.condition(cell.condition)).is_setting or bool(c.system))
                for cell in self.frame.cells
            ]
        )

    def _metric_weights(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """How a longer step shows in each cell. A lost overlap is a fall in log odds."""

        def weight(cell: Cell) -> float:
            if not is_metric(self.frame, cell):
                return 0.0
            match quantity(cell.quantity):
                case q if q.name == "throughput":
                    return -1.0
                case q if q.family is Family.DURATION:
                    return 1.0
                case q if q.link is Link.LOGIT:
                    return -10.0  # assumption: a tenth of the step lost is one unit of log odds
                case q if q.name == "bandwidth_ratio":
                    return -1.0
                case _:
                    return 0.0

        return np.array([weight(c) for c in self.frame.cells])

    def _local_weights(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Cells of the changed part by itself: alone, cold, or as a stage."""

        def weight(cell: Cell) -> float:
            if self.frame.root(cell.condition) != CANDIDATE or is_metric(self.frame, cell):
                return 0.0
            stage = self.frame.stage(cell.stage)
            alone = cell.quantity in ("isolated_time", "cold_time")
            if stage is None:
                return 1.0 if alone else 0.0
            timed = alone or cell.quantity == "stage_time"
            return 1.0 if timed and stage.changed and responds(stage) else 0.0

        return np.array([weight(c) for c in self.frame.cells])

    def _share_cells(self) -> Any:
        mask = np.array(
            [
                c.quantity == "stage_share"
                and c.condition == BASELINE
                and bool((s := self.frame.stage(c.stage)) and s.changed)
                for c in self.frame.cells
            ],
            dtype=float,
        )
        return mask * self._pt.log(self.share / (1.0 - self.share)) if mask.any() else 0.0

    def _standing_cells(self) -> Any:
        """Levels of quantities that mean something by themselves, in an honest measurement."""
        flags = self._mask("kernel_name_changed", None, ANY)
        reach = self._mask("bandwidth_ratio", None, ANY)
        value = flags * NAME_CHANGE_LOG_ODDS
        if reach.any():
            value = value - reach * self._pm.HalfNormal("below_peak", BELOW_PEAK)
        return value

    def _slope_cells(self) -> Any:
        mask = np.array(
            [
                c.quantity == "delay_slope" and bool((s := self.frame.stage(c.stage)) and s.changed)
                for c in self.frame.cells
            ],
            dtype=float,
        )
        kappa = self.kappa + self._pt.zeros(len(self.frame.conditions))
        return mask * self._by_cell(kappa) if mask.any() else 0.0
