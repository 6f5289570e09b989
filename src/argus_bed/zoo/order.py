"""Retries that let the followers of a message pass it.

Messages of many sessions go through four stages; one in fifty fails at its first try in one
of them. The baseline tries again on the spot and lets the session wait. The candidate puts
the message aside and goes on, so that what follows it in its session comes out before it.
Messages arrive at their own pace, which both arms keep up with: the throughput tells nothing.
"""

from __future__ import annotations

import gc
import queue
import random
import threading
import time
import zlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from argus_bed.workload import Knob, Stage, Workload, stage

RATE = 14_000  # messages per second that arrive
BURST_S = 0.002  # they arrive in bursts, as from a socket
MESSAGES = 28 * 20  # of one step: 20 bursts, 40 ms
STAGES = 4
SESSIONS = 12
STAYS = 0.5  # messages of a session come in a row: part of them after one of their own
FAILS = 0.02  # part of the messages whose first try fails, in one stage each
PAUSE_S = 0.001  # until a second try succeeds
PAYLOADS = [bytes(size) for size in (1_000, 6_000, 12_000, 24_000)]


@dataclass
class Message:
    """One message of a session, and the stage in which its first try fails (or none)."""

    session: int
    number: int
    size: int
    fails_in: int = -1


@dataclass
class Worker:
    """A thread of one stage: where it takes messages from, and what it has put aside."""

    stage: int
    inbox: queue.SimpleQueue[Message]
    aside: deque[tuple[float, Message]] = field(default_factory=deque)


@dataclass
class State:
    """The stages' inboxes, and what has come out."""

    again: str
    inboxes: list[list[queue.SimpleQueue[Message]]]
    fails: float
    draw: random.Random = field(default_factory=lambda: random.Random(1))
    session: int = 0
    due: float = 0.0
    sent: list[int] = field(default_factory=lambda: [0] * SESSIONS)
    latest: list[int] = field(default_factory=lambda: [0] * SESSIONS)
    lock: threading.Lock = field(default_factory=threading.Lock)
    out: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    passed: int = 0
    steps: int = 0


def _handle(message: Message) -> None:
    zlib.crc32(PAYLOADS[message.size])


def _hand_on(state: State, place: int, message: Message) -> None:
    if place + 1 < STAGES:
        lanes = state.inboxes[place + 1]
        lanes[message.session % len(lanes)].put(message)
        return
    with state.lock:
        if message.number < state.latest[message.session]:
            state.passed += 1
        else:
            state.latest[message.session] = message.number
    state.out.release()


def _second_tries(state: State, worker: Worker) -> None:
    """Hand on what was put aside and is due."""
    while worker.aside and worker.aside[0][0] <= time.perf_counter():
        _, message = worker.aside.popleft()
        _handle(message)
        _hand_on(state, worker.stage, message)


def _work(state: State, worker: Worker) -> None:
    while True:
        try:
            message = worker.inbox.get(timeout=PAUSE_S if worker.aside else None)
        except queue.Empty:
            _second_tries(state, worker)
            continue
        _handle(message)
        if message.fails_in == worker.stage:
            if state.again == "second":
                worker.aside.append((time.perf_counter() + PAUSE_S, message))
                continue
            time.sleep(PAUSE_S)
            _handle(message)
        _hand_on(state, worker.stage, message)
        _second_tries(state, worker)


def setup(
    again: str, lanes: str = "own", fails: float = FAILS, workers: int = 2, collector: bool = True
) -> State:
    """``again`` picks how a message is tried again, ``lanes`` who may take it.

    With ``own`` lanes a session belongs to one worker of a stage; with ``any``, to all.
    """
    if not collector:
        gc.disable()
    count = workers if lanes == "own" else 1
    inboxes = [[queue.SimpleQueue[Message]() for _ in range(count)] for _ in range(STAGES)]
    state = State(again, inboxes, fails)
    for place in range(STAGES):
        for i in range(workers):
            worker = Worker(place, inboxes[place][i % count])
            threading.Thread(target=_work, args=(state, worker), daemon=True).start()
    return state


def _arrival(state: State) -> Message:
    draw = state.draw
    if draw.random() >= STAYS:
        state.session = draw.randrange(SESSIONS)
    session = state.session
    state.sent[session] += 1
    fails_in = draw.randrange(STAGES) if draw.random() < state.fails else -1
    return Message(session, state.sent[session], draw.randrange(len(PAYLOADS)), fails_in)


def step(state: State) -> None:
    """Messages as they arrive; done when the last one is out."""
    burst, lanes = round(RATE * BURST_S), state.inboxes[0]
    if time.perf_counter() - state.due > MESSAGES / RATE:  # nothing arrives between blocks
        state.due = time.perf_counter()
    with stage("pipeline"):
        for _ in range(MESSAGES // burst):
            state.due += BURST_S
            time.sleep(max(state.due - time.perf_counter(), 0.0))
            for message in [_arrival(state) for _ in range(burst)]:
                lanes[message.session % len(lanes)].put(message)
        for _ in range(MESSAGES):
            state.out.acquire()
    state.steps += 1


def report(state: State) -> Mapping[str, float]:
    """Messages per step that came out after a later one of their session."""
    with state.lock:
        passed, steps = state.passed, state.steps
        state.passed = state.steps = 0
    return {"violations": passed / max(steps, 1)}


workload = Workload(
    name="message-pipeline",
    question=(
        "Since messages are tried again in another way, some accounts end the day with a wrong "
        "balance. As many messages go through as before, and no stage got slower."
    ),
    setup=setup,
    step=step,
    arms={"baseline": {"again": "first"}, "candidate": {"again": "second"}},
    stages=(Stage("pipeline", "host", changed=True, what="from arrival to the last stage's end"),),
    knobs=(
        Knob("again", "first", {"again": "first"}, removes=frozenset({"order_violation"})),
        Knob("tries", "1", {"fails": 0.0}, of="both", removes=frozenset({"order_violation"})),
        Knob("lanes", "any", {"lanes": "any"}),
        Knob("workers", "1", {"workers": 1}, removes=frozenset({"thread_oversubscription"})),
        Knob("collector", "off", {"collector": False}, removes=frozenset({"gc_pause"})),
    ),
    metric="throughput",
    intent="same",
    report=report,
    reports=(("violations", None),),
    items=MESSAGES,
)

twin = replace(workload, arms={"baseline": {"again": "first"}, "candidate": {"again": "first"}})
