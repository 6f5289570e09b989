from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from argus_bed.errors import StorageError
from argus_bed.records import Prediction, ReadingRecord, Run, RunState
from argus_bed.report import svg
from argus_bed.report.html import as_html, heat, write_html
from argus_bed.report.view import HypothesisText, StudyView

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """Collects tags and text, and checks that tags nest."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


def test_the_page_says_the_verdict_first_and_everything_it_rests_on(view: StudyView) -> None:
    page = Page(as_html(view)).text
    order = [
        view.question,
        "Decided",
        "gil held",
        "What is established",
        "What stays open",
        "Next",
        "The rival explanations",
        "How the belief moved",
        "Evidence, in bits",
        "Expected, and read",
        "Every run, its price",
        "What each signal can",
        "Which measurement separates",
    ]
    places = [page.index(heading) for heading in order]
    assert places == sorted(places)
    for said in (
        "read 17.6% of the step",
        "11% to 31% of the step",
        "0.62 ± 0.013 bits",
        "+2.0%",
        "the profiler lost 40% of its events",
        "Who holds the lock.",
        "0.94 bits",
    ):
        assert said in page


def test_the_page_asks_for_nothing_and_runs_nothing(view: StudyView) -> None:
    page = as_html(view)
    tags = Page(page).tags
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in tags}
    for _, attributes in tags:
        assert not {"src", "href", "onload", "onclick", "xlink:href"} & set(attributes)
    assert "url(" not in page
    assert "@import" not in page
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


def test_every_drawing_is_well_formed_and_stays_in_its_frame(view: StudyView) -> None:
    drawings = re.findall(r"<svg.*?</svg>", as_html(view), re.DOTALL)
    assert len(drawings) > 10
    for drawing in drawings:
        root = ElementTree.fromstring(drawing)
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        for node in root.iter():
            for name in ("x", "cx", "x1", "x2"):
                assert -1 <= float(node.attrib.get(name, 0)) <= width
            for name in ("y", "cy", "y1", "y2"):
                assert -1 <= float(node.attrib.get(name, 0)) <= height


def test_hostile_text_is_shown_and_not_obeyed(view: StudyView) -> None:
    evil = "</title><script>alert('x')</script>\"'><img src=x onerror=alert(1)>{{ 7*7 }}\x1b"
    chosen = view.run(1).proposal
    assert chosen is not None
    told = Prediction(f"{evil}[a] vs b", {evil: (0.1, 0.1)})
    reading = ReadingRecord(told.reading, evil, evil, None, None, 0.1, 0.1, evil, False, evil)
    run = Run(
        1,
        RunState.DONE,
        replace(chosen, plan=evil, question=evil, reason=evil, predictions=(told,)),
        (reading,),
        before={evil: 1.0},
        after={evil: 1.0},
        bits={evil: 0.1},
        error=evil,
    )
    bad = replace(
        view,
        name=evil,
        question=evil,
        conditions={evil: evil},
        runs=(run,),
        floor=evil,
        hypotheses={evil: HypothesisText(evil, evil, 1.0)},
        metric=evil,
        validation=evil,
        signals={evil: next(iter(view.signals.values()))},
        verdict=replace(view.verdict, causes=(evil,), why=evil, establishes=(evil,), part=evil),
    )
    page = as_html(bad)
    parsed = Page(page)
    assert not {"script", "img"} & {tag for tag, _ in parsed.tags}
    assert all("onerror" not in attributes for _, attributes in parsed.tags)
    assert "{{ 7*7 }}" in parsed.text
    assert "\x1b" not in page
    for drawing in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        ElementTree.fromstring(drawing)


def test_a_study_without_runs_renders(empty: StudyView) -> None:
    page = Page(as_html(empty)).text
    assert "Nothing has been run yet." in page
    assert "How the belief moved" not in page


def test_runs_of_every_state_render(view: StudyView) -> None:
    chosen = view.run(1).proposal
    runs = tuple(Run(i, s, chosen if i % 2 else None) for i, s in enumerate(RunState, 1))
    page = Page(as_html(replace(view, runs=runs, created=None))).text
    for state in RunState:
        assert state.value in page


def test_many_hypotheses_share_the_last_colour(view: StudyView) -> None:
    many = {f"h{i}": HypothesisText("claim", "none", 1 / 30) for i in range(30)}
    after = {n: (0.71 if n == "h7" else 0.01) for n in many}
    run = replace(view.run(1), before={}, after=after, bits={}, number=1)
    wide = replace(view, hypotheses=many, runs=(run,))
    assert "22 others" in Page(as_html(wide)).text
    assert svg.colours(wide)["h7"] == "var(--c0)"


@pytest.mark.parametrize("sd", [0.0, 1e-9, 1e6, math.inf, math.nan])
@pytest.mark.parametrize("mean", [0.0, -40.0, math.nan])
@pytest.mark.parametrize("quantity", ["step_time", "gil_wait", "device_busy", "env_flag", "odd"])
def test_any_prediction_can_be_drawn(quantity: str, mean: float, sd: float) -> None:
    prediction = Prediction(f"{quantity}[candidate]", {"a": (mean, sd), "b": (0.0, 0.1)})
    for reading in (None, ReadingRecord("x", quantity, "c", None, None, 0.3, 0.1, "+35%")):
        drawing = str(svg.forecast(prediction, reading, {}, ["a", "b"]))
        ElementTree.fromstring(drawing)
        assert "nan" not in drawing


def test_evidence_has_one_hue_for_and_one_against() -> None:
    assert heat(None) == heat(0.0) == "transparent"
    assert "--for" in heat(1.0)
    assert "--against" in heat(-1.0)
    assert "100%" in heat(-40.0)


def test_a_page_that_cannot_be_written_says_so(view: StudyView, tmp_path: Path) -> None:
    assert write_html(view, tmp_path / "r.html").read_text().startswith("<!doctype html>")
    with pytest.raises(StorageError, match="writable path"):
        write_html(view, tmp_path / "missing" / "r.html")
