"""Texts on changes between two runs, two conditions or nights, and names of the figures that are compared."""

import math
from collections.abc import Iterable, Sequence
from typing import Final

from rigctl.base.values import total
from rigctl.figures import Figure
from rigctl.figures.figure import ComparedAs
from rigctl.findings.text import UNKNOWN, plural, span
from rigctl.model.statistics.comparing import LEAST_REPETITIONS, Change, Comparison, WhyNot
from rigctl.records import Cell

DECIDES: Final = f"`--repeat {LEAST_REPETITIONS}` decides"
ONE_NIGHT: Final = "this run only"


def share_text(share: float) -> str:
    """Return the text of a change in percent, without the unit: `+0.3`, `−9.8`."""
    text = f"{100 * share:+.1f}".replace("-", "−")
    return text if float(text[1:]) else "0.0"


def round_up(share: float) -> str:
    """Return the text of an upper bound in percent, rounded up: `0.4` for 0.31 %."""
    return f"{math.ceil(1000 * share - 1e-9) / 10:.1f}"


def interval_text(change: Change) -> str:
    """Return the confidence interval of a change in percent: `−10.2 to −9.5`."""
    low, high = change.low, change.high
    return UNKNOWN if low is None or high is None else f"{share_text(low)} to {share_text(high)}"


def verdict_text(change: Change) -> str:
    """Return the verdict on a change: `worse`, `same ±0.3 %`."""
    is_same = change.verdict is Comparison.SAME and change.within is not None
    return f"same ±{round_up(change.within or 0.0)} %" if is_same else str(change.verdict)


def change_text(change: Change) -> str:
    """Return the verdict and the size of a change, or only the size if there are too few repetitions for a verdict.

    Examples: `worse, −9.8 % (−10.2 to −9.5 %)`; `same ±0.3 %`; `lower by 9.8 % (one measurement each, not judged)`.
    """
    if change.why_not is WhyNot.FEW:
        return f"{amount_text(change)} ({measurements_text([change])})"
    if change.share is None or change.why_not is WhyNot.ALIKE:
        return verdict_text(change)
    return f"{verdict_text(change)}, {share_text(change.share)} % ({interval_text(change)} %)"


def amount_text(change: Change) -> str:
    """Return the size of a change without a verdict: `higher by 2.1 %`."""
    share = change.share or 0.0
    size = f"{100 * abs(share):.1f}"
    return f"{'lower' if share < 0 else 'higher'} by {size if float(size) else 'less than 0.1'} %"


def measurements_text(changes: Sequence[Change]) -> str:
    """Return the number of measurements on both sides: `one measurement each, not judged`, `5 measurements …`."""
    sides = zip(*(change.counts for change in changes), strict=True)
    before, after = (span(map(str, sorted(set(side)))) for side in sides)
    measured = "one measurement" if before == "1" else f"{before} measurements"
    return f"{measured} {'each' if before == after else f'before, {after} after'}, not judged"


def inconclusive_text(change: Change, bound: float) -> str | None:
    """Return why a change is inconclusive, and the least change that could be detected; None if it is conclusive."""
    match change.why_not:
        case WhyNot.FEW:
            count = plural(min(change.counts), "repetition")
            return f"Inconclusive: {count}; a verdict needs {LEAST_REPETITIONS} on either side."
        case WhyNot.SCATTER:
            reason = "the repetitions differ too much"
        case WhyNot.CHANCE:
            reason = "chance may explain the difference"
        case WhyNot.SMALL:
            return f"Inconclusive: there is a difference, but it is smaller than the bound of {100 * bound:g} %."
        case _:
            return None
    assert change.seeable is not None  # there are enough repetitions
    return f"Inconclusive: {reason}. Changes of {round_up(change.seeable)} % or more could have been detected."


def words_of(figure: Figure[float]) -> ComparedAs:
    """Return the words for a figure by which runs are compared."""
    assert figure.compared is not None
    return figure.compared


def sum_words(cells: Iterable[Cell], metric: Figure[float]) -> str:
    """Return `of all pairs` or `of both directions` if the figure is their sum in these tests; else an empty text."""
    every = list(cells)
    if metric.over_streams is not total or all(len(cell.streams) == 1 for cell in every):
        return ""
    return "of all pairs" if any(len(cell.pairs) > 1 for cell in every) else "of both directions"
