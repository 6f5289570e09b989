from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argus_bed.errors import StorageError, ValueRejected
from argus_bed.ledger import dumps, from_plain, loads, to_plain
from argus_bed.records import (
    Prediction,
    Proposal,
    ReadingRecord,
    Run,
    RunState,
    Status,
    Verdict,
)

number = st.floats(allow_nan=False, allow_infinity=False)
names = st.text(max_size=12)  # surrogates and control characters among them
table = st.dictionaries(names, number, max_size=3)
predictions = st.builds(
    Prediction, names, st.dictionaries(names, st.tuples(number, number), max_size=2)
)
proposals = st.builds(
    Proposal, st.integers(1, 99), names, names,
    st.dictionaries(names, st.one_of(names, number, st.booleans()), max_size=2),
    st.lists(names, max_size=2).map(tuple), names, number, number, number, number, number, names,
    predictions=st.lists(predictions, max_size=2).map(tuple),
    runners_up=st.lists(st.tuples(names, number, number, number), max_size=2).map(tuple),
)  # fmt: skip
records = st.builds(
    ReadingRecord, names, names, names, st.none() | names, st.none() | names, number, number,
    names, st.booleans(), names,
)  # fmt: skip
runs = st.builds(
    Run, st.integers(1, 99), st.sampled_from(RunState), st.none() | proposals,
    st.lists(records, max_size=2).map(tuple), before=table, after=table, bits=table,
    overhead=st.none() | number, surprise=st.none() | number,
)  # fmt: skip


@given(runs)
def test_a_run_survives_the_ledger_unchanged(run: Run) -> None:
    assert from_plain(Run, loads(dumps(run))) == run


@given(runs)
def test_text_is_ascii_and_deterministic(run: Run) -> None:
    text = dumps(run)
    assert text.isascii()
    assert dumps(from_plain(Run, loads(text))) == text


def test_a_verdict_survives() -> None:
    verdict = Verdict(
        Status.DECIDED, ("a", "b"), 0.97, (("a", 0.97),), "why", ("x",), (), (1,), "go"
    )
    assert from_plain(Verdict, loads(dumps(verdict))) == verdict


@dataclass(frozen=True)
class Odd:
    by_number: Mapping[int, float]
    chosen: frozenset[str]
    level: Literal["log", "trace"] = "log"
    many: int | str | None = None


def test_integer_keys_sets_and_literals_survive() -> None:
    odd = Odd({3: 1.0}, frozenset({"b", "a"}), "trace", "x")
    assert from_plain(Odd, loads(dumps(odd))) == odd
    assert dumps(odd).startswith('{"by_number":{"3":1.0},"chosen":["a","b"]')


def test_numpy_numbers_become_plain_ones() -> None:
    assert to_plain({"a": np.float32(0.5), "b": np.int64(3), "c": np.bool_(True)}.get("a")) == 0.5
    assert to_plain(np.int64(3)) == 3


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_never_enters_and_its_place_is_named(bad: float) -> None:
    run = Run(1, RunState.DONE, None, after={"gil_held": bad})
    with pytest.raises(ValueRejected, match=r"Run\.after\['gil_held'\]"):
        dumps(run)


@pytest.mark.parametrize("bad", [object(), b"x", {1.5: 2}, {True: 1}])
def test_what_json_has_no_word_for_is_refused(bad: Any) -> None:
    with pytest.raises(ValueRejected):
        dumps({"x": bad})


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "fields of Run"),
        ({"number": 1}, "Run.state"),
        ({"number": "1", "state": "done", "proposal": None}, "Run.number"),
        ({"number": True, "state": "done", "proposal": None}, "Run.number"),
        ({"number": 1, "state": "dnoe", "proposal": None}, "one of"),
        ({"number": 1, "state": "done", "proposal": None, "later": 1}, "no field 'later'"),
        ({"number": 1, "state": "done", "proposal": None, "readings": {}}, "Run.readings"),
        ({"number": 1, "state": "done", "proposal": None, "after": {"a": "x"}}, r"after\['a'\]"),
    ],
)
def test_data_of_another_shape_is_named(data: Any, said: str) -> None:
    with pytest.raises(StorageError, match=said):
        from_plain(Run, data)


@pytest.mark.parametrize("text", ["{", "NaN", '{"a": Infinity}'])
def test_broken_text_is_a_storage_error(text: str) -> None:
    with pytest.raises(StorageError):
        loads(text)
