"""The fixtures of `tests.inference.small`."""

from tests.inference.small import contrast, frame, plain

__all__ = ["contrast", "frame", "plain"]
