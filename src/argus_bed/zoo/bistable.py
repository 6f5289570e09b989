"""One unchanged program that starts in one of two states, a few per cent apart.

A buffer's rows lie as far apart as the process happens to place them when it starts. At most
places the distance is a multiple of the page, columns then fall into one set of the first
cache, and reading them down is slow for as long as the process lives; one start in eight is
better off. Both arms run the same code: a difference between two processes is one of their
starts, and repeating or pairing within them does not take it away. In the twin every process
places its rows alike.
"""

from __future__ import annotations

import gc
import os
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from argus_bed.workload import Knob, Stage, Workload, stage

Array = NDArray[np.float64]

ROWS, COLUMNS = 512, 64
PAGE = 4096  # bytes; also the distance of two lines in one set of the first cache
LINE = 64
PLACES = 8  # one of them leaves the page's rhythm
NEAR = 2**13 // 8  # words that the other stage works on: fit the first cache
ROUNDS = 300


@dataclass
class State:
    """The buffer as it was placed, and the other stage's operands."""

    rows: Array
    columns: Array
    near: Array
    scratch: Array


def _pitch(place: str) -> int:
    """Bytes from one row to the next, for the life of the process.

    Drawn from the system and not from a seed of the study: neither arm nor repeat decides.
    """
    drawn = os.urandom(1)[0] % PLACES if place == "any" else 1
    return PAGE if drawn else PAGE + LINE


def setup(build: str, place: str = "any", collector: bool = True) -> State:
    """``build`` names a build of one source; ``place`` says who places the rows."""
    if not collector:
        gc.disable()
    rows = np.ones((ROWS, _pitch(place) // 8))[:, :COLUMNS]
    return State(rows, np.empty((COLUMNS, ROWS)), np.ones(NEAR), np.empty(NEAR))


def step(state: State) -> None:
    """Turn rows into columns, then work on something small."""
    with stage("turn"):
        np.copyto(state.columns, state.rows.T)
    with stage("update"):
        for _ in range(ROUNDS):
            np.multiply(state.near, 1.0000001, out=state.scratch)
            np.add(state.scratch, 0.5, out=state.scratch)


workload = Workload(
    name="rows-and-columns",
    question=(
        "A rebuild of the same source: some of us measured it several per cent faster, others "
        "slower, most find no difference. Did the build change anything?"
    ),
    setup=setup,
    step=step,
    arms={
        "baseline": {"build": "first", "place": "any"},
        "candidate": {"build": "second", "place": "any"},
    },
    stages=(
        Stage("turn", "compute", changed=None, what="reads a buffer column by column"),
        Stage("update", "compute", changed=None, what="works on a small array"),
    ),
    knobs=(
        Knob("build", "first", {"build": "first"}),
        Knob("collector", "off", {"collector": False}, removes=frozenset({"gc_pause"})),
    ),
    intent="same",
)

twin = replace(
    workload,
    arms={
        "baseline": {"build": "first", "place": "own"},
        "candidate": {"build": "second", "place": "own"},
    },
)
