"""One thread for many small arrays.

Particles are a few thousand rows of a dozen columns. A second thread waits more than it
works there, and the wait grows on a busy machine, which is where performance is
investigated. Seen on two cores shared with other work, not a controlled comparison: the
same updates of 16 hypotheses took 1.1 and 2.3 s with one thread, 13 and 32 s with two.
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
