"""``demo``, ``zoo`` and ``replay``: questions whose answer is known."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argus_bed.cli.output import Format, FormatOption, emit, rows, say, show
from argus_bed.errors import UnknownName

if TYPE_CHECKING:
    from argus_bed.study.engine import Study
    from argus_bed.zoo import Entry

PANEL = "Known answers"
DEMO = "gil"

zoo = typer.Typer(no_args_is_help=True, help="Workloads with one known cause, really run.")

Fault = Annotated[bool, typer.Option("--fault-free", help="The twin in which nothing is wrong.")]
Seed = Annotated[int, typer.Option(min=0, help="Same seed and data, same decisions.")]
Name = Annotated[str, typer.Argument(help="Which one; see `argus-bed zoo list`.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("demo", rich_help_panel=PANEL)(demo)
    app.add_typer(zoo, name="zoo", rich_help_panel=PANEL)
    app.command("replay", rich_help_panel=PANEL)(replay)


def demo(
    name: Name = DEMO,
    listed: Annotated[bool, typer.Option("--list", help="Name the others.")] = False,
    fault_free: Fault = False,
    seed: Seed = 0,
    format: FormatOption = Format.TABLE,
) -> None:
    """Diagnose a workload of the zoo by really running it, and show every step."""
    if listed:
        zoo_list(format)
        return
    from argus_bed.cli.watch import Watch
    from argus_bed.report import terminal
    from argus_bed.report.data import as_json

    entry = _entry(name)
    folder = _writable(Path(".argus-bed"))
    study_name = f"demo-{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    watch = Watch(format)
    with watch.doing(f"starting {name}"):
        study = _study(entry, fault_free, folder / "demo.db", study_name, seed)
    with study:
        verdict = study.run(on_event=watch)
        page = study.report(folder / f"{study_name}.html")
        view = study.view()
    if format is Format.JSON:
        emit("demo", {"study": view.name, **as_json(view), "report": str(page)})
    else:
        show(terminal.verdict(verdict, html=str(page)))


@zoo.command("list")
def zoo_list(format: FormatOption = Format.TABLE) -> None:
    """Every workload of the zoo, with the cause that was put into it."""
    from argus_bed.zoo import ZOO

    if format is Format.JSON:
        listed = [_facts(name, entry) for name, entry in ZOO.items()]
        emit("zoo", {"workloads": listed})
        return
    facts = [_facts(name, entry) for name, entry in ZOO.items()]
    lines = [(f["name"], f["cause"], f["question"]) for f in facts]
    show(rows(("workload", "cause", "question"), lines))


@zoo.command("run")
def zoo_run(
    name: Name,
    repeats: Annotated[int, typer.Option(min=1, max=1000, help="Fresh studies.")] = 1,
    fault_free: Fault = False,
    seed: Seed = 0,
    format: FormatOption = Format.TABLE,
) -> None:
    """Diagnose a workload again and again, and count how often the answer was right."""
    entry = _entry(name)
    expected = "no_effect" if fault_free else str(entry.cause)
    found = []
    for repeat in range(repeats):
        found.append(_repeat(name, entry, fault_free, seed + repeat))
        last = found[-1]
        answer = "+".join(last["causes"]) or last["status"]
        say(f"{repeat + 1}/{repeats}: {answer} for {last['price_s']:.3g} s, {last['wall_s']:.3g} s")
    right = sum(expected in (r["status"], "+".join(r["causes"])) for r in found)
    if format is Format.JSON:
        facts = {"workload": name, "fault_free": fault_free, "expected": expected}
        emit("zoo-run", {**facts, "right": right, "repeats": found})
        return
    listed = [
        (r["seed"], r["status"], "+".join(r["causes"]), f"{r['probability']:.3f}", r["runs"],
         f"{r['price_s']:.3g} s", f"{r['share_of_all']:.2f}", f"{r['wall_s']:.3g} s")
        for r in found
    ]  # fmt: skip
    heads = ("seed", "status", "causes", "p", "runs", "price", "of all", "wall")
    show(rows(heads, listed), f"{right} of {repeats} as expected ({expected})")


def replay(
    case: Annotated[Path, typer.Argument(metavar="CASE.json", help="A recorded case.")],
    seed: Seed = 0,
    max_causes: Annotated[int, typer.Option(min=1, max=2, help="2: also pairs.")] = 2,
    format: FormatOption = Format.TABLE,
) -> None:
    """Play a recorded case: pay for its measurements one by one, then compare verdicts."""
    from argus_bed.cli.watch import Watch
    from argus_bed.workload.recorded import RecordedSystem, load_case

    # a file that is none is refused before the engine is loaded, which takes seconds
    recorded_case = RecordedSystem(load_case(case)).case
    from argus_bed.study.replay import replay_case

    watch = Watch(format)
    found = replay_case(recorded_case, seed=seed, on_event=watch, max_causes=max_causes)
    if found.missing:
        say(f"not in the library, so left out: {', '.join(found.missing)}")
    if format is Format.JSON:
        emit("replay", {f: getattr(found, f) for f in type(found).__dataclass_fields__})
        return
    from argus_bed.report import terminal

    status, causes = found.recorded
    recorded = f"{status} {' and '.join(causes)}".strip()
    share = found.price_s / found.price_of_all_s if found.price_of_all_s else 0.0
    show(
        terminal.verdict(found.verdict),
        f"recorded: {recorded}; {'the same' if found.matches else 'another'} verdict here, "
        f"for {share:.0%} of the price of every measurement",
    )


# -- shared -------------------------------------------------------------------------


def _entry(name: str) -> Entry:
    from argus_bed.zoo import ZOO

    if name not in ZOO:
        raise UnknownName("workload of the zoo", name, ZOO)
    return ZOO[name]


def _facts(name: str, entry: Entry) -> dict[str, Any]:
    return {"name": name, "cause": entry.cause, "question": entry.question}


def _writable(folder: Path) -> Path:
    """``folder`` if it can be written to, else a new temporary one."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        elsewhere = Path(tempfile.mkdtemp(prefix="argus-bed-"))
        say(f"{folder} cannot be written to; the study goes to {elsewhere}")
        return elsewhere


def _study(entry: Entry, fault_free: bool, ledger: str | Path, name: str, seed: int) -> Study:
    from argus_bed.study import open_study

    return open_study(name, workload=entry.load(fault_free), ledger=ledger, seed=seed)


def _repeat(name: str, entry: Entry, fault_free: bool, seed: int) -> dict[str, Any]:
    """One fresh study in memory: its verdict, what it paid, and what all probes would cost."""
    from argus_bed.design.price import price_of

    started = time.monotonic()
    with _study(entry, fault_free, "sqlite://", f"zoo-{name}-{seed}", seed) as study:
        offered = study.system.plans({}, ())
        once: dict[tuple[Any, ...], float] = {}
        for plan in offered:  # every probe once, at its default length, wherever it can point
            aim = (plan.probe, *((k, v) for k, v in plan.settings.items() if k != "blocks"))
            once.setdefault(aim, price_of(plan.price, harm=study.policy.harm))
        verdict = study.run()
        runs = study.view().runs
    of_all = sum(once.values())
    return {
        "seed": seed,
        "status": verdict.status,
        "causes": verdict.causes,
        "probability": verdict.probability,
        "ranking": verdict.ranking[:3],
        "plans": [r.proposal.plan for r in runs if r.proposal],
        "runs": len(runs),
        "price_s": verdict.price_s,
        "price_of_all_s": of_all,
        "share_of_all": verdict.price_s / of_all if of_all else None,
        "wall_s": time.monotonic() - started,
    }
