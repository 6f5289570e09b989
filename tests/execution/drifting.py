"""Two equal arms on a machine that gets slower with every step that anyone runs."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from argus_bed.workload import Workload

FILE = Path(tempfile.gettempdir()) / "argus-bed-drifting"
STEP_S = 0.01
DRIFT = 0.03


def setup(first: bool = False) -> None:
    if first:
        FILE.write_bytes(b"")


def step(state: None) -> None:
    with FILE.open("ab") as file:  # its size counts the steps of both processes
        file.write(b".")
        steps = file.tell()
    time.sleep(STEP_S * (1 + DRIFT * steps))


workload = Workload(
    "drifting",
    "Is the candidate slower?",
    setup,
    step,
    {"baseline": {"first": True}, "candidate": {}},
    warmup=0,
)
