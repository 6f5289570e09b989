"""Messages over a pipe: eight bytes of length, then the bytes.

Requests to the child are pickles (they carry instruments); replies are JSON, so that
nothing a workload returns is executed in the engine's process.
"""

from __future__ import annotations

import os
import select
import struct
import time

HEADER = struct.Struct(">Q")
MAX_REPLY = 16 * 2**20
"""Bytes of one reply. Readings are a few numbers; more than this is a mistake."""


class PipeClosed(Exception):
    """The other side is gone."""


class PipeTimeout(Exception):
    """Nothing came before the deadline."""


class ReplyTooLong(Exception):
    """The other side announced more than `MAX_REPLY` bytes."""


def send(fd: int, payload: bytes) -> None:
    """Write one message. Raises `PipeClosed`."""
    view = memoryview(HEADER.pack(len(payload)) + payload)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except OSError as error:  # EPIPE, or EBADF if a workload closed our descriptors
            raise PipeClosed(str(error)) from error


def receive(fd: int, deadline: float | None = None, limit: int | None = None) -> bytes:
    """Read one message.

    Parameters
    ----------
    deadline : on `time.monotonic`; None waits for ever.
    limit : bytes beyond which the message is refused.

    Raises
    ------
    PipeClosed, PipeTimeout, ReplyTooLong
    """
    (length,) = HEADER.unpack(_exactly(fd, HEADER.size, deadline))
    if limit is not None and length > limit:
        raise ReplyTooLong(f"{length} bytes, over the limit of {limit}")
    return _exactly(fd, length, deadline)


def _exactly(fd: int, count: int, deadline: float | None) -> bytes:
    parts = []
    while count:
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                raise PipeTimeout
        try:
            part = os.read(fd, min(count, 2**20))
        except OSError as error:
            raise PipeClosed(str(error)) from error
        if not part:
            raise PipeClosed("end of file")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
