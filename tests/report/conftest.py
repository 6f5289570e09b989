"""A study of five runs, as the study engine would hand it to a report."""

from __future__ import annotations

import math

import pytest

from argus_bed.records import (
    Prediction,
    Proposal,
    ReadingRecord,
    Run,
    RunState,
    Status,
    Verdict,
)
from argus_bed.report.view import HypothesisText, Pair, SignalText, StudyView

CLAIMS = {
    "gil_held": (
        "A wait keeps the interpreter lock, so other Python threads stand still.",
        "thread",
        0.16,
    ),
    "overlap_lost": (
        "Communication that used to hide behind computation is exposed.",
        "synchronisation boundary",
        0.16,
    ),
    "off_critical_path": ("The faster part is not on the critical path.", "computation", 0.24),
    "hidden_sync": (
        "A blocking call waits for the device on every step.",
        "synchronisation boundary",
        0.16,
    ),
    "allocator_churn": ("Memory is freed and fetched again inside the step.", "memory path", 0.12),
    "no_effect": ("Both arms take the same time.", "none", 0.11),
    "none_of_these": ("Something that no listed hypothesis describes.", "none", 0.05),
}
STEP = "step_time[candidate] vs baseline"
GIL = "gil_wait[candidate]"
BUSY = "device_busy[candidate] vs baseline"
FREED = "step_time[candidate:io=nogil] vs candidate"


def posterior(prior: dict[str, float], bits: dict[str, float]) -> dict[str, float]:
    weights = {n: p * 2 ** bits[n] for n, p in prior.items()}
    total = sum(weights.values())
    return {n: w / total for n, w in weights.items()}


def proposal(
    number: int, plan: str, reading: str, means: list[tuple[float, float]], **more
) -> Proposal:
    names = list(CLAIMS)
    given = {
        "run": number,
        "plan": plan,
        "probe": plan.partition("(")[0],
        "settings": {"blocks": 20},
        "conditions": ("baseline", "candidate"),
        "question": "Which arm is slower, and by how much?",
        "gain_bits": 0.62,
        "gain_error": 0.013,
        "price_s": 8.4,
        "perturbation": 0.0,
        "score": 0.074,
        "reason": "It separates overlap_lost from off_critical_path for the least time.",
        "predictions": (Prediction(reading, dict(zip(names, means, strict=True))),),
        "runners_up": (("step_trace", 0.91, 31.0, 0.029), ("counters", 1.1, 190.0, 0.006)),
    }
    return Proposal(**(given | more))


def reading(text: str, value: float, noise: float, shown: str, **more) -> ReadingRecord:
    quantity = text.partition("[")[0]
    return ReadingRecord(text, quantity, "candidate", "baseline", None, value, noise, shown, **more)


@pytest.fixture
def view() -> StudyView:
    names = list(CLAIMS)
    belief = {n: c[2] for n, c in CLAIMS.items()}
    rounds = [
        (
            proposal(
                1,
                "ab_steps(blocks=20)",
                STEP,
                [
                    (0.2, 0.1),
                    (0.22, 0.12),
                    (0.0, 0.02),
                    (0.18, 0.1),
                    (0.15, 0.1),
                    (0.0, 0.004),
                    (0.0, 0.4),
                ],
            ),
            reading(STEP, 0.193, 0.006, "+21.3%"),
            [0.9, 0.8, -4.1, 0.9, 0.7, -6.0, -1.2],
        ),
        (
            proposal(
                2,
                "device_busy",
                BUSY,
                [
                    (-0.9, 0.4),
                    (-0.7, 0.4),
                    (0.0, 0.2),
                    (-0.9, 0.5),
                    (-0.3, 0.3),
                    (0, 0.1),
                    (0.0, 1.0),
                ],
                price_s=6.1,
                perturbation=0.004,
                score=0.051,
                question="Is the device waiting?",
            ),
            reading(BUSY, -0.95, 0.12, "0.39x odds"),
            [0.7, 0.4, -3.0, 0.6, -2.4, -5.0, -0.6],
        ),
        (
            proposal(
                3,
                "gil_sampler(hz=200)",
                GIL,
                [(2.1, 0.6), *[(0.1, 0.4)] * 5, (0.1, 1.2)],
                price_s=9.8,
                perturbation=0.02,
                score=0.09,
                question="Do runnable threads wait for the interpreter lock?",
            ),
            reading(GIL, 1.76, 0.08, "17.6% of the step"),
            [1.2, -3.2, -3.2, -3.1, -3.2, -3.2, -2.6],
        ),
        (
            proposal(
                5,
                "intervene(io=nogil)",
                FREED,
                [(-0.18, 0.03), *[(0.0, 0.02)] * 5, (0.0, 0.4)],
                price_s=17.0,
                perturbation=0.0,
                score=0.03,
                conditions=("candidate", "candidate:io=nogil"),
                question="Does the time come back when the lock is released?",
            ),
            reading(FREED, -0.176, 0.007, "-16.1%"),
            [0.12, -9.0, -9.0, -9.0, -9.0, -9.0, -2.4],
        ),
    ]
    runs = []
    for chosen, read, evidence in rounds:
        bits = dict(zip(names, evidence, strict=True))
        after = posterior(belief, bits)
        runs.append(
            Run(
                chosen.run,
                RunState.DONE,
                chosen,
                (read,),
                before=belief,
                after=after,
                bits=bits,
                gained_bits=sum(p * math.log2(p / belief[n]) for n, p in after.items() if p > 0),
                price_s=chosen.price_s * 1.1,
                seconds=chosen.price_s,
                overhead=chosen.perturbation,
            )
        )
        belief = after
    failed = proposal(4, "step_trace(steps=5)", STEP, [(0.2, 0.1)] * 7, price_s=31.0)
    runs.insert(
        3, Run(4, RunState.FAILED, failed, error="the profiler lost 40% of its events", seconds=3.0)
    )
    return StudyView(
        name="gil-wait",
        question="The I/O client got 3x faster. Why did the service not?",
        metric="step_time",
        hypotheses={n: HypothesisText(*c) for n, c in CLAIMS.items()},
        runs=tuple(runs),
        verdict=Verdict(
            Status.DECIDED,
            ("gil_held",),
            belief["gil_held"],
            tuple(sorted(belief.items(), key=lambda i: -i[1])),
            "Releasing the lock gives back 16% of the step, which only gil_held predicts.",
            (
                "The client's wait holds the interpreter lock.",
                "Without the lock the step is 16% shorter.",
            ),
            ("Whether other waits in the process do the same.",),
            (5, 3, 1),
            "Release the lock around recv() in client.c, then run `argus-bed validate`.",
            part="thread",
            price_s=48.5,
            runs=5,
            predicted_effect="step time -14% to -18%",
        ),
        created=1_790_000_000.0,
        conditions={
            "baseline": "client 1.8",
            "candidate": "client 2.0, 3x faster alone",
            "candidate:io=nogil": "client 2.0 with the lock released; removes gil_held",
        },
        spent_s=48.5,
        budget_s=600.0,
        signals={
            "ab_steps": SignalText(
                "Which arm is slower, and by how much?",
                "The size of the difference.",
                "Why it differs.",
                "end_to_end",
                "step",
                "Time the two arms by hand with a stopwatch.",
                "none",
            ),
            "gil_sampler": SignalText(
                "Do runnable threads wait for the interpreter lock?",
                "How long runnable threads stand still.",
                "Who holds the lock.",
                "trace",
                "thread",
                "Compare with py-spy dump --gil.",
            ),
        },
        pairs=(
            Pair(
                "gil_held",
                "hidden_sync",
                "gil_sampler(hz=200)",
                0.94,
                9.8,
                GIL,
                ((2.1, 0.6), (0.1, 0.4)),
            ),
            Pair("gil_held", "overlap_lost", "gil_sampler(hz=200)", 0.91, 9.8),
            Pair("hidden_sync", "overlap_lost", "step_trace(steps=5)", 0.55, 31.0),
        ),
        floor="A/A runs differ by less than 0.6% in 95% of pairs",
    )


@pytest.fixture
def empty(view: StudyView) -> StudyView:
    """The same study before its first run."""
    from dataclasses import replace

    start = Verdict(
        Status.OPEN, (), 0.0, (), "Nothing has been read yet.", (), (), (), "Run `argus-bed next`."
    )
    return replace(view, runs=(), verdict=start, spent_s=0.0, signals={}, pairs=(), floor="")
