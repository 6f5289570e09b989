"""The decode kernel: hoisting against merging, at an equal tile and at another one."""

from __future__ import annotations

import time
from statistics import median

import numpy as np
import pytest

from argus_bed.zoo import vtile

CELLS = tuple((per, tile) for per in ("first", "second") for tile in (vtile.TILE, vtile.VALUES))
Times = dict[tuple[str, int], list[float]]


def factorial(batch: int, rounds: int = 15) -> Times:
    """Seconds of a step in each cell of tile x hoist, cells taking turns."""
    states = {cell: vtile.setup(cell[0], tile=cell[1], batch=batch) for cell in CELLS}
    taken: Times = {cell: [] for cell in CELLS}
    for i in range(rounds):
        for cell in CELLS if i % 2 else CELLS[::-1]:
            begin = time.perf_counter()
            vtile.step(states[cell])
            if i > 0:  # the first one touches its memory
                taken[cell].append(time.perf_counter() - begin)
    return taken


def ratio(taken: Times, slow: tuple[str, int], fast: tuple[str, int]) -> float:
    return median(a / b for a, b in zip(taken[slow], taken[fast], strict=True))


def test_both_kernels_give_the_same_tokens() -> None:
    states = [vtile.setup(per, tile=tile, batch=8) for per, tile in CELLS]
    for state in states:
        for _ in range(3):
            vtile.step(state)
    for state in states[1:]:
        assert np.allclose(state.out, states[0].out, rtol=1e-4, atol=1e-5)


@pytest.mark.promise("A49")
@pytest.mark.parametrize("batch", [32, 128, 512])
def test_repeated_work_is_counted_per_batch_before_it_is_timed(batch: int) -> None:
    counts = {}
    for cell in CELLS:
        state = vtile.setup(cell[0], tile=cell[1], batch=batch)
        vtile.step(state)
        counts[cell] = vtile.report(state)["launch_count"]
    tiles = vtile.VALUES // vtile.TILE
    assert counts["first", vtile.TILE] == 3 + 3 * tiles
    assert counts["second", vtile.TILE] == 6 * tiles
    assert counts["first", vtile.VALUES] == counts["second", vtile.VALUES] == 6


def test_merging_brings_far_more_than_the_work_it_saves() -> None:
    taken = factorial(512)
    hoisted = ratio(taken, ("second", vtile.TILE), ("first", vtile.TILE))
    merged = ratio(taken, ("second", vtile.TILE), ("second", vtile.VALUES))
    assert 1.03 < hoisted < 1.3  # catalogue: 1.09
    assert merged > 1.3  # catalogue: 1.54
    assert merged - 1 > 2 * (hoisted - 1)
