"""The same promises on PostgreSQL.

Runs where ARGUS_BED_TEST_POSTGRES names an empty database, for example
``postgresql+psycopg://postgres@127.0.0.1/test``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from argus_bed.errors import StorageError
from argus_bed.ledger import KeyConflict, Kind, Ledger
from argus_bed.records import Proposal, Run, RunState

URL = os.environ.get("ARGUS_BED_TEST_POSTGRES", "")
pytestmark = pytest.mark.skipif(not URL, reason="ARGUS_BED_TEST_POSTGRES names no database")


@pytest.fixture
def server() -> Iterator[Ledger]:
    with Ledger.open(URL) as ledger:
        yield ledger


@pytest.fixture
def shared(server: Ledger, request: pytest.FixtureRequest) -> int:
    return server.create_study(f"{request.node.name} {os.urandom(4).hex()}", {})


def test_writers_at_once_leave_no_gap(server: Ledger, shared: int) -> None:
    def work(name: int) -> None:
        with Ledger.open(URL) as own:
            for i in range(30):
                own.append(shared, Kind.NOTE, {"i": i}, key=f"{name}-{i}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [e.seq for e in server.events(shared)] == list(range(1, 121))
    with pytest.raises(KeyConflict):
        server.append(shared, Kind.NOTE, {"i": -1}, key="0-0")


def test_a_run_has_one_holder_and_one_end(server: Ledger, shared: int, proposal: Proposal) -> None:
    run = server.propose(shared, proposal).run
    lease = server.claim(shared, run)
    assert lease is not None
    assert server.claim(shared, run) is None
    server.heartbeat(lease)
    server.finish(lease, Run(run, RunState.DONE, None))
    assert server.history(shared).runs[run].state is RunState.DONE


@pytest.mark.parametrize(
    "statement", ["UPDATE events SET kind = 'x'", "DELETE FROM events", "TRUNCATE events"]
)
def test_the_database_itself_only_appends(server: Ledger, statement: str) -> None:
    with (
        pytest.raises(StorageError, match="append-only"),
        server._transaction(write=True) as connection,
    ):
        connection.execute(sa.text(statement))
