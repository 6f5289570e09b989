"""The recorded cases that come with the project's papers: never a wrong cause.

Slow: a minute or two for all of them. How many verdicts match is reported by
``argus-bed replay``; abstaining is a miss and no error, a wrong cause is one.
"""

from pathlib import Path

import pytest

from argus_bed.study.replay import replay

SHARED = Path(__file__).resolve().parents[3] / "shared" / "cases"
CASES = sorted(SHARED.glob("*.json"))


@pytest.mark.slow
@pytest.mark.skipif(not CASES, reason=f"the recorded cases are not at {SHARED}")
@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_no_wrong_cause_is_accepted(path):
    found = replay(path)
    assert not found.wrong, (found.verdict.causes, found.recorded)
    assert 0 < found.price_s <= 2 * found.price_of_all_s
