"""Bits by probe, by second and by second lost to disturbance, in every kind of report."""

from __future__ import annotations

import io
import json
import math
from dataclasses import asdict, replace

import pytest
from rich.console import RenderableType

from argus_bed.records import PriceBasis, Run, RunState
from argus_bed.report import as_json, terminal
from argus_bed.report import describe as say
from argus_bed.report.html import as_html
from argus_bed.report.view import StudyView
from argus_bed.report.worth import by_probe, worth_of
from argus_bed.study.showing import dataframe

pytestmark = pytest.mark.promise("A18")


def drawn(content: RenderableType) -> str:
    file = io.StringIO()
    terminal.console(file, width=100).print(content)
    return file.getvalue()


def test_by_hand(view: StudyView) -> None:
    """Run 3: 0.62 bits for 9.8 s expected; 10.78 s paid; 2 % of 9.8 s were lost."""
    run = view.run(3)
    worth = worth_of(run)
    assert worth.expected_bits == 0.62
    assert worth.expected_price_s == 9.8
    assert worth.expected_bits_per_s == pytest.approx(0.62 / 9.8)
    assert worth.price_s == pytest.approx(10.78)
    assert worth.bits_per_s == pytest.approx(run.gained_bits / 10.78)
    assert worth.lost_s == pytest.approx(0.02 * 9.8)
    assert worth.bits_per_lost_s == pytest.approx(run.gained_bits / (0.02 * 9.8))


def test_what_was_not_measured_is_taken_from_what_was_expected(view: StudyView) -> None:
    run = view.run(3)
    assert worth_of(replace(run, overhead=None)).lost_s == pytest.approx(0.02 * 9.8)
    # a step that got shorter lost nothing
    assert worth_of(replace(run, overhead=-0.1)).bits_per_lost_s is None


@pytest.mark.parametrize(
    "run",
    [
        Run(1, RunState.DONE, None, source="told"),
        Run(1, RunState.DONE, None, gained_bits=1.0, price_s=1.0, seconds=1.0, overhead=0.0),
        Run(1, RunState.DONE, None, gained_bits=1.0, price_s=5e-324, seconds=1.0, overhead=5e-324),
    ],
)
def test_bits_by_nothing_are_none(run: Run) -> None:
    worth = worth_of(run)
    assert worth.bits_per_lost_s is None
    assert worth.expected_bits_per_s is None
    assert all(v is None or math.isfinite(v) for v in asdict(worth).values())


def told(number: int) -> Run:
    return Run(
        number, RunState.DONE, None, gained_bits=0.5, price_s=2.0, seconds=2.0, source="told"
    )


def repeated(view: StudyView) -> StudyView:
    """The view with prices that were learned: run 6 repeats run 3 and takes twice as long."""
    first = view.run(3)
    runs = []
    for run, seconds in ((first, 9.8), (replace(first, number=6), 19.6)):
        basis = PriceBasis(9.8, 9.8, 0.02, 0.02, 0.05, 9.8, source="catalogue")
        if run.number == 6:
            basis = replace(basis, expected_s=10.1, runs=1, fails=1 / 30)
        chosen = replace(run.proposal, run=run.number, basis=basis)
        runs.append(replace(run, proposal=chosen, seconds=seconds, price_s=seconds * 1.02))
    others = [r for r in view.runs if r.number != 3]
    kept = sorted([*others, *runs, told(7)], key=lambda r: r.number)
    return replace(view, runs=tuple(kept))


def test_a_probe_s_runs_add_up(view: StudyView) -> None:
    found = {p.probe: p for p in by_probe(repeated(view).runs)}
    assert list(found) == [
        "ab_steps",
        "device_busy",
        "gil_sampler",
        "step_trace",
        "intervene",
        "told",
    ]
    sampler = found["gil_sampler"]
    assert (sampler.runs, sampler.failures) == (2, 0)
    assert sampler.worth.expected_bits == pytest.approx(2 * 0.62)
    assert sampler.worth.gained_bits == pytest.approx(2 * view.run(3).gained_bits)
    assert sampler.worth.price_s == pytest.approx(3 * 9.8 * 1.02)
    assert sampler.worth.lost_s == pytest.approx(3 * 9.8 * 0.02)
    assert 1.2 < sampler.took_ratio < 1.6  # once as long as announced, once twice as long
    assert sampler.fails == pytest.approx(0.1 / 4)
    assert (found["step_trace"].failures, found["step_trace"].worth.gained_bits) == (1, 0.0)
    assert found["told"].worth.expected_bits is None
    assert (found["told"].took_ratio, found["told"].fails) == (None, None)


def test_exact_prices_teach_nothing(view: StudyView) -> None:
    recorded = [replace(r, source="recorded") for r in view.runs if r.state is RunState.DONE]
    assert {(p.took_ratio, p.fails) for p in by_probe(recorded)} == {(None, None)}


# -- where it is shown -------------------------------------------------------------------


def test_json_has_it_for_every_run_and_probe(view: StudyView) -> None:
    shown = repeated(view)
    data = json.loads(json.dumps(as_json(shown), allow_nan=False))
    assert [r["worth"] for r in data["runs"]] == [asdict(worth_of(r)) for r in shown.runs]
    assert [p["probe"] for p in data["probes"]] == [p.probe for p in shown.probes]
    assert data["probes"][0]["worth"]["bits_per_lost_s"] is None  # it disturbed nothing
    assert data["runs"][-2]["proposal"]["basis"]["runs"] == 1
    assert data["runs"][0]["proposal"]["basis"] is None


def test_the_table_of_runs_has_it(view: StudyView) -> None:
    table = dataframe(view.runs)
    expected = [worth_of(r) for r in view.runs]
    for column in ("expected_bits", "gained_bits", "bits_per_s", "bits_per_lost_s", "lost_s"):
        values = [getattr(w, column) for w in expected]
        assert [None if v != v else v for v in table[column]] == values
        assert not any(isinstance(v, float) and math.isinf(v) for v in table[column])


def test_the_terminal_says_it(view: StudyView) -> None:
    shown = repeated(view)
    worth = worth_of(shown.run(6))
    why = drawn(terminal.why(shown, 6))
    assert f"{worth.bits_per_s:.3g} bits/s" in why
    assert f"{worth.bits_per_lost_s:.3g} bits per second lost" in " ".join(why.split())
    assert "9.8 s announced (catalogue); by 1 run here it takes 1x that" in why
    assert "20 s, 9.8 s expected" in why
    status = drawn(terminal.status(shown))
    for said in (
        "per s lost",
        "gil_sampler",
        f"{shown.probes[2].took_ratio:.2g}x",
        "1 (1 failed)",
    ):
        assert said in status


def test_the_page_says_it(view: StudyView) -> None:
    shown = repeated(view)
    page = as_html(shown)
    for said in (
        "What each probe told for its price",
        "What each run told for its price",
        "Per s lost",
        say.price_basis(shown.run(6).proposal.basis),
        f"{shown.probes[2].took_ratio:.2g}x",
        f"{worth_of(shown.run(6)).bits_per_s:.3g}",
    ):
        assert said in page
    assert "nan" not in page.lower().split("<footer>")[0].replace("finance", "")


def test_where_a_price_comes_from_in_words() -> None:
    basis = PriceBasis(2.0, 2.0, fails=0.05, failing_s=2.0, source="assumption")
    assert say.price_basis(basis) == (
        "2 s announced (assumption); not run yet: right within 2x, failing in 5.0%, both assumed"
    )
    tried = replace(basis, expected_s=6.0, runs=3, failures=1, fails=0.22, failing_s=30.0)
    assert say.price_basis(tried) == (
        "2 s announced (assumption); by 3 runs here it takes 3x that, and fails in 22% after 30 s"
    )
    assert say.price_basis(PriceBasis(2.0, 2.0, source="case file")) == (
        "2 s announced (case file), which is exact"
    )
