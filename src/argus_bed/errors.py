"""Every error that argus-bed raises on purpose.

::

    ArgusBedError
    |-- UsageError               exit code 2: what was asked for cannot be meant
    |   |-- ConfigError          a key, value or file in argus-bed.toml
    |   |-- UnknownName          a quantity, stage, condition, probe, hypothesis or run
    |   |-- UnitError            a value whose unit does not fit the quantity
    |   |-- ValueRejected        NaN, infinite, negative where that cannot be
    |   |-- FileRejected         a file that is not what it claims to be
    |   `-- ApprovalRequired     a run that waits for a person
    |-- ProbeError               exit code 4
    |   |-- ProbeUnavailable     the instrument is not on this machine
    |   |-- ProbeFailed          the instrument ran and gave nothing usable
    |   `-- WorkloadFailed       the workload raised, hung, exited or printed nonsense
    |-- StorageError             exit code 5
    `-- InferenceError           exit code 6: the posterior is not to be trusted
"""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Iterable

SAID = 400
"""Characters of what somebody else's exception says that a message repeats."""


class ArgusBedError(Exception):
    """Base of everything raised on purpose. ``exit_code`` is what the shell sees."""

    exit_code = 1


class UsageError(ArgusBedError):
    """The request cannot be carried out as it was put."""

    exit_code = 2


class ConfigError(UsageError):
    """A key or value in the configuration is not understood."""


class UnknownName(UsageError):
    """A name that nothing here bears. The nearest known one is suggested.

    Parameters
    ----------
    what : the kind of thing, in the singular ("quantity", "stage").
    name : the name as it was given.
    known : every name that would have been understood.
    """

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        if near:
            hint = f"; did you mean {near[0]!r}?"
        elif names:
            shown = ", ".join(names[:12])
            hint = f"; known: {shown}{', ...' if len(names) > 12 else ''}"
        else:
            hint = "; none are known here"
        super().__init__(f"unknown {what} {name!r}{hint}")
        self.name = name


class UnitError(UsageError):
    """A value came in a unit that its quantity cannot have."""


class ValueRejected(UsageError):
    """A value that no measurement of this quantity can have."""


class FileRejected(UsageError):
    """A file is missing, empty, broken or of another kind."""


class ApprovalRequired(UsageError):
    """The policy holds this run back until a person approves it."""


class ProbeError(ArgusBedError):
    """A measurement did not happen."""

    exit_code = 4


class ProbeUnavailable(ProbeError):
    """The instrument needs something that this machine does not have."""


class ProbeFailed(ProbeError):
    """The instrument ran and its reading is unusable."""


class WorkloadFailed(ProbeError):
    """The workload raised, hung, exited or printed something unreadable."""


class StorageError(ArgusBedError):
    """The ledger could not be read or written. What had been told is still there."""

    exit_code = 5


class InferenceError(ArgusBedError):
    """Two ways of computing one posterior disagree, or a density is not finite."""

    exit_code = 6


def in_a_line(error: BaseException) -> str:
    """What somebody else's code raised: ``ValueError: text, at mine.py, line 7``."""
    frames = traceback.extract_tb(error.__traceback__)
    said = " ".join(str(error).split())[:SAID]
    where = f", at {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{': ' if said else ''}{said}{where}"
