"""What can be measured: one name, one unit, one definition for each quantity.

Values are compared in *link space*, where a difference between two conditions
means the same thing at every scale:

========= ============================== =================================
link      transform                      difference between conditions
========= ============================== =================================
log       log(x)                         log ratio
soft_log  log(x + floor)                 log ratio, tame near zero
logit     logit(clip(x, .02, .98))       log odds ratio
share     x / (a tenth of the step)      difference, in tenths of the step
identity  x                              difference
binary    x in {0, 1}                    no difference; a probability
========= ============================== =================================
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING

from argus_bed.errors import UnitError, UnknownName, ValueRejected

if TYPE_CHECKING:
    import pint  # takes 0.4 s: loaded when a unit is first converted


class Link(StrEnum):
    """How a value is carried into link space."""

    LOG = "log"
    SOFT_LOG = "soft_log"
    LOGIT = "logit"
    SHARE = "share"
    IDENTITY = "identity"
    BINARY = "binary"


class Family(StrEnum):
    """What kind of thing a quantity is; the anatomy's priors go by it."""

    DURATION = "duration"  # time that something takes; only ratios carry over
    LOST_TIME = "lost_time"  # time within a step spent on nothing useful; a share of the step
    RATE = "rate"
    COUNT = "count"
    FRACTION = "fraction"
    RATIO = "ratio"  # dimensionless and meaningful by itself
    STATE = "state"  # clocks, power, temperature
    FLAG = "flag"


_LINKS = {
    Family.DURATION: (Link.LOG, 0.0),
    Family.LOST_TIME: (Link.SHARE, 0.0),
    Family.RATE: (Link.LOG, 0.0),
    Family.COUNT: (Link.SOFT_LOG, 1.0),
    Family.FRACTION: (Link.LOGIT, 0.02),
    Family.RATIO: (Link.LOG, 0.0),
    Family.STATE: (Link.LOG, 0.0),
    Family.FLAG: (Link.BINARY, 0.0),
}


TENTH = 0.1
"""Unit of lost time in link space: a tenth of the step, about what an effect is worth."""


@dataclass(frozen=True)
class Quantity:
    """A measurable.

    Parameters
    ----------
    name : the field's term, snake case.
    unit : the one unit in which values are kept, in pint's spelling.
    definition : one sentence that says what is and is not counted.
    family : decides the link and the priors of the anatomy.
    link, floor : the transform into link space. ``floor`` is in ``unit``.
    """

    name: str
    unit: str
    definition: str
    family: Family
    link: Link = Link.LOG
    floor: float = 0.0

    def check(self, value: float) -> float:
        """Return ``value`` if a measurement could give it.

        Raises
        ------
        ValueRejected : NaN, infinite, negative, above one for a fraction, not 0 or 1
            for a flag, zero where a logarithm is needed.
        """
        value = float(value)
        if not math.isfinite(value):
            raise ValueRejected(f"{self.name} = {value}: a reading must be a finite number")
        if self.link is Link.IDENTITY:
            return value
        if value < 0:
            raise ValueRejected(f"{self.name} = {value:g}: a reading cannot be negative")
        if value == 0 and self.link is Link.LOG:
            raise ValueRejected(f"{self.name} = 0: a reading of this quantity is above zero")
        if self.link is Link.LOGIT and value > 1:
            raise ValueRejected(f"{self.name} = {value:g}: a fraction lies between 0 and 1")
        if self.link is Link.BINARY and value not in (0.0, 1.0):
            raise ValueRejected(f"{self.name} = {value:g}: a flag is 0 or 1")
        return value

    def to_link(self, value: float) -> float:
        """Carry a checked value into link space; lost time as a share of the step."""
        floor = self.floor
        match self.link:
            case Link.LOG:
                return math.log(value)
            case Link.SOFT_LOG:
                return math.log(value + floor)
            case Link.SHARE:  # of a value already divided by the step time
                return value / TENTH
            case Link.LOGIT:
                clipped = min(max(value, floor), 1 - floor)
                return math.log(clipped / (1 - clipped))
            case _:
                return value


def _quantities() -> dict[str, Quantity]:
    found: dict[str, Quantity] = {}

    def add(family: Family, unit: str, *entries: tuple[str, str], link: Link | None = None) -> None:
        default, floor = _LINKS[family]
        for name, definition in entries:
            found[name] = Quantity(name, unit, definition, family, link or default, floor)

    add(
        Family.DURATION,
        "s",
        (
            "step_time",
            "one step, request or run, from its start to the start of the next",
        ),
        ("stage_time", "one named stage inside the step, waiting included"),
        ("isolated_time", "one operation alone, repeated with its caches warm"),
        ("cold_time", "one operation alone, its inputs not in any cache"),
        (
            "host_time",
            "time that the host needs to issue a step's or an operation's work",
        ),
        ("comm_time", "collective kernels, the wait for peers included"),
        ("rank_time_min", "smallest time of a collective over the ranks"),
        ("rank_time_mean", "mean time of a collective over the ranks"),
        ("cpu_time", "processor time of the whole process within the step"),
        ("compile_time", "time spent tracing and compiling"),
    )
    add(
        Family.LOST_TIME,
        "s",
        ("exposed_comm", "the part of communication that no computation hides"),
        ("gap_time", "the device idle between two pieces of work"),
        ("host_wait", "the host blocked until the device or a peer answers"),
        ("gil_wait", "a runnable Python thread waiting for the interpreter lock"),
        ("gc_pause", "the cyclic garbage collector running"),
        ("copy_time", "moving or converting data: transfers, layouts, formats"),
        ("data_wait", "the step waiting for its next input"),
        (
            "fault_time",
            "processor time inside the kernel: page faults, allocation, system calls",
        ),
    )
    add(
        Family.RATE,
        "1/s",
        (
            "throughput",
            "whatever is counted, per second: steps, tokens, requests, operations",
        ),
        (
            "progress_rate",
            "ticks per second of a background thread that only needs to be let run",
        ),
    )
    add(
        Family.COUNT,
        "count",
        ("launch_count", "kernels or operations issued per step"),
        ("graph_breaks", "places where a compiled graph falls back to the interpreter"),
        ("recompiles", "compilations after the first"),
        ("copy_count", "copies of data per step"),
        ("alloc_retries", "allocations that had to free cached blocks first"),
        ("page_faults", "page faults per step, minor and major"),
        ("instructions", "instructions retired per step"),
        ("gc_collections", "garbage collections per step"),
        (
            "voluntary_switches",
            "context switches per step in which a thread gave way by blocking",
        ),
        (
            "involuntary_switches",
            "context switches per step in which a thread was preempted",
        ),
        ("thread_count", "threads alive in the process"),
        ("violations", "messages out of their session's order"),
    )
    add(
        Family.FRACTION,
        "1",
        ("device_busy", "share of the step in which the device has work"),
        (
            "overlap_fraction",
            "share of communication or copies hidden behind computation",
        ),
        ("occupancy", "share of the execution slots in use"),
        ("throttle", "share of the time for which the device held its clock back"),
        ("stage_share", "time of one named stage over the step time of the same step"),
    )
    add(
        Family.RATIO,
        "1",
        ("bandwidth_ratio", "rate of memory traffic over the physical peak"),
        ("neighbour_slowdown", "time beside others over time alone"),
        ("numeric_error", "relative error against a reference of higher precision"),
        ("waves", "thread blocks over the slots that run at once"),
    )
    add(
        Family.RATIO,
        "1",
        (
            "delay_slope",
            "extra step time per second of delay put into a stage on purpose",
        ),
        link=Link.IDENTITY,
    )
    add(Family.STATE, "Hz", ("sm_clock", "clock of the compute units"))
    add(Family.STATE, "W", ("power", "electric power of the device"))
    add(
        Family.STATE,
        "delta_degC",
        ("temperature", "temperature of the device"),
        link=Link.IDENTITY,
    )
    add(
        Family.COUNT,
        "byte",
        ("bytes_moved", "bytes read and written per operation"),
        ("local_memory_bytes", "registers spilled to memory, in bytes"),
        ("resident_bytes", "memory that the process holds"),
    )
    add(
        Family.FLAG,
        "1",
        ("kernel_name_changed", "1 if the arms run kernels of different names"),
        ("env_flag", "1 if a setting or an environment variable is on"),
    )
    exact = found["numeric_error"]  # zero is a legal reading: an exact result
    found[exact.name] = replace(exact, link=Link.SOFT_LOG, floor=1e-9)
    return found


QUANTITIES: dict[str, Quantity] = _quantities()
"""Every quantity by name."""


def quantity(name: str) -> Quantity:
    """Look a quantity up by name. Raises `UnknownName` with the nearest known one."""
    try:
        return QUANTITIES[name]
    except KeyError:
        raise UnknownName("quantity", name, QUANTITIES) from None


_SPELLED = {"degC": "delta_degC", "B": "byte"}
"""Spellings of the case format that pint reads otherwise (an offset scale, the unit bel)."""


@cache
def units() -> pint.UnitRegistry:
    """The one pint registry, made at first use because it takes a while."""
    import pint

    registry: pint.UnitRegistry = pint.UnitRegistry(cache_folder=None)
    registry.define("step = count")
    return registry


def convert(value: float, unit: str, name: str) -> float:
    """Convert ``value`` from ``unit`` to the unit of quantity ``name`` and check it.

    Raises
    ------
    UnknownName : no such quantity.
    UnitError : the unit is unknown or measures something else.
    ValueRejected : no measurement of that quantity can have this value.
    """
    wanted = quantity(name)
    spelled = _SPELLED.get(unit, unit)
    if spelled != wanted.unit:
        import pint

        try:
            value = units().Quantity(value, spelled or "1").to(wanted.unit).magnitude
        except (
            pint.errors.PintError,
            AttributeError,
            TypeError,
            AssertionError,
        ) as error:
            raise UnitError(
                f"{name} = {value:g} {unit}: {name} is kept in {wanted.unit!r} "
                f"and {unit!r} does not convert to it"
            ) from error
    return wanted.check(value)


def parse(text: str, name: str) -> float:
    """Read one value as a person writes it (``"12.3ms"``) into the quantity's unit.

    A bare number is taken to be in the quantity's own unit. Raises as `convert` does.
    """
    wanted = quantity(name)
    try:
        return wanted.check(float(text))
    except ValueRejected:
        raise
    except ValueError:
        pass
    try:
        parsed = units().Quantity(re.sub(r"\bdegC\b", "delta_degC", text))
        magnitude = float(parsed.to(wanted.unit).magnitude)
    except Exception as error:  # pint raises a dozen unrelated types on malformed text
        raise UnitError(
            f"{name}={text!r}: not a value in {wanted.unit!r}; write for example "
            f"{name}=12.3{'ms' if wanted.unit == 's' else ''}"
        ) from error
    return wanted.check(magnitude)
