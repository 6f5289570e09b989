from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import RenderableType

from argus_bed.errors import UnknownName
from argus_bed.records import Run, RunState
from argus_bed.report import terminal
from argus_bed.report.view import StudyView


def drawn(content: RenderableType, width: int = 80) -> str:
    file = io.StringIO()
    terminal.console(file, width=width).print(content)
    return file.getvalue()


def everything(view: StudyView) -> list[RenderableType]:
    return [
        terminal.question(view),
        terminal.status(view),
        terminal.verdict(view.verdict, html="report.html"),
        *(terminal.finished_round(view, run) for run in view.runs),
        *(terminal.why(view, run.number) for run in view.runs),
    ]


@pytest.mark.parametrize("width", [60, 80, 100])
def test_nothing_is_wider_than_the_terminal_or_coloured_in_a_file(
    view: StudyView, width: int
) -> None:
    for content in everything(view):
        lines = drawn(content, width).splitlines()
        assert max(map(len, lines)) <= width
        assert "\x1b" not in "".join(lines)


def test_a_round_says_what_was_asked_expected_read_and_learned(view: StudyView) -> None:
    out = drawn(terminal.finished_round(view, view.run(3)))
    for said in (
        "gil_sampler(hz=200)",
        "Do runnable threads wait",
        "0.62 ± 0.013 bits",
        "9.8 s",
        "step_trace: 0.91 bits for 31 s",
        "11% to 31% of the step",
        "17.6% of the step",
        "92%",
        "▲ 56.1 pt",
    ):
        assert said in out


def test_the_verdict_says_all_of_itself(view: StudyView) -> None:
    out = drawn(terminal.verdict(view.verdict, html="out/report.html"), 100)
    for said in (
        "Decided: gil held, >99.9%",
        "thread",
        "runs 5, 3, 1",
        "establishes",
        "leaves open",
        "Release the lock",
        "48.5 s in 5 runs",
        "out/report.html",
    ):
        assert said in out


def test_why_shows_how_far_off_each_hypothesis_was(view: StudyView) -> None:
    out = drawn(terminal.why(view, 3))
    assert "+4.1 sd" in out
    assert "-3.20 bits" in out
    with pytest.raises(UnknownName, match="run '9'"):
        terminal.why(view, 9)


def test_a_study_without_runs_renders(empty: StudyView) -> None:
    out = "".join(drawn(content) for content in everything(empty))
    assert "no runs yet" in out
    assert "Nothing has been read yet." in out


def test_runs_of_every_state_render(view: StudyView) -> None:
    chosen = view.run(1).proposal
    runs = tuple(Run(i, state, chosen if i % 2 else None) for i, state in enumerate(RunState, 1))
    out = "".join(drawn(content) for content in everything(replace(view, runs=runs)))
    for state in RunState:
        assert state.value in out


def test_an_unused_reading_says_why(view: StudyView) -> None:
    run = view.run(1)
    void = replace(run.readings[0], used=False, why_not="the profiler removed the overlap")
    out = drawn(terminal.finished_round(view, replace(run, readings=(void,))), 100)
    assert "not used: the profiler removed the overlap" in out


def test_hostile_names_neither_colour_nor_move_anything(view: StudyView) -> None:
    hostile = "[bold red]x[/] \x1b[31m\x1b[2J\r"
    run = replace(view.run(1), error=hostile, state=RunState.FAILED)
    bad = replace(view, name=hostile, question=hostile, conditions={hostile: hostile}, runs=(run,))
    for content in everything(bad):
        out = drawn(content)
        assert "\x1b" not in out
        assert "\r" not in out
    assert "[bold red]x[/]" in drawn(terminal.question(bad))


def test_bars_are_as_long_as_their_share() -> None:
    for share, full in ((0.0, 0), (0.5, 12), (1.0, 24), (1.7, 24), (-1.0, 0)):
        bar = terminal.bar(share, None, "blue").plain
        assert (len(bar), bar.count("█")) == (24, full)
    assert terminal.bar(0.5, 0.25, "blue").plain[6] == "│"


def test_listings_keep_their_cells() -> None:
    out = drawn(terminal.listing(("probe", "question"), [("ab_steps", "Which arm is slower?")]))
    assert "ab_steps" in out
    assert "Which arm is slower?" in out


def test_pairs_show_what_both_expect_and_what_parts_them(view: StudyView) -> None:
    out = drawn(terminal.pairs(view), 100)
    for said in (
        "gil held",
        "hidden sync",
        "gil_sampler(hz=200)",
        "0.94",
        "11% to 31% of the step",
    ):
        assert said in out


@pytest.mark.promise("A48")
def test_the_call_chain_that_kept_others_waiting_is_named(view: StudyView) -> None:
    chains = [{"condition": "candidate", "chain": ["loop.py:8 step", "io.py:3 wait"], "share": 0.9}]
    run = replace(view.runs[-1], environment={"call_chains": chains})
    shown = drawn(terminal.why(replace(view, runs=(run,)), run.number), width=120)
    assert "candidate, 90% of the wait: loop.py:8 step → io.py:3 wait" in shown
