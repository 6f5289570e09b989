"""The command line: thin shells that say what a study did.

Nothing heavy is imported before a command needs it, so that ``--help`` is quick.
"""

from argus_bed.cli.app import app, main

__all__ = ["app", "main"]
