from __future__ import annotations

import sys
from typing import Any

import pytest

from argus_bed.errors import ConfigError, WorkloadFailed
from argus_bed.execution import LocalBench
from argus_bed.workload import command


def run(code: str, **more: Any) -> dict[Any, list[float]]:
    argv = [sys.executable, "-c", code]
    workload = command(
        "c", "Why?", argv, {"baseline": {}, "candidate": {"args": ["7"], "env": {"K": "2"}}}, **more
    )
    with LocalBench(workload) as bench:
        return dict(bench.interleave(("candidate",), blocks=1)["candidate"])


def test_lines_become_readings() -> None:
    found = run(
        "import json, os, sys\n"
        "print('starting', sys.argv[1])\n"
        "for t in (0.3, 0.1, 0.2): print(json.dumps({'step_time': t * int(os.environ['K'])}))\n"
        "print(json.dumps({'quantity': 'stage_time', 'stage': 'x', 'value': 1.5, 'unit': 'ms'}))\n"
        "print(json.dumps({'page_faults': int(sys.argv[1])}))"
    )
    assert found["step_time", None] == [0.4]
    assert found["stage_time", "x"] == [pytest.approx(1.5e-3)]
    assert found["page_faults", None] == [7.0]


def test_a_command_without_readings_is_timed() -> None:
    assert run("import time; time.sleep(0.05)")["step_time", None][0] > 0.05


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; sys.exit('out of range')", "ended with code 1: out of range"),
        ("print('{\"step_time\": -1}')", "cannot be negative"),
        ("print('{\"step_time\": NaN}')", "must be a finite number"),
        ("print('{\"step_tim\": 1}')", "did you mean 'step_time'"),
        ('print(\'{"quantity": "step_time"}\')', "expected quantity, value"),
        (
            'print(\'{"quantity": "step_time", "value": 1, "unit": "W"}\')',
            "does not convert",
        ),
    ],
)
def test_a_command_that_fails_says_why(code: str, message: str) -> None:
    with pytest.raises(WorkloadFailed, match=message):
        run(code)


def test_noise_is_passed_over_and_bounded() -> None:
    found = run(
        "import sys\n"
        "w = sys.stdout.buffer.write\n"
        "for _ in range(300): w(b'x' * 100_000 + b'\\n')\n"
        "w(bytes(range(256)) * 100 + b'\\n{not json}\\n[1, 2]\\n')\n"
        "w(b'{\"step_time\": 0.5}\\n')\n"
        "sys.stderr.buffer.write(b'\\xff' * 1_000_000)"
    )
    assert found["step_time", None] == [0.5]


def test_what_is_no_command_is_refused() -> None:
    arms: dict[str, dict[str, Any]] = {"baseline": {}, "candidate": {}}
    with pytest.raises(ConfigError, match="a list, such as"):
        command("c", "Why?", "python bench.py", arms)
    with pytest.raises(ConfigError, match="'arg' is none of"):
        command("c", "Why?", ["python"], {**arms, "candidate": {"arg": ["x"]}})


def test_a_command_that_is_not_there() -> None:
    workload = command("c", "Why?", ["/no/such"], {"baseline": {}, "candidate": {}})
    with LocalBench(workload) as bench, pytest.raises(WorkloadFailed, match="No such file"):
        bench.child("baseline")
