"""What the causes of a verdict take of the step, and what removing them should bring."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from argus_bed.inference.belief import Belief
from argus_bed.records import EffectShare

Array = np.ndarray[Any, np.dtype[np.float64]]

CONFOUNDED_AT = 0.5
"""Width of the interval of a cause's share, over the sum of all shares, from which only that
sum counts as known (assumption)."""


def effects_of(belief: Belief, causes: Sequence[str]) -> tuple[EffectShare, ...]:
    """What each of ``causes`` takes of the candidate's step: median and 89 % interval.

    Over all hypotheses that hold the cause, by their probability. Negative where the
    candidate is the arm without it.
    """
    holding = [h for h in belief.hypotheses if {*causes} <= {*h.causes}]
    shares = belief.probabilities()
    drawn, weights = [], []
    for h in holding:
        parts, w = belief.parts(h.name)
        if parts.shape[1] == len(h.causes):
            drawn.append(parts[:, [h.causes.index(c) for c in causes]])
            weights.append(w * shares[h.name])
    if not drawn:
        return ()
    values, weight = np.concatenate(drawn), np.concatenate(weights)
    if not values.any():
        return ()  # causes that take no time of their own, such as a hidden part
    low, middle, high = (
        np.quantile(values, q, axis=0, weights=weight, method="inverted_cdf")
        for q in (0.055, 0.5, 0.945)
    )
    widest = float((high - low).max())
    confounded = len(causes) > 1 and widest > CONFOUNDED_AT * abs(float(middle.sum()))
    return tuple(
        EffectShare(cause, float(low[i]), float(middle[i]), float(high[i]), confounded)
        for i, cause in enumerate(causes)
    )


def effect_in_words(shares: Iterable[EffectShare]) -> str:
    """What removing the causes should bring."""
    texts = []
    for share in shares:
        if share.high > 0:
            texts.append(
                f"without {share.cause} the step gets {share.median:.1%} shorter "
                f"(89 % interval {share.low:.1%} to {share.high:.1%})"
            )
        else:
            texts.append(
                f"it spares {-share.median:.1%} of the step that {share.cause} took before "
                f"(89 % interval {-share.high:.1%} to {-share.low:.1%})"
            )
        if share.confounded:
            texts.append("confounded: what was read fixes their sum and not their shares")
    return "; ".join(dict.fromkeys(texts))
