"""What this machine can measure (`examine`), and whether a study fits together (`check_study`)."""

from __future__ import annotations

import os
import platform
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argus_bed.errors import ArgusBedError
from argus_bed.hypothesis import NO_EFFECT, NONE_OF_THESE, Hypothesis, select
from argus_bed.hypothesis import catalogue as hypotheses_in
from argus_bed.probe import Probe
from argus_bed.probe import catalogue as probes_in

if TYPE_CHECKING:
    from argus_bed.config import Config
    from argus_bed.study.engine import Study

LIBRARIES = ("torch", "pymc", "pytensor", "nutpie", "arviz", "botorch", "sqlalchemy")
PROBE_TEXTS = ("question", "establishes", "leaves_open", "locality", "objective_check")
SPECIAL = (NO_EFFECT, NONE_OF_THESE)
HYPOTHESIS_TEXTS = ("claim", "signature", "decisive_probe", "intervention", "sources")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. ``ok`` None: neither needed nor there.

    adds : what it adds where it is there, or would add.
    exit_code : of the command, if this is what it stops at.
    """

    what: str
    ok: bool | None
    says: str
    adds: str = ""
    exit_code: int = 0


# -- the machine ------------------------------------------------------------------


def examine(ledger: str | Path) -> list[Finding]:
    """Everything that decides what can be measured here."""
    from argus_bed.execution.devices import instruments

    cores = os.cpu_count() or 1
    system = f"{platform.system()} {platform.release()}, {cores} cores, Python"
    found = [
        Finding("system", True, f"{system} {platform.python_version()}"),
        Finding("libraries", True, ", ".join(_version(name) for name in LIBRARIES)),
        storage(ledger),
    ]
    return found + [Finding(i.name, i.available, i.found, i.adds) for i in instruments()]


def _version(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"{name} missing"


def storage(ledger: str | Path) -> Finding:
    """Whether the ledger's folder takes a file. A database address is not dialled."""
    adds = "studies that survive a restart"
    if isinstance(ledger, str):
        return Finding("storage", None, f"{ledger.partition('://')[0]} database", adds)
    folder = ledger.absolute().parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            return Finding("storage", True, f"{folder} can be written to", adds)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        return Finding("storage", False, f"{folder}: {reason}", adds, exit_code=5)


# -- a study -----------------------------------------------------------------------


def check_study(settings: Config) -> list[Finding]:
    """Whether models, probes, units and the workload fit together.

    Runs the workload's warm-up and builds every model, and writes nothing to the ledger.
    """
    found = [Finding("settings", True, str(settings.file or "defaults, no file"))]
    found.append(storage(settings.ledger))
    for what, look in (
        ("hypotheses", _hypotheses),
        ("probes", _probes),
        ("workload", _together),
    ):
        found += _looked(what, look, settings)
    return found


def _looked(what: str, look: Callable[[Config], list[Finding]], settings: Config) -> list[Finding]:
    try:
        return look(settings)
    except ArgusBedError as error:
        return [Finding(what, False, str(error), exit_code=error.exit_code)]


def _hypotheses(settings: Config) -> list[Finding]:
    known = hypotheses_in(settings.folders)
    names = settings.study.hypotheses
    if names is not None:
        select(names, known, settings.study.max_causes)
    mine = {n: h for n, h in known.items() if names is None or n in names}
    blank = blanks({n: h for n, h in mine.items() if n not in SPECIAL}, HYPOTHESIS_TEXTS)
    says = f"{len(mine)} of {len(known)} known"
    return [Finding("hypotheses", True, says), *_blank("hypotheses", blank)]


def _probes(settings: Config) -> list[Finding]:
    from argus_bed.errors import UnknownName

    known = probes_in(settings.folders)
    names = settings.study.probes
    for name in names or ():
        if name not in known:
            raise UnknownName("probe", name, known)
    chosen = {n: p for n, p in known.items() if names is None or n in names}
    says = f"{len(chosen)} of {len(known)} known"
    return [Finding("probes", True, says), *_blank("probes", blanks(chosen, PROBE_TEXTS))]


def blanks(known: dict[str, Hypothesis] | dict[str, Probe], texts: tuple[str, ...]) -> list[str]:
    """``name.text`` for every text that is missing or empty."""
    return [
        f"{name}.{text}"
        for name, thing in known.items()
        for text in texts
        if not getattr(thing, text, "")
    ]


def _blank(what: str, names: list[str]) -> list[Finding]:
    if not names:
        return []
    return [Finding(f"{what}: texts", False, f"blank: {', '.join(names)}", exit_code=2)]


def _together(settings: Config) -> list[Finding]:
    from argus_bed.study import open_study

    with open_study(
        f"check-{settings.study.name}",
        workload=settings.needed_workload,
        ledger="sqlite://",
        hypotheses=settings.study.hypotheses,
        probes=settings.study.probes,
        policy=settings.policy,
        seed=settings.study.seed,
        max_causes=settings.study.max_causes,
        folders=settings.folders,
    ) as study:
        return [*_workload(study), *_plans(study)]


def _workload(study: Study) -> list[Finding]:
    frame = study.frame
    stages = ", ".join(s.name for s in frame.stages) or "none (mark some with stage())"
    derived = ", ".join(c.name for c in frame.conditions[2:]) or "none (a knob tells more)"
    return [
        Finding("question", True, f"{study.system.question} ({frame.metric})"),
        Finding("stages", bool(frame.stages) or None, stages),
        Finding("knobs", bool(frame.conditions[2:]) or None, derived),
        Finding("models", True, f"{len(study.hypotheses)} built on {len(frame.cells)} cells"),
    ]


def _plans(study: Study) -> list[Finding]:
    plans: list[Any] = list(study.system.plans({}, ()))
    counted = Counter(plan.probe for plan in plans)
    says = ", ".join(f"{name} ({n})" if n > 1 else name for name, n in sorted(counted.items()))
    if not plans:
        nothing = "no probe applies to this workload"
        return [Finding("measurements", False, nothing, exit_code=2)]
    return [Finding("measurements", True, says)]
