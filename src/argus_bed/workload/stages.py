"""``stage(name)``: marks a part of a step, and costs next to nothing while nobody listens.

The markers may stay in production code: without a listener, entering one is a look at a
module global. A listener is the instrument of the running block; it is called in the
thread that enters the stage, so nested and concurrent stages reach it as they happen.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Listener(Protocol):
    """What an instrument offers to be told of stages."""

    def enter(self, name: str) -> None: ...

    def leave(self, name: str) -> None: ...


_listener: Listener | None = None


def listen(listener: Listener | None) -> None:
    """Send every later ``enter`` and ``leave`` to ``listener``; None silences the markers.

    A thread inside a stage at this moment leaves it without having entered it as far as
    the new listener can tell; listeners must bear that.
    """
    global _listener
    _listener = listener


class stage:  # noqa: N801 - reads as a keyword: ``with stage("load"):``
    """A named part of a step: a context manager and a decorator.

    Parameters
    ----------
    name : as declared in ``Workload.stages``. Other names are ignored by the probes.

    Examples
    --------
    >>> with stage("load"):
    ...     batch = [1, 2, 3]
    >>> @stage("sum")
    ... def total(xs):
    ...     return sum(xs)
    >>> total(batch)
    6
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        if _listener is not None:
            _listener.enter(self.name)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if _listener is not None:
            _listener.leave(self.name)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def marked(*args: P.args, **kwargs: P.kwargs) -> R:
            if _listener is None:
                return function(*args, **kwargs)
            with self:
                return function(*args, **kwargs)

        return marked
