"""Runs a workload in supervised processes of its own and lets probes measure it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argus_bed.execution.bench import LocalBench as LocalBench

__all__ = ["LocalBench"]


def __getattr__(name: str) -> Any:
    """Loaded at first use: the child process needs none of it."""
    if name != "LocalBench":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from argus_bed.execution.bench import LocalBench

    return LocalBench
