"""What the events of a study amount to: a pure fold, the only reader of their meaning."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from argus_bed.errors import StorageError
from argus_bed.ledger.codec import from_plain
from argus_bed.records import Proposal, Run, RunState, Verdict

if TYPE_CHECKING:
    from argus_bed.ledger.rows import Event


class Kind(StrEnum):
    """What can happen in a study, in the order in which a round meets it.

    Any other kind may be appended; `fold` leaves it in ``events`` of the history.
    """

    HYPOTHESIZED = "hypothesized"
    PROPOSED = "proposed"  # a Proposal; takes a run number
    APPROVED = "approved"  # {"run", "by", "note"}
    STARTED = "started"  # {"run", "attempt"}; written by claim
    OBSERVED = "observed"  # a Run, the end of its number
    FAILED = "failed"  # a Run, the end of its number
    VOIDED = "voided"  # a Run, the end of its number
    TOLD = "told"  # a Run; takes a number and ends it
    VERDICT = "verdict"  # a Verdict
    REDESIGNED = "redesigned"
    VALIDATED = "validated"
    LEARNED = "learned"
    NOTE = "note"


NUMBERED = frozenset({Kind.PROPOSED, Kind.TOLD})
"""Kinds that take a run number; the key ``run:N`` makes sure that nothing else does."""
ENDS = {
    Kind.OBSERVED: RunState.DONE,
    Kind.FAILED: RunState.FAILED,
    Kind.VOIDED: RunState.VOID,
}
END_KIND = {state: kind for kind, state in ENDS.items()}


def number_key(run: int) -> str:
    """Idempotency key of the event that takes a run number."""
    return f"run:{run}"


def end_key(run: int) -> str:
    """Idempotency key of a run's end: observed, failed and voided exclude each other."""
    return f"end:{run}"


@dataclass(frozen=True)
class StudyHistory:
    """Everything that the events of one study say.

    proposals : by run number, as stored before the run.
    runs : by number, ended or not; a run's proposal is the stored one.
    stale : numbers of runs that were started, never ended, and that nobody works on.
    attempts : how often each run was started.
    approvals : payload of the approval of each run that has one.
    verdict : the last one given.
    next_run : the number that the next proposal or told run gets.
    last_seq : sequence number of the last event.
    events : (seq, kind, payload) of everything else, in order.
    steps : (seq, kind) of every event, in order.
    """

    proposals: Mapping[int, Proposal] = field(default_factory=dict)
    runs: Mapping[int, Run] = field(default_factory=dict)
    stale: tuple[int, ...] = ()
    attempts: Mapping[int, int] = field(default_factory=dict)
    approvals: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    verdict: Verdict | None = None
    next_run: int = 1
    last_seq: int = 0
    events: tuple[tuple[int, str, Mapping[str, Any]], ...] = ()
    steps: tuple[tuple[int, str], ...] = ()

    @property
    def ended(self) -> tuple[Run, ...]:
        """Runs that ended, in the order of their numbers."""
        over = (RunState.DONE, RunState.FAILED, RunState.VOID)
        return tuple(r for _, r in sorted(self.runs.items()) if r.state in over)

    @property
    def pending(self) -> tuple[Proposal, ...]:
        """Proposals that can be run now: never started, or stale."""
        free = (RunState.PROPOSED, RunState.STALE)
        return tuple(p for n, p in sorted(self.proposals.items()) if self.runs[n].state in free)


def fold(events: Iterable[Event], live: Collection[int] = ()) -> StudyHistory:
    """Read a study's events into its history.

    Parameters
    ----------
    events : in the order of their sequence numbers. One whose number or key was seen
        before changes nothing.
    live : numbers of runs that some living process holds (`Ledger.live`).

    Raises
    ------
    StorageError : a payload is not what its kind says.
    """
    proposals: dict[int, Proposal] = {}
    ended: dict[int, Run] = {}
    attempts: dict[int, int] = {}
    approvals: dict[int, Mapping[str, Any]] = {}
    verdict: Verdict | None = None
    other: list[tuple[int, str, Mapping[str, Any]]] = []
    steps: list[tuple[int, str]] = []
    for event in once(events):
        steps.append((event.seq, event.kind))
        match event.kind:
            case Kind.PROPOSED:
                proposal = from_plain(Proposal, event.payload)
                proposals.setdefault(proposal.run, proposal)
            case Kind.STARTED:
                run = run_number(event)
                attempts[run] = attempts.get(run, 0) + 1
            case Kind.APPROVED:
                approvals.setdefault(run_number(event), event.payload)
            case Kind.OBSERVED | Kind.FAILED | Kind.VOIDED | Kind.TOLD:
                done = from_plain(Run, event.payload)
                ended.setdefault(done.number, done)
            case Kind.VERDICT:
                verdict = from_plain(Verdict, event.payload)
            case _:
                other.append((event.seq, event.kind, event.payload))
    runs = _runs(proposals, ended, attempts, live)
    return StudyHistory(
        proposals=proposals,
        runs=runs,
        stale=tuple(n for n, r in runs.items() if r.state is RunState.STALE),
        attempts=attempts,
        approvals=approvals,
        verdict=verdict,
        next_run=max((0, *runs)) + 1,
        last_seq=steps[-1][0] if steps else 0,
        events=tuple(other),
        steps=tuple(steps),
    )


def once(events: Iterable[Event]) -> Iterable[Event]:
    """The events without those whose number or key was seen before."""
    last, keys = 0, set[str]()
    for event in events:
        if event.seq <= last or (event.key is not None and event.key in keys):
            continue
        last = event.seq
        if event.key is not None:
            keys.add(event.key)
        yield event


def _runs(
    proposals: Mapping[int, Proposal],
    ended: Mapping[int, Run],
    attempts: Mapping[int, int],
    live: Collection[int],
) -> dict[int, Run]:
    runs: dict[int, Run] = {}
    for number in sorted({*proposals, *ended}):
        proposal = proposals.get(number)
        if number in ended:
            # the stored proposal, never the run's own copy: it was written before the outcome
            runs[number] = replace(ended[number], proposal=proposal or ended[number].proposal)
        elif number in live:
            runs[number] = Run(number, RunState.RUNNING, proposal)
        elif number in attempts:
            runs[number] = Run(number, RunState.STALE, proposal)
        else:
            runs[number] = Run(number, RunState.PROPOSED, proposal)
    return runs


def run_number(event: Event) -> int:
    """The run that an event is about."""
    run = event.payload.get("run")
    if not isinstance(run, int) or isinstance(run, bool):
        raise StorageError(
            f"event {event.seq} ({event.kind}) says run={run!r}: it should be a number"
        )
    return run
