"""What a hypothesis weighs before anything is measured."""

from __future__ import annotations

import pytest

from argus_bed.hypothesis import BY_THE_WAY, catalogue, compose, prior_probabilities

KNOWN = catalogue()
PRESUMING = [h for h in KNOWN.values() if h.presumes_faster]
OTHERS = [h for h in KNOWN.values() if not h.presumes_faster]


def test_a_lost_gain_is_improbable_only_where_none_was_meant() -> None:
    assert PRESUMING
    assert OTHERS
    meant = prior_probabilities(KNOWN.values(), "faster")
    not_meant = prior_probabilities(KNOWN.values(), "same")
    other = OTHERS[0].name
    for h in PRESUMING:
        assert not_meant[h.name] / not_meant[other] == pytest.approx(
            BY_THE_WAY * meant[h.name] / meant[other]
        )
    assert sum(not_meant.values()) == pytest.approx(1.0)
    assert prior_probabilities(KNOWN.values(), "unknown") == meant


def test_a_pair_presumes_a_gain_once_however_many_of_its_causes_do() -> None:
    both = compose(PRESUMING[0], PRESUMING[1])
    one = compose(OTHERS[0], PRESUMING[0])
    neither = compose(OTHERS[0], OTHERS[1])
    assert both.odds("same") == pytest.approx(BY_THE_WAY * both.odds("faster"))
    assert one.odds("same") == pytest.approx(BY_THE_WAY * one.odds("faster"))
    assert neither.odds("same") == neither.odds("faster")
