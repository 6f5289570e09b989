"""Measures the zoo's ``gil`` workload with several probes and writes gil-case.json.

uv run python notebooks/record_gil_case.py

Every number in the case was read on the machine that ran this; prices are the seconds
that each probe took. Nothing is smoothed, dropped or repeated until it looks better.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from argus_bed.probe import catalogue
from argus_bed.quantity import quantity
from argus_bed.study.live import LiveSystem
from argus_bed.zoo.gil import workload

PROBES = {  # probe -> kind, as the case format names kinds
    "gc_callbacks": "gc_callbacks",
    "gil_ticks": "gil_ticks",
    "microbenchmark_hot": "microbenchmark_hot",
    "paired_end_to_end": "end_to_end",
    "rusage_counters": "rusage_counters",
    "stage_timer": "stage_timer",
    "controlled_variant": "controlled_variant",
}
HYPOTHESES = [
    "gc_pause",
    "gil_held",
    "hidden_sync",
    "no_effect",
    "none_of_these",
    "thread_oversubscription",
]
SEED = 20


def main() -> None:
    known = catalogue()
    system = LiveSystem(workload, {name: known[name] for name in PROBES})
    try:
        case = record(system)
    finally:
        system.close()
    path = Path(__file__).with_name("gil-case.json")
    path.write_text(json.dumps(case, indent=1, allow_nan=False) + "\n", encoding="ascii")
    print(f"wrote {path}", file=sys.stderr)


def record(system: LiveSystem) -> dict[str, object]:
    """The case: cheapest plan of each probe, and one per controlled variant."""
    chosen = {}
    for plan in sorted(system.plans({}, ()), key=lambda p: -p.price.seconds):
        label = plan.probe
        if plan.probe == "controlled_variant":
            label = f"variant {plan.settings['variant']}"
        chosen[label] = plan
    probes = []
    for label, plan in sorted(chosen.items()):
        observation = system.execute(plan, SEED)
        probes.append(
            {
                "name": label,
                "kind": PROBES[plan.probe],
                "cost_s": round(observation.seconds, 2),
                "perturbation": round(max(observation.overhead or 0.0, 0.0), 4),
                "basis": "recorded",
                "outcomes": [
                    {
                        "condition": s.cell.condition,
                        "quantity": s.cell.quantity,
                        **({"stage": s.cell.stage} if s.cell.stage else {}),
                        "unit": quantity(s.cell.quantity).unit,
                        "values": [float(f"{v:.6g}") for v in s.values[:24]],
                    }
                    for s in observation.samples
                ],
                "note": f"{plan.key}, run on this machine",
            }
        )
        print(f"{label}: {observation.seconds:.1f} s", file=sys.stderr)
    frame = system.frame
    return {
        "schema": "argus-bed/case/1",
        "name": "gil-case",
        "question": system.question,
        "source": "argus-bed zoo workload gil, measured by notebooks/record_gil_case.py",
        "established": "intervention",
        "metric": {"quantity": frame.metric, "unit": quantity(frame.metric).unit},
        "conditions": {
            c.name: "an arm as it is" if c.is_arm else f"{c.of} with {c.knob}={c.value}"
            for c in frame.conditions
        },
        "interventions": {
            c.name: {
                "of": c.of,
                "removes": sorted(c.removes),
                "adds": sorted(c.adds),
                "knob": c.knob,
                "value": c.value,
            }
            for c in frame.conditions
            if not c.is_arm
        },
        "stages": {
            s.name: {"kind": s.kind, "changed": s.changed, "what": s.what} for s in frame.stages
        },
        "hypotheses": HYPOTHESES,
        "probes": probes,
        "verdict": {
            "status": "decided",
            "causes": ["gil_held"],
            "why": "the candidate waits through a call that keeps the interpreter lock",
        },
    }


if __name__ == "__main__":
    main()
