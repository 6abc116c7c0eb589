"""What was measured again because its repetitions differed: a table of its own, and what came of it, in words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from rigctl.analysis.frames import load
from rigctl.analysis.summary import summaries
from rigctl.model.repeating import ci95, value_of, variation
from rigctl.records import Cell, Repetition, RunInfo
from rigctl.report.sections.messages.table import message_results, message_table
from rigctl.report.sections.streams.comparison import comparison
from rigctl.report.table import ComparisonTable
from rigctl.report.text import listed, plural


@dataclass(frozen=True, slots=True)
class Retested:
    """The second table of a run, and its sentences."""

    title: str
    table: ComparisonTable
    sentences: tuple[str, ...]


def first_of(info: RunInfo, repetitions: Sequence[Repetition]) -> list[Repetition]:
    """The repetitions of the main table: those of a retest are shown apart."""
    if info.plan.retest is None:
        return list(repetitions)
    return [one for one in repetitions if one.repetition <= info.plan.repeat]


def retested(info: RunInfo, repetitions: Sequence[Repetition]) -> Retested | None:
    """The retest; `None` where none was asked for, or nothing differed so far."""
    again = [one for one in repetitions if info.plan.retest is not None and one.repetition > info.plan.repeat]
    if info.plan.retest is None or not again:
        return None
    numbers = {one.cell for one in again}
    cells = tuple(cell for cell in info.plan.cells if cell.number in numbers)
    part = replace(info, plan=replace(info.plan, cells=cells))
    in_messages = info.plan.in_messages
    table = message_table(message_results(part, again)) if in_messages else comparison(summaries(load(part, again)))
    before = first_of(info, repetitions)
    return Retested(
        f"Measured again: repetitions that varied by more than {100 * info.plan.retest.variation:g} %",
        table,
        tuple(_sentence(cell, before, again) for cell in cells),
    )


def _sentence(cell: Cell, before: Sequence[Repetition], again: Sequence[Repetition]) -> str:
    """`Test 3 varied by 28 % over 5 repetitions; over 15 more by 12 %, its mean 4 % lower.`"""
    first, second = (_values(cell, part) for part in (before, again))
    spread, later = variation(first), variation(second)
    said = f"Test {cell.number} varied by {_percent(spread)} over {plural(len(first), 'repetition')}"
    if later is None:
        return f"{said}; measured again, it gave no result that counts."
    change = fmean(second) / fmean(first) - 1
    mean = "its mean as before" if abs(change) < 0.005 else f"its mean {100 * abs(change):.0f} % {_way(change)}"
    return f"{said}; over {len(second)} more by {_percent(later)}, {mean}."


def until_words(info: RunInfo, repetitions: Sequence[Repetition]) -> list[str]:
    """How well the means are known, where the plan asked for it."""
    until = info.plan.until
    if until is None:
        return []
    widths = {cell.number: ci95(_values(cell, repetitions)) for cell in info.plan.cells}
    wide = {number: width for number, width in widths.items() if width is None or width >= until.ci95}
    short = [f"test {number} ({_percent(width)})" for number, width in wide.items()]
    limit = f"{100 * until.ci95:g} %"
    if not short:
        return [f"Half the 95 % confidence interval of every mean is below {limit}."]
    return [
        f"After {until.most} repetitions half the 95 % confidence interval is not below {limit} in {listed(short)}."
    ]


def _values(cell: Cell, repetitions: Sequence[Repetition]) -> list[float]:
    own = [value_of(cell, one) for one in repetitions if one.cell == cell.number]
    return [value for value in own if value is not None]


def _percent(share: float | None) -> str:
    return "an unknown amount" if share is None else f"{100 * share:.2g} %"


def _way(change: float) -> str:
    return "higher" if change > 0 else "lower"
