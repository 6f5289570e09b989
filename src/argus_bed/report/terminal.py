"""A study in a terminal of 80 to 100 columns.

Functions return rich renderables; `console` makes the one to print them on. All text
that came from outside goes through `describe.clean` into `rich.text.Text`, never
through markup, so a name can neither colour nor move anything. Colour only repeats
what is written, so nothing is lost without it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import IO

from rich.box import ROUNDED, SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from argus_bed.records import Proposal, ReadingRecord, Run, RunState, Status, Verdict
from argus_bed.report import describe as say
from argus_bed.report.view import OVER, StudyView, compared
from argus_bed.report.worth import worth_of

WIDEST = 100
_BAR = 24
_RULE = SIMPLE_HEAD
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
    table = Table(box=_RULE, header_style="dim", pad_edge=False, padding=(0, 1), show_edge=False)
    for name, justify in columns:
        table.add_column(text(name), justify="right" if justify == "r" else "left", overflow="fold")
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
    return Group(panel, Text(), hypotheses(view), Text())


def hypotheses(view: StudyView) -> RenderableType:
    """Every rival explanation: name, prior, the part it blames, its claim."""
    table = _table(("hypothesis", "l"), ("prior", "r"), ("claim, and what it blames", "l"))
    table.columns[2].ratio = 1
    table.expand = True
    for name, hypothesis in view.hypotheses.items():
        blamed = "" if hypothesis.part == "none" else f"  ({hypothesis.part})"
        claim = text(hypothesis.claim).append_text(text(blamed, "dim"))
        table.add_row(text(say.label(name), "bold"), say.percent(hypothesis.prior), claim)
    return table


# -- a round -----------------------------------------------------------------------


def proposal(
    chosen: Proposal,
    *,
    names: Iterable[str] = (),
    expectations: bool = True,
    read: Mapping[str, ReadingRecord] | None = None,
) -> RenderableType:
    """A chosen measurement: why this one, what it costs, what each hypothesis expects.

    names : the hypotheses to show expectations of, all if empty.
    read : what was read, by the reading's text, once it is known.
    """
    head = Text.assemble(
        (f"run {chosen.run}  ", "bold cyan"), text(chosen.plan, "bold"), "  ",
        text(" · ".join(chosen.conditions), "dim"),
    )  # fmt: skip
    facts = _grid(None, 1)
    facts.add_row(Text("asks", "dim"), text(chosen.question))
    facts.add_row(Text("because", "dim"), text(chosen.reason))
    facts.add_row(Text("gain", "dim"), text(_bargain(chosen)))
    if chosen.basis is not None and chosen.basis.runs:  # before, there is nothing to say
        facts.add_row(Text("price", "dim"), text(say.price_basis(chosen.basis)))
    facts.add_row(Text("disturbs", "dim"), text(_disturbs(chosen.perturbation)))
    if chosen.runners_up:
        plan, gain, price, score = chosen.runners_up[0]
        rival = f"{plan}: {say.bits(gain)} for {say.seconds(price)}, {score:.3g} bits/s"
        facts.add_row(Text("runner-up", "dim"), text(rival))
    if chosen.tied_with:
        facts.add_row(Text("tied with", "dim"), text(", ".join(chosen.tied_with)))
    if chosen.needs_approval:
        facts.add_row(Text("waits", "bold yellow"), text(f"for approval: risk {chosen.risk}"))
    parts: list[RenderableType] = [head, Padding(facts, (0, 0, 0, 2))]
    if chosen.predictions and expectations:
        parts.append(_expectations(chosen, tuple(names), read or {}))
    return Group(*parts)


def _disturbs(share: float) -> str:
    shown = say.disturbance(share)
    return "nothing" if shown == "none" else f"a step takes {shown} while it is measured"


def _bargain(chosen: Proposal) -> str:
    return (
        f"{say.bits(chosen.gain_bits, chosen.gain_error)} about the {chosen.target} for "
        f"{say.seconds(chosen.price_s)}: {chosen.score:.3g} bits/s"
    )


def _expectations(
    chosen: Proposal, names: tuple[str, ...], read: Mapping[str, ReadingRecord]
) -> RenderableType:
    parts: list[RenderableType] = []
    for prediction in chosen.predictions:
        name = say.reading_name(prediction.reading)
        table = _table((str(name), "l"), ("expected, 9 times in 10", "r"))
        for hypothesis, (mean, sd) in prediction.by_hypothesis.items():
            if names and hypothesis not in names:
                continue
            shown = say.interval(mean, sd, name.quantity, contrast=name.against is not None)
            table.add_row(text(f"if {say.label(hypothesis)}"), text(shown))
        if reading := read.get(prediction.reading):
            table.add_row(Text("read", "bold"), text(reading.shown, "bold"))
        parts.append(_below(table))
    return Group(*parts)


def _below(content: RenderableType) -> Padding:
    """Indented under the heading of a round, one line lower."""
    return Padding(content, (1, 0, 0, 2))


def readings(run: Run, *, but: Collection[str] = ()) -> RenderableType | None:
    """What a run read, and why a reading was left out if it was; None if there is nothing.

    but : readings that are shown elsewhere, unless they need a word.
    """
    if run.error:
        return _below(text(f"{run.state.value}: {run.error}", "red"))
    rows = [r for r in run.readings if r.text not in but or not r.used]
    table = _table(("read", "l"), ("", "r"), ("", "l"))
    for reading in rows:
        name = say.reading_name(reading.text)
        note = "" if reading.used else f"not used: {reading.why_not}"
        table.add_row(text(name), text(reading.shown, "bold"), text(note, "yellow"))
    return _below(table) if rows else None


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


def finished_round(view: StudyView, run: Run, *, expectations: bool = True) -> RenderableType:
    """One round from its reason to the belief after it."""
    parts: list[RenderableType | None] = []
    shown: dict[str, ReadingRecord] = {}
    if run.proposal is not None:
        names = _leaders(run.before or view.prior)
        shown = {p.reading: r for p, r in compared(run) if r is not None}
        parts.append(proposal(run.proposal, names=names, expectations=expectations, read=shown))
    else:
        parts.append(Text.assemble((f"run {run.number}  ", "bold cyan"), (run.source, "bold")))
    parts.append(readings(run, but=shown))
    if run.after:
        parts.append(Text())
        parts.append(beliefs(run.after, run.before or None, view.prior))
        parts.append(Padding(text(f"learned {say.learned(worth_of(run))}", "dim"), (0, 0, 0, 2)))
    return Group(*(p for p in parts if p is not None), Text())


def _leaders(belief: Mapping[str, float], most: int = 5) -> list[str]:
    """The hypotheses worth a line: the most probable ones when the run was chosen."""
    return sorted(belief, key=lambda n: (-belief[n], n))[:most]


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
    told = (probes(view), Text()) if view.probes else ()
    return Group(head, Text(), rows, Text(), *told, beliefs(view.now, None, view.prior))


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
    parts: list[RenderableType] = [finished_round(view, run, expectations=False)]
    if run.proposal is not None:
        facts = _grid(None, 1)
        for name_, content in _facts_of(run):
            facts.add_row(Text(name_, "dim"), text(content))
        parts.append(Padding(facts, (0, 0, 1, 2)))
    for prediction, reading in compared(run):
        name = say.reading_name(prediction.reading)
        title = str(name) + (f": read {reading.shown}" if reading else ": not read")
        table = _table(("hypothesis", "l"), ("expected (90%)", "r"), ("off by", "r"))
        for hypothesis, (mean, sd) in prediction.by_hypothesis.items():
            shown = say.interval(mean, sd, name.quantity, contrast=name.against is not None)
            off = "" if reading is None or sd <= 0 else f"{(reading.value - mean) / sd:+.1f} sd"
            table.add_row(text(say.label(hypothesis)), text(shown), off)
        parts += [text(title, "bold"), Padding(table, (0, 0, 1, 2))]
    if run.bits:
        table = _table(("hypothesis", "l"), ("evidence", "r"), ("before", "r"), ("after", "r"))
        for name_, weight in sorted(run.bits.items(), key=lambda item: -item[1]):
            table.add_row(
                text(say.label(name_)), f"{weight:+.2f} bits",
                say.percent(run.before.get(name_, 0.0)), say.percent(run.after.get(name_, 0.0)),
            )  # fmt: skip
        parts += [
            Text("evidence, relative to the average of all hypotheses", "bold"),
            Padding(table, (0, 0, 0, 2)),
        ]
    return Group(*parts)


def _facts_of(run: Run) -> Iterable[tuple[str, str]]:
    """What a run cost, beside what it was expected to, and the call chains that it names."""
    if (chosen := run.proposal) is None:
        return
    if chosen.basis is not None and not chosen.basis.runs:
        yield "price", say.price_basis(chosen.basis)
    if run.state in OVER:
        yield "paid", f"{say.seconds(run.price_s)}, {say.seconds(chosen.price_s)} expected"
        worth = worth_of(run)
        if worth.lost_s:
            yield "disturbed", f"the target lost {say.seconds(worth.lost_s)} of its time"
    for chain in say.call_chains(run):
        yield "call chain", chain


def probes(view: StudyView) -> RenderableType:
    """What each probe told for what it cost."""
    table = _table(("probe", "l"), ("runs", "r"), ("bits", "r"), ("expected", "r"), ("paid", "r"),
                   ("bits/s", "r"), ("per s lost", "r"), ("took", "r"))  # fmt: skip
    for found in view.probes:
        worth = found.worth
        failed = f" ({found.failures} failed)" if found.failures else ""
        table.add_row(
            text(found.probe), f"{found.runs}{failed}", f"{worth.gained_bits:.2f}",
            "" if worth.expected_bits is None else f"{worth.expected_bits:.2f}",
            say.seconds(worth.price_s), say.rate(worth.bits_per_s, ""),
            say.rate(worth.bits_per_lost_s, ""),
            "" if found.took_ratio is None else f"{found.took_ratio:.2g}x",
        )  # fmt: skip
    return table


def pairs(view: StudyView) -> RenderableType:
    """For each pair of hypotheses what both expect of the measurement that parts them best."""
    table = _table(("between", "l"), ("best measurement", "l"), ("one expects, or the other", "l"),
                   ("bits", "r"), ("price", "r"))  # fmt: skip
    for pair in view.pairs:
        words = say.expectations(pair.reading, pair.expected) if pair.expected else ()
        table.add_row(
            text(f"{say.label(pair.first)}\n{say.label(pair.second)}"), text(pair.plan),
            text("\n".join(words)), f"{pair.separation_bits:.2f}",
            "" if pair.price_s is None else say.seconds(pair.price_s),
        )  # fmt: skip
    return table


def listing(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> RenderableType:
    """A plain table, the last column widest, for lists of probes and hypotheses."""
    table = _table(*((name, "l") for name in columns))
    table.columns[-1].ratio = 1
    table.expand = True
    for row in rows:
        first, *rest = row
        table.add_row(text(first, "bold"), *(text(cell) for cell in rest))
    return table
