"""A study in a terminal of 80 to 100 columns.

Functions return rich renderables; `console` makes the one to print them on. All text
that came from outside goes through `describe.clean` into `rich.text.Text`, never
through markup, so a name can neither colour nor move anything. Colour only repeats
what is written, so nothing is lost without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import IO

from rich.box import ROUNDED, SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from argus_bed.report import describe as say
from argus_bed.report.view import StudyView, compared
from argus_bed.study.records import Proposal, Run, RunState, Status, Verdict

WIDEST = 100
_BAR = 24
_EIGHTHS = " ▏▎▍▌▋▊▉█"
HEADLINES = {
    Status.OPEN: "Open",
    Status.DECIDED: "Decided",
    Status.NO_EFFECT: "No effect",
    Status.UNDETERMINED: "Undetermined",
    Status.MODEL_INADEQUATE: "Model inadequate",
    Status.OUT_OF_BUDGET: "Out of budget",
}
"""Status in words, for every kind of report."""
_TONES = {
    Status.OPEN: "cyan",
    Status.DECIDED: "green",
    Status.NO_EFFECT: "green",
    Status.UNDETERMINED: "yellow",
    Status.MODEL_INADEQUATE: "red",
    Status.OUT_OF_BUDGET: "yellow",
}


def console(file: IO[str] | None = None, *, width: int | None = None) -> Console:
    """A console at most `WIDEST` columns wide that highlights nothing by itself."""
    made = Console(file=file, width=width, highlight=False, markup=False, emoji=False)
    if width is None and made.width > WIDEST:
        made.width = WIDEST
    return made


def text(content: object, style: str = "") -> Text:
    """Text from outside: cleaned, and never read as markup."""
    return Text(say.clean(content), style=style)


def _grid(*ratios: int | None) -> Table:
    table = Table.grid(padding=(0, 2))
    for r in ratios:
        table.add_column(ratio=r, no_wrap=False, overflow="fold")
    return table


def _table(*columns: tuple[str, str]) -> Table:
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, padding=(0, 1))
    for name, justify in columns:
        table.add_column(name, justify="right" if justify == "r" else "left", overflow="fold")
    return table


# -- the question ------------------------------------------------------------------


def question(view: StudyView) -> RenderableType:
    """What is asked, of what, and the rival explanations with their priors."""
    facts = _grid(None, 1)
    facts.add_row(Text("measured as", "dim"), text(view.metric))
    for name, what in view.conditions.items():
        facts.add_row(text(name, "dim"), text(what))
    if view.budget_s is not None:
        facts.add_row(Text("budget", "dim"), text(say.seconds(view.budget_s)))
    body = Group(text(view.question, "bold"), Text(), facts)
    panel = Panel(body, title=text(f"study {view.name}"), title_align="left", box=ROUNDED,
                  border_style="cyan", padding=(0, 1))  # fmt: skip
    return Group(panel, hypotheses(view))


def hypotheses(view: StudyView) -> RenderableType:
    """Every rival explanation: name, prior, the part it blames, its claim."""
    table = _table(("hypothesis", "l"), ("prior", "r"), ("blames", "l"), ("claim", "l"))
    table.columns[3].ratio = 1
    table.expand = True
    for name, hypothesis in view.hypotheses.items():
        table.add_row(
            text(say.label(name), "bold"),
            say.percent(hypothesis.prior),
            text("" if hypothesis.part == "none" else hypothesis.part, "dim"),
            text(hypothesis.claim),
        )
    return table


# -- a round -----------------------------------------------------------------------


def proposal(chosen: Proposal, *, names: Iterable[str] = ()) -> RenderableType:
    """A chosen measurement: why this one, what it costs, what each hypothesis expects.

    names : the hypotheses to show expectations of, all if empty.
    """
    head = Text.assemble(
        (f"run {chosen.run}  ", "bold cyan"), text(chosen.plan, "bold"), "  ",
        text(" · ".join(chosen.conditions), "dim"),
    )  # fmt: skip
    facts = _grid(None, 1)
    facts.add_row(Text("asks", "dim"), text(chosen.question))
    facts.add_row(Text("because", "dim"), text(chosen.reason))
    facts.add_row(Text("gain", "dim"), text(_bargain(chosen)))
    facts.add_row(
        Text("disturbs", "dim"), text(f"step time {say.disturbance(chosen.perturbation)}")
    )
    if chosen.runners_up:
        plan, gain, price, score = chosen.runners_up[0]
        rival = f"{plan}: {say.bits(gain)} for {say.seconds(price)}, {score:.3g} bits/s"
        facts.add_row(Text("runner-up", "dim"), text(rival))
    if chosen.tied_with:
        facts.add_row(Text("tied with", "dim"), text(", ".join(chosen.tied_with)))
    if chosen.needs_approval:
        facts.add_row(Text("waits", "bold yellow"), text(f"for approval: risk {chosen.risk}"))
    parts: list[RenderableType] = [head, Padding(facts, (0, 0, 0, 2))]
    if chosen.predictions:
        parts.append(_expectations(chosen, tuple(names)))
    return Group(*parts)


def _bargain(chosen: Proposal) -> str:
    return (
        f"{say.bits(chosen.gain_bits, chosen.gain_error)} about the {chosen.target} for "
        f"{say.seconds(chosen.price_s)}: {chosen.score:.3g} bits/s"
    )


def _expectations(chosen: Proposal, names: tuple[str, ...]) -> RenderableType:
    table = _table(("expected (90%)", "l"), ("if", "l"), ("then", "r"))
    for prediction in chosen.predictions:
        name = say.reading_name(prediction.reading)
        first = str(name)
        for hypothesis, (mean, sd) in prediction.by_hypothesis.items():
            if names and hypothesis not in names:
                continue
            shown = say.interval(mean, sd, name.quantity, contrast=name.against is not None)
            table.add_row(text(first), text(say.label(hypothesis)), text(shown))
            first = ""
    return Padding(table, (0, 0, 0, 2))


def readings(run: Run) -> RenderableType:
    """What a run read, and why a reading was left out if it was."""
    table = _table(("read", "l"), ("value", "r"), ("", "l"))
    for reading in run.readings:
        name = say.reading_name(reading.text)
        note = "" if reading.used else f"not used: {reading.why_not}"
        table.add_row(text(name), text(reading.shown, "bold"), text(note, "yellow"))
    if run.error:
        return Padding(text(f"{run.state.value}: {run.error}", "red"), (0, 0, 0, 2))
    return Padding(table, (0, 0, 0, 2))


def beliefs(
    after: Mapping[str, float],
    before: Mapping[str, float] | None = None,
    prior: Mapping[str, float] | None = None,
    *,
    most: int = 8,
) -> RenderableType:
    """A bar per hypothesis, a tick at its prior, and the change since ``before``."""
    table = Table.grid(padding=(0, 1))
    table.add_column(overflow="fold")
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    ranked = sorted(after, key=lambda n: (-after[n], n))
    for place, name in enumerate(ranked[:most]):
        tone = "bold" if place == 0 else ""
        start = None if prior is None else prior.get(name)
        table.add_row(
            text(say.label(name), tone),
            bar(after[name], start, "green" if place == 0 else "blue"),
            Text(say.percent(after[name]), tone),
            _change(after[name], None if before is None else before.get(name)),
        )
    if rest := ranked[most:]:
        total = sum(after[n] for n in rest)
        table.add_row(Text(f"{len(rest)} others", "dim"), bar(total, None, "blue"),
                      Text(say.percent(total), "dim"), Text())  # fmt: skip
    return Padding(table, (0, 0, 0, 2))


def bar(share: float, tick: float | None, style: str, width: int = _BAR) -> Text:
    """A bar of ``width`` cells for a share of one, with a tick mark."""
    eighths = round(max(0.0, min(share, 1.0)) * width * 8)
    cells = ["█"] * (eighths // 8)
    if eighths % 8:
        cells.append(_EIGHTHS[eighths % 8])
    cells += ["·"] * (width - len(cells))
    drawn = Text("".join(cells), style)
    drawn.stylize("dim", (eighths + 7) // 8)
    if tick is not None:
        at = min(int(tick * width), width - 1)
        mark = Text("│", "bold" if at * 8 >= eighths else "bold reverse")
        drawn = Text.assemble(drawn[:at], mark, drawn[at + 1 :])
    return drawn


def _change(after: float, before: float | None) -> Text:
    if before is None or abs(after - before) < 5e-4:
        return Text("=" if before is not None else "", "dim")
    points = 100 * (after - before)
    arrow, tone = ("▲", "green") if points > 0 else ("▼", "red")
    return Text(f"{arrow} {abs(points):.1f} pt", tone)


def finished_round(view: StudyView, run: Run) -> RenderableType:
    """One round from its reason to the belief after it."""
    parts: list[RenderableType] = []
    if run.proposal is not None:
        parts.append(proposal(run.proposal, names=view.ranked[:4]))
    else:
        parts.append(Text.assemble((f"run {run.number}  ", "bold cyan"), (run.source, "bold")))
    parts.append(readings(run))
    if run.after:
        parts.append(beliefs(run.after, run.before or None, view.prior))
        learned = (
            f"learned {say.bits(run.gained_bits)} in {say.seconds(run.price_s or run.seconds)}"
        )
        parts.append(Padding(text(learned, "dim"), (0, 0, 0, 2)))
    return Group(*parts)


# -- the verdict --------------------------------------------------------------------


def verdict(found: Verdict, *, html: str = "") -> RenderableType:
    """How the study stands, what that rests on, and what to do next."""
    headline = Text(HEADLINES[found.status], f"bold {_TONES[found.status]}")
    if found.causes:
        causes = " and ".join(say.label(c) for c in found.causes)
        headline.append_text(text(f": {causes}, {say.percent(found.probability)}", "bold"))
    facts = _grid(None, 1)
    for name, content in _verdict_facts(found, html):
        facts.add_row(Text(name, "dim"), content)
    return Panel(Group(headline, Text(), facts), title="verdict", title_align="left",
                 box=ROUNDED, border_style=_TONES[found.status], padding=(0, 1))  # fmt: skip


def _verdict_facts(found: Verdict, html: str) -> Iterable[tuple[str, Text]]:
    if found.part:
        yield "part", text(found.part)
    yield "because", text(found.why)
    if found.evidence:
        yield "evidence", text("runs " + ", ".join(map(str, found.evidence)))
    for name, points in (("establishes", found.establishes), ("leaves open", found.leaves_open)):
        for i, point in enumerate(points):
            yield ("" if i else name), text(f"- {point}")
    if found.next_action:
        yield "next", text(found.next_action, "bold")
    if found.predicted_effect:
        yield "predicted", text(found.predicted_effect)
    yield (
        "price",
        text(f"{say.seconds(found.price_s)} in {found.runs} run{'s' * (found.runs != 1)}"),
    )
    if html:
        yield "report", text(html, "underline")


# -- tables --------------------------------------------------------------------------


def status(view: StudyView) -> RenderableType:
    """Every run on one line each, then the belief."""
    table = _table(("run", "r"), ("state", "l"), ("measurement", "l"), ("gain", "r"),
                   ("learned", "r"), ("price", "r"), ("disturbed", "r"))  # fmt: skip
    for run in view.runs:
        chosen = run.proposal
        over = run.state in (RunState.DONE, RunState.VOID)
        table.add_row(
            str(run.number),
            Text(
                run.state.value,
                {RunState.FAILED: "red", RunState.STALE: "yellow"}.get(run.state, ""),
            ),
            text(chosen.plan if chosen else run.source),
            f"{chosen.gain_bits:.2f}" if chosen else "",
            f"{run.gained_bits:.2f}" if over else "",
            say.seconds(run.price_s or run.seconds) if over else "",
            say.disturbance(run.overhead) if over and run.overhead is not None else "",
        )
    head = Text.assemble(text(view.name, "bold"), "  ", text(HEADLINES[view.verdict.status]), "  ",
                         text(_spent(view), "dim"))  # fmt: skip
    rows: RenderableType = table if view.runs else Text("no runs yet", "dim")
    return Group(head, rows, beliefs(view.now, None, view.prior))


def _spent(view: StudyView) -> str:
    budget = "" if view.budget_s is None else f" of {say.seconds(view.budget_s)}"
    return f"{say.seconds(view.spent_s)}{budget} spent"


def why(view: StudyView, number: int) -> RenderableType:
    """How one run changed the belief: expected, read, and evidence per hypothesis.

    Raises
    ------
    UnknownName : no run has this number.
    """
    run = view.run(number)
    parts: list[RenderableType] = [finished_round(view, run)]
    for prediction, reading in compared(run):
        name = say.reading_name(prediction.reading)
        title = str(name) + (f": read {reading.shown}" if reading else ": not read")
        table = _table(("hypothesis", "l"), ("expected (90%)", "r"), ("off by", "r"))
        for hypothesis, (mean, sd) in prediction.by_hypothesis.items():
            shown = say.interval(mean, sd, name.quantity, contrast=name.against is not None)
            off = "" if reading is None or sd <= 0 else f"{(reading.value - mean) / sd:+.1f} sd"
            table.add_row(text(say.label(hypothesis)), text(shown), off)
        parts += [text(title, "bold"), Padding(table, (0, 0, 0, 2))]
    if run.bits:
        table = _table(("hypothesis", "l"), ("evidence", "r"), ("before", "r"), ("after", "r"))
        for name_, weight in sorted(run.bits.items(), key=lambda item: -item[1]):
            table.add_row(
                text(say.label(name_)), f"{weight:+.2f} bits",
                say.percent(run.before.get(name_, 0.0)), say.percent(run.after.get(name_, 0.0)),
            )  # fmt: skip
        parts += [Text("evidence against the average of all", "bold"), Padding(table, (0, 0, 0, 2))]
    return Group(*parts)


def listing(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> RenderableType:
    """A plain table, the last column widest, for lists of probes and hypotheses."""
    table = _table(*((name, "l") for name in columns))
    table.columns[-1].ratio = 1
    table.expand = True
    for row in rows:
        first, *rest = row
        table.add_row(text(first, "bold"), *(text(cell) for cell in rest))
    return table
