"""Opens a study: from a workload, the library's names and a ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from argus_bed.errors import ConfigError, UnknownName
from argus_bed.hypothesis import NO_EFFECT, NONE_OF_THESE, select
from argus_bed.hypothesis import catalogue as known_hypotheses
from argus_bed.ledger import Ledger
from argus_bed.probe import Probe
from argus_bed.probe import catalogue as known_probes
from argus_bed.study.engine import Study
from argus_bed.study.live import LiveSystem
from argus_bed.study.policy import Policy
from argus_bed.study.scoring import Target
from argus_bed.workload import Workload, load

DEFAULT_HYPOTHESES = (
    "allocator_stall",
    "cache_eviction",
    "data_starvation",
    "gc_pause",
    "gil_held",
    "hidden_sync",
    "hot_cache_benchmark",
    "launch_bound",
    "layout_copies",
    "off_critical_path",
    "overlap_lost",
    "probe_effect",
    "redundant_work",
    "thread_oversubscription",
)
"""What a study considers unless it is told otherwise: causes whose quantities a machine
without a GPU can read. The other hypotheses of the library are a name away."""

WHERE_TOLD = {"numeric_error": "precision_path", "violations": "order_violation"}
"""Causes that a study considers beside those where the workload lets their quantity be read.
Where it does not, nothing could part them from no effect."""


def open_study(
    name: str = "study",
    *,
    workload: Workload | str | Path,
    ledger: str | Path | Ledger | None = None,
    hypotheses: Sequence[str] | None = None,
    probes: Sequence[str] | None = None,
    policy: Policy | None = None,
    seed: int = 0,
    max_causes: int = 1,
    target: Target = "cause",
    folders: Iterable[str] = (),
) -> Study:
    """Open a study, or go on with it if the ledger holds one of this name.

    Parameters
    ----------
    workload : a `Workload`, a file that holds one, or ``"package.module:name"``.
    ledger : path or URL; ``.argus-bed/ledger.db`` by default.
    hypotheses, probes : names; the library's default set, and every probe that applies.
    seed : same seed and same data give the same decisions.
    max_causes : 2 adds every pair of hypotheses.
    folders : folders with hypotheses and probes of your own.

    Raises
    ------
    ConfigError, UnknownName : something that is asked for does not exist or fit.
    WorkloadFailed : the workload does not start.
    StorageError : the ledger cannot be used.
    """
    if target not in ("cause", "parameters", "joint"):
        raise ConfigError(f"target={target!r}: 'cause', 'parameters' or 'joint'")
    if seed < 0:
        raise ConfigError(f"seed={seed}: zero or above")
    given = tuple(folders)
    library = known_hypotheses(given)
    own = [n for n, h in library.items() if h.changes.__module__.startswith("argus_bed_user_")]
    instruments = _probes(probes, known_probes(given))
    found = workload if isinstance(workload, Workload) else load(workload)
    usual = (*DEFAULT_HYPOTHESES, *_told(found), *own)
    chosen = select(hypotheses or usual, library, max_causes)
    _check_names(found, library)
    system = LiveSystem(found, instruments)
    try:
        book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger or _default_ledger())
        return Study(
            name,
            system,
            chosen,
            book,
            policy=policy or Policy(),
            seed=seed,
            target=target,
            spec={
                "question": found.question,
                "metric": found.metric,
                "workload": found.name,
                "seed": seed,
                "target": target,
                "hypotheses": sorted(h.name for h in chosen),
            },
        )
    except BaseException:
        system.close()
        raise


def _told(workload: Workload) -> tuple[str, ...]:
    readable = {name for name, _ in workload.reports}
    if workload.checks:
        readable.add("numeric_error")
    return tuple(cause for name, cause in WHERE_TOLD.items() if name in readable)


def _default_ledger() -> Path:
    folder = Path(".argus-bed")
    folder.mkdir(exist_ok=True)
    return folder / "ledger.db"


def _probes(wanted: Sequence[str] | None, known: dict[str, Probe]) -> dict[str, Probe]:
    for name in wanted or ():
        if name not in known:
            raise UnknownName("probe", name, known)
    return {n: known[n] for n in wanted} if wanted else known


def _check_names(workload: Workload, library: Iterable[str]) -> None:
    """A knob that removes a mechanism nobody knows is a typing error, not an experiment."""
    names = set(library) - {NO_EFFECT, NONE_OF_THESE}
    for condition in workload.frame().conditions:
        for mechanism in (*condition.removes, *condition.adds):
            if mechanism not in names:
                raise UnknownName(f"mechanism of knob {condition.knob!r}", mechanism, names)
