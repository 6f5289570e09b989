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
    cause : the mechanism that was put into it, or ``no_effect`` where none is between the
        arms and something else makes them seem to differ. Its twin's answer is ``no_effect``.
    plausible_wrong : mechanisms that a hurried reader would blame.
    needs : what the machine must be like for the cause to show.
    """

    name: str
    title: str
    cause: str
    plausible_wrong: tuple[str, ...] = ()
    needs: str = ""

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
    Entry(
        "flat",
        "a faster kernel in the shade of a longer fetch",
        cause="off_critical_path",
        plausible_wrong=("hot_cache_benchmark", "overlap_lost", "launch_bound"),
    ),
    Entry(
        "gc",
        "collections over a large heap of objects that live for ever",
        cause="gc_pause",
        plausible_wrong=("allocator_stall", "host_bound_postprocess", "redundant_work"),
    ),
    Entry(
        "starve",
        "a loader that cannot keep up",
        cause="data_starvation",
        plausible_wrong=("gil_held", "thread_oversubscription", "hidden_sync"),
    ),
    Entry(
        "churn",
        "temporaries that come from the kernel each time",
        cause="allocator_stall",
        plausible_wrong=("redundant_work", "layout_copies", "bandwidth_contention"),
    ),
    Entry(
        "evict",
        "a kernel that takes its neighbour's place in the cache",
        cause="cache_eviction",
        plausible_wrong=("redundant_work", "allocator_stall", "thermal_drift"),
        needs="a last cache that no other program is using",
    ),
    Entry(
        "oversubscribe",
        "more threads than cores, at work in lockstep",
        cause="thread_oversubscription",
        plausible_wrong=("gil_held", "redundant_work", "gc_pause"),
    ),
    Entry(
        "hotcache",
        "a kernel that wins its benchmark because its table stays in the cache there",
        cause="hot_cache_benchmark",
        plausible_wrong=("off_critical_path", "cache_eviction", "no_effect"),
    ),
    Entry(
        "layout",
        "a layout that makes every consumer copy its input first",
        cause="layout_copies",
        plausible_wrong=("inserted_casts", "cache_eviction", "redundant_work"),
    ),
    Entry(
        "precision",
        "a chain of products whose operands lose bits, over partitions of a sequence",
        cause="precision_path",
        plausible_wrong=("order_violation", "no_effect", "inserted_casts"),
    ),
    Entry(
        "vtile",
        "a kernel that prepares its operands again for every tile",
        cause="redundant_work",
        plausible_wrong=("launch_bound", "cache_eviction", "wave_quantization"),
    ),
    Entry(
        "order",
        "retries that let the followers of a message pass it",
        cause="order_violation",
        plausible_wrong=("no_effect", "thread_oversubscription", "precision_path"),
    ),
    Entry(
        "bistable",
        "one program that starts in one of two states",
        cause="no_effect",
        plausible_wrong=("cache_eviction", "redundant_work", "gc_pause"),
    ),
)

ZOO: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}
"""Every workload of the zoo by name."""
