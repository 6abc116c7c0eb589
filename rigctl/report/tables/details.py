"""Test by test: the sentences of each, for runs that are not too large to be read so."""

from collections.abc import Callable, Sequence
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.analysis.summary import CellSummary
from rigctl.analysis.views.over_time import drawn_numbers
from rigctl.report.blocks import Folded, Paragraph, Section, Term, Terms
from rigctl.report.words.text import plural, settings_text, told_apart

MOST_EXPLAINED: Final = 200
"""A matrix of thousands is read from its export."""
MOST_OPEN: Final = 20
"""More than this number are folded away."""


def details(view: RunView, explain: Callable[[CellSummary], Sequence[str]]) -> tuple[Section, ...]:
    """Of a matrix only the tests that are drawn."""
    drawn = drawn_numbers(view.plan)
    chosen = [cell for cell in view.cells if cell.cell.number in drawn] if view.matrix else view.cells[:MOST_EXPLAINED]
    pairs = told_apart(cell.cell for cell in view.cells)
    terms = tuple(
        Term(f"Test {cell.cell.number}", settings_text(cell.cell, pairs), tuple(explain(cell))) for cell in chosen
    )
    if not terms:
        return ()
    left = len(view.cells) - len(terms)
    more = (
        (Paragraph(f"{plural(left, 'more test is', 'more tests are')} in the table only.", small=True),) if left else ()
    )
    block = Terms(terms)
    folded = Folded(plural(len(terms), "test"), (block,))
    return (Section("Test by test", (folded if len(terms) > MOST_OPEN else block, *more)),)
