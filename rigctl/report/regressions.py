"""The document of a run's news: one sentence on top, a table of what changed, what stands, changes over the history."""

from rigctl.analysis.regressions import Regressions
from rigctl.report.blocks import Document


def document(regressions: Regressions) -> Document:
    """For every printer; `findings[0]` is the sentence on top."""
    raise NotImplementedError
