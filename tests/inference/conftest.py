"""The fixtures of `tests.inference.small`, and the library's hypotheses on one frame."""

import pytest

from argus_bed.frame import Frame
from argus_bed.hypothesis import catalogue
from benchmarks.agreement import library_frame
from tests.inference.small import contrast, frame, plain

__all__ = ["contrast", "frame", "library", "plain"]


@pytest.fixture(scope="session")
def library() -> Frame:
    """In which every mechanism of the library has marks, a rest and a side."""
    return library_frame(catalogue())
