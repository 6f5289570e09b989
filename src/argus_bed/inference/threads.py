"""One thread for many small arrays.

Particles are a few thousand rows of a dozen columns. A second thread waits more than it
works there, and on a busy machine (which is where performance is investigated) the wait
is ruinous: an update of 16 hypotheses took 1 s of one thread, and 12 to 32 s of two
beside other work on two cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch's processor work in the calling thread alone; also a decorator."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
