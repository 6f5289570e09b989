from __future__ import annotations

import json
import math
from dataclasses import replace

from argus_bed.records import Run, RunState
from argus_bed.report import StudyView, as_json


def test_one_versioned_object(view: StudyView) -> None:
    data = json.loads(json.dumps(as_json(view), allow_nan=False))
    assert data["schema"] == "argus-bed/study/1"
    assert data["verdict"]["status"] == "decided"
    assert data["ranking"][0][0] == "gil_held"
    assert [run["number"] for run in data["runs"]] == [1, 2, 3, 4, 5]
    assert data["runs"][2]["proposal"]["predictions"][0]["by_hypothesis"]["gil_held"][1] == 0.6
    assert data["probabilities"] == dict(view.now)


def test_nan_becomes_null(view: StudyView) -> None:
    run = Run(
        1, RunState.DONE, None, after={"gil_held": math.nan}, gained_bits=math.inf,
        environment={"clock": math.nan, "odd": object, "bytes": b"x", "path": "\udcff"},
    )  # fmt: skip
    text = json.dumps(as_json(replace(view, runs=(run,), spent_s=math.nan)), allow_nan=False)
    data = json.loads(text)
    assert data["runs"][0]["after"] == {"gil_held": None}
    assert data["runs"][0]["gained_bits"] is None
    assert data["spent_s"] is None
    text.encode()


def test_a_study_without_runs(empty: StudyView) -> None:
    data = as_json(empty)
    assert data["runs"] == []
    assert data["probabilities"] == empty.prior
