"""The results of searches for the highest rate in the terms of RFC 9971 (MLRsearch): bounds, conditional throughput."""

from collections.abc import Iterator
from dataclasses import dataclass

from rigctl.analysis.run_view import RunView
from rigctl.base.units import format_rate
from rigctl.base.values import divide
from rigctl.findings import Finding, goodput, tests
from rigctl.findings.text import UNKNOWN, plural
from rigctl.model.mlrsearch import GoalResult, SearchGoal
from rigctl.model.search import Search
from rigctl.records import Cell
from rigctl.report.blocks import Column, Entry, Table
from rigctl.report.tables.columns import (
    ColumnOf,
    RowHead,
    count_texts,
    each,
    entry_column,
    number_column,
    table_of,
    to_decimals,
    to_digits,
)

_LEGEND = (
    "Payload rates of each flow. A load is a lower bound if enough of its trials lose at most the loss "
    "ratio, an upper bound if too many lose more. The relevant lower bound is the largest below the smallest upper "
    "bound; the conditional throughput is what arrived there.",
    "A result is irregular if a bound is missing, or if they differ by more than the width. Trials follow each other "
    "without the pauses of RFC 2544. What was not sent is not lost: such a trial counts at the rate that was sent.",
)


@dataclass(frozen=True, slots=True)
class SearchedGoal:
    """A search of a test with its goal and its result; times in s."""

    cell: Cell
    search: Search
    goal: SearchGoal
    result: GoalResult
    spent_s: float

    @property
    def regular(self) -> bool:
        lower, upper = self.result.lower, self.result.upper
        return lower is not None and upper is not None and self.search.searched.close_enough(lower, upper)


def searched_goals(view: RunView) -> Iterator[SearchedGoal]:
    """Yield the goal and the result of each search with a trial that decides."""
    cells = {cell.number: cell for cell in view.plan.cells}
    for number, search in view.searches.items():
        cell = cells[number]
        goal = SearchGoal(cell.sending_s, cell.sending_s * view.plan.repeat, view.plan.max_loss)
        if search.bounds:
            yield SearchedGoal(cell, search, goal, search.result, view.stored.spent_s(number))


def goal_table(view: RunView) -> Table | None:
    """Return a table with the Search Goal and the Goal Result of each search; None if nothing was searched."""
    rows = list(searched_goals(view))
    if not rows:
        return None
    columns: list[ColumnOf[SearchedGoal]] = [
        each(Column("Test", "", "requested"), lambda row: row.cell.number),
        number_column("Trial", "s", lambda row: row.goal.final_duration_s, to_digits(2, 3), "requested"),
        number_column("Duration sum", "s", lambda row: row.goal.duration_sum_s, to_digits(2, 3), "requested"),
        number_column("Loss ratio", "%", lambda row: 100 * row.goal.loss_ratio, to_decimals(3), "requested"),
        number_column("Exceed ratio", "%", lambda row: 100 * row.goal.exceed_ratio, to_decimals(0), "requested"),
        number_column("Width", "%", lambda row: 100 * row.search.searched.precision, to_decimals(0), "requested"),
        number_column("Lower bound", "Mbit/s", lambda row: divide(row.result.lower, 1e6), to_decimals(2)),
        number_column("Upper bound", "Mbit/s", lambda row: divide(row.result.upper, 1e6), to_decimals(2)),
        number_column(
            "Conditional throughput",
            "Mbit/s",
            lambda row: divide(row.result.conditional_throughput, 1e6),
            to_decimals(2),
        ),
        number_column("Trials", "", lambda row: len(row.search.trials), count_texts),
        number_column("Time spent", "s", lambda row: row.spent_s, to_decimals(1)),
        entry_column(
            Column("Result", "", "derived", words=True), lambda row: Entry("regular" if row.regular else "irregular")
        ),
    ]
    return table_of(rows, columns, lambda row: RowHead(row.cell.number), _LEGEND, "Searches (RFC 9971)")


def goal_findings(view: RunView) -> Iterator[Finding]:
    """Yield a finding on each search of several trials that found a lower bound: its bounds, and what arrived there."""
    for one in searched_goals(view):
        lower, upper, arrived = one.result.lower, one.result.upper, one.result.conditional_throughput
        if lower is None or arrived is None or len(one.search.trials) == 1:
            continue
        words = {
            "test": one.cell.number,
            "lower": format_rate(lower),
            "upper": UNKNOWN if upper is None else format_rate(upper),
            "arrived": format_rate(arrived),
            "regular": "" if one.regular else ", an irregular result",
            "trials": plural(len(one.search.trials), "trial"),
        }
        numbers = {"lower_bound_bps": lower, "upper_bound_bps": upper, "conditional_throughput_bps": arrived}
        numbers |= {"trials": len(one.search.trials), "time_spent_s": one.spent_s}
        yield goodput.SEARCH_GOAL.say(tests([one.cell.number]), numbers, **words)
