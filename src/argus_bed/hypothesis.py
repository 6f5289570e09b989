"""A hypothesis is a PyMC model over the cells of a frame.

The library's hypotheses are mechanisms: functions that receive an `Anatomy` and say
which part of it the candidate changed. ::

    @hypothesis(
        claim="The wait keeps the interpreter lock, so other Python threads stand still.",
        part="thread", ...
    )
    def gil_held(step):
        extra = step.positive("extra", median=0.2, spread=1.0)
        step.extends(extra)
        step.carries("gil_wait", extra)

One file, one mechanism; the file's name is the mechanism's name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Literal, get_args

from argus_bed.anatomy import Anatomy
from argus_bed.discovery import discover
from argus_bed.errors import ArgusBedError, ConfigError, UnknownName, in_a_line
from argus_bed.frame import Frame, Intent

if TYPE_CHECKING:
    import pymc as pm

Part = Literal[
    "computation",
    "thread",
    "memory path",
    "synchronisation boundary",
    "measurement",
    "none",
]

NO_EFFECT = "no_effect"
NONE_OF_THESE = "none_of_these"
SECOND_CAUSE = 0.1
"""Prior odds of two causes at once against one (assumption: one is ten times as common)."""

BY_THE_WAY = 0.1
"""Odds that a change which was to leave speed alone made its part faster (assumption)."""


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A possible explanation.

    Parameters
    ----------
    name : slug, the same as its file's.
    claim : one sentence that could be false.
    changes : writes the mechanism on an `Anatomy` inside a PyMC model context.
    part : what kind of thing it blames.
    signature : what would be seen, in words.
    decisive_probe : kind of the cheapest probe that can decide it.
    intervention : the change that would test it.
    confused_with : names of the closest rivals.
    sources : where the claim and its priors come from.
    weight : prior odds against an ordinary mechanism.
    presumes_faster : it explains why a gain in the changed part does not show, and so is
        improbable where the change was not meant to make anything faster.
    together_with : prior odds that this cause and the one named are at work at once, where
        they are known to need each other (`SECOND_CAUSE` is for pairs nobody knows).
    causes : names of the mechanisms in it; two for a composite.
    """

    name: str
    claim: str
    changes: Callable[[Anatomy], None]
    part: Part
    signature: str = ""
    decisive_probe: str = ""
    intervention: str = ""
    confused_with: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    weight: float = 1.0
    presumes_faster: bool = False
    together_with: Mapping[str, float] = field(default_factory=dict)
    causes: tuple[str, ...] = ()

    def odds(self, intent: Intent) -> float:
        """Prior odds against an ordinary mechanism, of a change that was meant as ``intent``."""
        return self.weight * (BY_THE_WAY if self.presumes_faster and intent == "same" else 1.0)

    def model(self, frame: Frame) -> pm.Model:
        """The PyMC model over ``frame``.

        Deterministics ``cells`` and ``free``, both of shape (len(frame.cells),): the
        link-space value of every cell and the spread (sd) that the hypothesis leaves open;
        and ``parts``, of shape (len(causes),): see `Anatomy.finish`.
        """
        import pymc as pm

        with pm.Model() as model:
            anatomy = Anatomy(frame)
            self.changes(anatomy)
            anatomy.scope = ""
            anatomy.finish(self.causes)
        return model

    def __repr__(self) -> str:
        return f"<Hypothesis {self.name}>"


def hypothesis(
    *,
    claim: str,
    part: Part,
    signature: str = "",
    decisive_probe: str = "",
    intervention: str = "",
    confused_with: Iterable[str] = (),
    sources: Iterable[str] = (),
    weight: float = 1.0,
    presumes_faster: bool = False,
    together_with: Mapping[str, float] | None = None,
) -> Callable[[Callable[[Anatomy], None]], Hypothesis]:
    """Turn a function on an `Anatomy` into a `Hypothesis` that bears the function's name.

    Raises
    ------
    ConfigError : the claim is blank or the weight is not a positive number.
    """
    if not claim.strip():
        raise ConfigError("a hypothesis needs a claim: one sentence that could be false")
    if part not in get_args(Part):
        raise ConfigError(f"part={part!r}: one of {', '.join(get_args(Part))}")
    pairs = dict(together_with or {})
    for label, odds in (("weight", weight), *pairs.items()):
        if not (math.isfinite(odds) and odds > 0):
            raise ConfigError(f"{label}={odds!r}: prior odds are a positive number")

    def wrap(changes: Callable[[Anatomy], None]) -> Hypothesis:
        def scoped(step: Anatomy) -> None:
            step.scope = changes.__name__
            try:
                changes(step)
            except ArgusBedError:
                raise
            except Exception as error:  # a user's file; PyMC raises a dozen types
                raise ConfigError(
                    f"hypothesis {changes.__name__!r} does not build: {in_a_line(error)}"
                ) from error

        return Hypothesis(
            name=changes.__name__,
            claim=claim,
            changes=scoped,
            part=part,
            signature=signature,
            decisive_probe=decisive_probe,
            intervention=intervention,
            confused_with=tuple(confused_with),
            sources=tuple(sources),
            weight=weight,
            presumes_faster=presumes_faster,
            together_with=pairs,
            causes=(changes.__name__,),
        )

    return wrap


def compose(first: Hypothesis, second: Hypothesis, *, odds: float = SECOND_CAUSE) -> Hypothesis:
    """Both mechanisms at once on one anatomy.

    Either each takes its own time, or they only work together, so that removing one is
    enough; both are considered equally likely beforehand. ``odds`` are those of the two
    at once, where both are ordinary.
    """

    def changes(step: Anatomy) -> None:
        step.entangle(first.name, second.name)
        first.changes(step)
        second.changes(step)

    return Hypothesis(
        name=f"{first.name}+{second.name}",
        claim=f"{first.claim} And: {second.claim}",
        changes=changes,
        part=first.part,
        intervention=f"{first.intervention}; and {second.intervention}",
        decisive_probe=second.decisive_probe,
        confused_with=(first.name, second.name),
        sources=(*first.sources, *second.sources),
        weight=first.weight * second.weight * odds,
        presumes_faster=first.presumes_faster or second.presumes_faster,
        causes=(*first.causes, *second.causes),
    )


def catalogue(folders: Iterable[str] = ()) -> dict[str, Hypothesis]:
    """Every known hypothesis by name: the library's, entry points', and those in ``folders``.

    Raises
    ------
    ConfigError : a file does not load; the message names the file, line and reason.
    """
    return discover(Hypothesis, "argus_bed.models", folders)


def select(
    names: Iterable[str], known: Mapping[str, Hypothesis], max_causes: int = 1
) -> tuple[Hypothesis, ...]:
    """The hypotheses called ``names``, always with `no_effect` and `none_of_these`.

    With ``max_causes=2`` every pair of mechanisms is added as a composite. All pairs
    that are not known to need each other have together about `SECOND_CAUSE` times the odds
    of all single mechanisms.

    Raises
    ------
    UnknownName : a name is not in ``known``.
    ConfigError : fewer than two mechanisms are left, or ``max_causes`` is not 1 or 2.
    """
    if max_causes not in (1, 2):
        raise ConfigError(f"max_causes={max_causes}: 1 or 2")
    wanted = sorted({*names, NO_EFFECT, NONE_OF_THESE})
    for name in wanted:
        if name not in known:
            raise UnknownName("hypothesis", name, known)
    single = [known[name] for name in wanted]
    mechanisms = [h for h in single if h.name not in (NO_EFFECT, NONE_OF_THESE)]
    if len(mechanisms) < 2:
        raise ConfigError(
            f"hypotheses = {[h.name for h in mechanisms]}: a study compares at least two "
            f"mechanisms beside {NO_EFFECT} and {NONE_OF_THESE}"
        )
    pairs = []
    if max_causes == 2:
        ordinary = 2 * SECOND_CAUSE / math.fsum(h.weight for h in mechanisms)
        pairs = [
            compose(a, b, odds=a.together_with.get(b.name, b.together_with.get(a.name, ordinary)))
            for a, b in combinations(mechanisms, 2)
        ]
    return (*single, *pairs)


def prior_probabilities(
    hypotheses: Iterable[Hypothesis], intent: Intent = "unknown"
) -> dict[str, float]:
    """Prior probability of each hypothesis: its odds over the sum of all."""
    odds = {h.name: h.odds(intent) for h in hypotheses}
    total = math.fsum(odds.values())
    return {name: of / total for name, of in odds.items()}
