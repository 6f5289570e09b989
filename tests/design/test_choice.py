"""The choice against an exact one, where all outcomes can be counted."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from argus_bed.design.gain import gains
from argus_bed.design.price import score
from argus_bed.frame import Cell, Frame
from argus_bed.hypothesis import Hypothesis
from argus_bed.inference.belief import Belief
from argus_bed.probe import Measurement

LOG_ODDS = {
    "one": {"step_time": -2.0, "exposed_comm": 1.5, "sm_clock": 0.0},
    "two": {"step_time": 2.0, "exposed_comm": 1.0, "sm_clock": 0.3},
    "three": {"step_time": 0.0, "exposed_comm": -1.5, "sm_clock": -0.2},
}
PRIOR = {"one": 0.5, "two": 0.3, "three": 0.2}
PLANS = {
    ("step_time",): 10.0,
    ("exposed_comm",): 8.0,
    ("sm_clock",): 1.0,
    ("step_time", "exposed_comm"): 19.0,
    ("step_time", "exposed_comm", "sm_clock"): 21.0,
}


def exact_gain(names: tuple[str, ...]) -> float:
    """I(H; Y) in bits, summed over all outcomes."""
    prior = np.array(list(PRIOR.values()))
    ones = np.array([[1 / (1 + math.exp(-o[n])) for n in names] for o in LOG_ODDS.values()])
    total = 0.0
    for outcome in product((0, 1), repeat=len(names)):
        likelihood = np.prod(np.where(outcome, ones, 1 - ones), axis=1)
        evidence = float(prior @ likelihood)
        posterior = prior * likelihood / evidence
        total += evidence * float(np.sum(posterior * np.log2(posterior / prior)))
    return total


@pytest.mark.promise("A06")
def test_choice_is_within_one_per_cent_of_the_exact_one(
    frame: Frame, plain: Callable[..., Hypothesis]
) -> None:
    rivals = [
        plain(name, said.pop("step_time"), 0.0, **said)
        for name, said in ((n, dict(o)) for n, o in LOG_ODDS.items())
    ]
    belief = Belief(rivals, frame, seed=0, particles=64, prior=PRIOR)
    plans = [
        [Measurement(Cell(n, "candidate"), noise=0.0, family="bernoulli") for n in names]
        for names in PLANS
    ]
    found = [score(g, p) for g, p in zip(gains(belief, plans), PLANS.values(), strict=True)]
    exact = [exact_gain(names) / price for names, price in PLANS.items()]
    chosen = int(np.argmax(found))
    assert exact[chosen] >= 0.99 * max(exact)
    assert found == pytest.approx(exact, rel=0.01)
