"""Workloads with one known cause each, really at work, and twins in which nothing is wrong.

What a probe or a hypothesis can see of a workload (stages, knobs, operations) does not
name the cause; the identifiers here are for people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argus_bed.workload import Workload


@dataclass(frozen=True)
class Entry:
    """A workload of the zoo.

    Parameters
    ----------
    name : its identifier and its file.
    title : what it is, in a few words.
    cause : the mechanism that was put into it. Its twin's answer is ``no_effect``.
    plausible_wrong : mechanisms that a hurried reader would blame.
    """

    name: str
    title: str
    cause: str
    plausible_wrong: tuple[str, ...] = ()

    def load(self, fault_free: bool = False) -> Workload:
        """The workload, or its twin. Imports what it needs, and not before."""
        from argus_bed.workload import load

        return load(f"argus_bed.zoo.{self.name}:{'twin' if fault_free else 'workload'}")

    @property
    def question(self) -> str:
        """In the words of somebody who does not know the cause."""
        return self.load().question


_ENTRIES = (
    Entry(
        "gil",
        "waits in a C call beside a thread that must submit transfers",
        cause="gil_held",
        plausible_wrong=("thread_oversubscription", "hidden_sync", "gc_pause"),
    ),
)

ZOO: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}
"""Every workload of the zoo by name."""
