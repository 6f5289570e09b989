"""Kills, two processes, and disks that fail: what was acknowledged is there, once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from argus_bed.ledger import Kind, Ledger
from argus_bed.records import Proposal, RunState

posix = pytest.mark.skipif(os.name != "posix", reason="kills and limits are POSIX")

# Acknowledges each event on stdout after `append` returned; goes on from any earlier life.
WRITER = """
import sys
from argus_bed.ledger import Ledger
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
ledger = Ledger.open(path)
study = ledger.create_study("shared", {})
for i in range(count):
    event = ledger.append(study, "told", {"from": name, "i": i}, key=f"{name}:{i}")
    print(event.seq, i, flush=True)
"""

HOLDER = """
import sys, time
from argus_bed.ledger import Ledger
ledger = Ledger.open(sys.argv[1])
lease = ledger.claim(ledger.study("gil").id, 1)
print("held" if lease else "refused", flush=True)
if lease: time.sleep(60)
"""


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, text=True
    )


@posix
@pytest.mark.promise("A40")
def test_nothing_acknowledged_is_lost_and_nothing_comes_twice(path: Path) -> None:
    chance = random.Random(20261201)
    acknowledged: dict[int, int] = {}  # i -> seq
    for _ in range(10):
        writer = start(WRITER, path, "w", 100_000)
        assert writer.stdout is not None
        first = writer.stdout.readline()  # it lives; from here on it may die at any moment
        time.sleep(chance.uniform(0.0, 0.08))
        writer.send_signal(signal.SIGKILL)
        lines = [first, *writer.stdout]
        writer.wait()
        writer.stdout.close()
        for line in lines:
            if line.endswith("\n"):
                seq, i = map(int, line.split())
                assert acknowledged.setdefault(i, seq) == seq
    with Ledger.open(path) as ledger:
        events = list(ledger.events(ledger.study("shared").id))
    assert [e.seq for e in events] == list(range(1, len(events) + 1))
    assert [e.payload["i"] for e in events] == list(range(len(events)))  # in order, once each
    stored = {e.payload["i"]: e.seq for e in events}
    assert acknowledged.items() <= stored.items()
    assert len(acknowledged) > 10


def test_two_processes_append_to_one_study(path: Path) -> None:
    count = 150
    writers = [start(WRITER, path, name, count) for name in "ab"]  # both create the file
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0
    with Ledger.open(path) as ledger:
        events = list(ledger.events(ledger.study("shared").id))
    assert [e.seq for e in events] == list(range(1, 2 * count + 1))
    for name in "ab":
        assert [e.payload["i"] for e in events if e.payload["from"] == name] == list(range(count))
    assert len({e.pid for e in events}) == 2


@posix
def test_a_killed_holder_frees_its_run_at_once(
    ledger: Ledger, study: int, path: Path, proposal: Proposal
) -> None:
    ledger.propose(study, proposal)
    holder = start(HOLDER, path)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    assert ledger.claim(study, 1) is None
    assert ledger.history(study).runs[1].state is RunState.RUNNING
    holder.kill()
    holder.communicate()
    assert ledger.history(study).stale == (1,)
    again = ledger.claim(study, 1)
    assert again is not None
    assert again.attempt == 2


@posix
def test_a_forked_child_uses_connections_of_its_own(ledger: Ledger, study: int) -> None:
    ledger.append(study, Kind.NOTE, {"who": "parent"})
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # no pytest in the child, whatever happens
        try:
            event = ledger.append(study, Kind.NOTE, {"who": "child"})
            os.write(write, json.dumps(event.seq).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read) as answer:
        assert json.loads(answer.read()) == 2
    assert ledger.append(study, Kind.NOTE, {}).seq == 3


BATCHES = """
import sys
from argus_bed.ledger import Ledger
path, name, count, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
ledger = Ledger.open(path, timeout_s=120)
study = ledger.create_study(name, {})
done = ledger.count(study)
for start in range(max(0, done - size), count, size):  # the last batch is tried once more
    ledger.extend(study, [("told", {"i": i}, str(i)) for i in range(start, start + size)])
    print(start + size, flush=True)
"""


@posix
@pytest.mark.slow
@pytest.mark.promise("A72")
def test_a_million_events_with_retries_and_kills_in_two_studies(path: Path) -> None:
    chance = random.Random(72)
    count, size, kills = 500_000, 2_000, 12
    names = ["left", "right"]
    writers = {name: start(BATCHES, path, name, count, size) for name in names}
    for _ in range(kills):
        time.sleep(chance.uniform(1.0, 4.0))
        name = chance.choice(names)
        writers[name].kill()
        lines = [
            n for n in writers[name].communicate()[0].splitlines(keepends=True) if n[-1] == "\n"
        ]
        with Ledger.open(path, timeout_s=120) as ledger:
            if lines:  # what was acknowledged is there
                assert ledger.count(ledger.study(name).id) >= int(lines[-1])
        writers[name] = start(BATCHES, path, name, count, size)
    for writer in writers.values():
        writer.communicate(timeout=600)
        assert writer.returncode == 0
    with Ledger.open(path) as ledger:
        for name in names:
            seen = 0
            for event in ledger.events(ledger.study(name).id):
                seen += 1
                assert (event.seq, event.payload["i"]) == (seen, seen - 1)
            assert seen == count
