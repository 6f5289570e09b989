"""The recurrence: bounds of its errors, at the catalogue's lengths, and what moves them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from argus_bed.probes.numeric_check import numeric_check

from argus_bed.errors import ConfigError
from argus_bed.execution import LocalBench
from argus_bed.frame import Cell
from argus_bed.probe import Sweep
from argus_bed.workload import Check
from argus_bed.zoo import precision

STATE = precision.setup("first")


def error(scale: int, parts: int = 8, *, chain: str, merge: str = "first", memory: float = 0.0):
    state = replace(STATE, chain=chain, merge=merge, memory=memory)
    return precision.error(state, scale, parts, seed=2)


def test_an_operand_is_stored_in_ten_bits_and_rounded_to_the_nearest() -> None:
    x = np.float32(1) + np.float32(2) ** -10 * np.array([0.25, 0.5, 0.75, 1.5], np.float32)
    nearest = precision._stored(x, "second") - np.float32(1)
    assert list(nearest / 2.0**-10) == [0, 0, 1, 2]  # ties to even
    assert list((precision._stored(x, "third") - 1) / 2.0**-10) == [0, 0, 0, 1]
    assert list(precision._stored(x, "first")) == list(x)


@pytest.mark.promise("A47")
@pytest.mark.parametrize(("scale", "catalogue"), [(4_096, 8e-4), (65_536, 3e-3), (262_144, 2e-2)])
def test_the_error_grows_with_length_as_the_catalogue_says(scale: int, catalogue: float) -> None:
    assert catalogue / 3 < error(scale, chain="second") < 3 * catalogue
    assert 2e-7 < error(scale, chain="first") < 2e-5
    assert error(scale, chain="third") > 10 * error(scale, chain="second")  # all one way


def test_at_the_merge_it_does_not_grow() -> None:
    found = [error(s, chain="first", merge="second") for s in precision.SCALES]
    assert all(2e-4 < e < 8e-4 for e in found)  # catalogue: 4e-4, flat
    assert error(4_096, 32, chain="first", merge="second") > 1.5 * found[0]
    assert error(4_096, 32, chain="second") < error(4_096, 2, chain="second")


def test_a_head_with_a_short_memory_hides_it() -> None:
    short, long = (error(262_144, chain="second", memory=m) for m in (20.0, 0.0))
    assert short < long / 4


def test_the_probe_reads_both_arms_over_scales_and_partitions() -> None:
    with LocalBench(precision.workload) as bench:
        plans = list(numeric_check.plans(bench.target()))
        assert len(plans) == 1  # the sweep is one plan: no verdict from one length
        read = numeric_check.run(plans[0], bench, seed=1)
    found = {s.cell: s.values for s in read.samples}
    assert set(found) == set(plans[0].reads)
    for scale in precision.SCALES:
        for parts in (1, precision.PARTS):
            at = f"state-{scale}x{parts}"
            base, cand = (found[Cell("numeric_error", a, at)] for a in ("baseline", "candidate"))
            assert all(c > 300 * b for b, c in zip(base, cand, strict=True))


@pytest.mark.parametrize("wrong", [{"scales": ()}, {"scales": (8, 4)}, {"parts": (0, 1)}])
def test_a_check_that_could_not_be_swept_is_refused(wrong: dict[str, tuple[int, ...]]) -> None:
    settings = {"scales": (4, 8), "parts": (1,), **wrong}
    with pytest.raises(ConfigError, match="smallest first"):
        Check(Sweep("state", **settings), precision.error)
    with pytest.raises(ConfigError, match="above zero"):
        Check(Sweep("state", (4,), seconds=0.0), precision.error)
