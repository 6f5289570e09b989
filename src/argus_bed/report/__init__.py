"""What a person or another program sees of a study: terminal, HTML, JSON.

Everything here reads records and a `StudyView`; nothing reaches into the engine.
"""

from argus_bed.report.data import as_json
from argus_bed.report.view import HypothesisText, Pair, SignalText, StudyView

__all__ = ["HypothesisText", "Pair", "SignalText", "StudyView", "as_json"]
