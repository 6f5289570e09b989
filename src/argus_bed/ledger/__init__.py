"""What was told, kept: an append-only ledger of events per study.

::

    ledger = Ledger.open("study.db")             # SQLite file, or any SQLAlchemy URL
    study = ledger.create_study("gil", spec={"metric": "step_time"})
    proposal = ledger.propose(study, proposal)   # numbered and stored before it runs
    lease = ledger.claim(study, proposal.run)    # None if a living process holds it
    ledger.finish(lease, run)                    # exactly one end per run
    history = ledger.history(study)              # fold of the events, and nothing else

The ledger alone can rebuild everything else.
"""

from argus_bed.ledger.codec import dumps, from_plain, loads, to_plain
from argus_bed.ledger.history import Kind, StudyHistory, fold
from argus_bed.ledger.leases import Lease
from argus_bed.ledger.rows import Event, KeyConflict, StudyRow
from argus_bed.ledger.store import Ledger

__all__ = [
    "Event",
    "KeyConflict",
    "Kind",
    "Lease",
    "Ledger",
    "StudyHistory",
    "StudyRow",
    "dumps",
    "fold",
    "from_plain",
    "loads",
    "to_plain",
]
