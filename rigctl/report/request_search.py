"""The search for the most requests per second within a given time (`per_second: max`): its table and its findings."""

from collections.abc import Iterator
from typing import Final

from rigctl.analysis.run_view import RunView
from rigctl.base.units import format_duration
from rigctl.base.values import divide
from rigctl.findings import Finding, Sentence, tests
from rigctl.findings import latency as said
from rigctl.findings.text import UNKNOWN, count_text, pct_text, plural, time_text
from rigctl.model.search import Search
from rigctl.model.trials import Reason, Trial
from rigctl.records import Cell
from rigctl.report.blocks import Column, Entry, Section, Table
from rigctl.report.tables.columns import (
    ColumnOf,
    RowHead,
    count_texts,
    each,
    entry_column,
    number_column,
    table_of,
    to_decimals,
)
from rigctl.report.tables.messages import to_microseconds
from rigctl.settings.traffic import MOST_PER_SECOND

_WORDS: Final = {
    Reason.SLOW: "no: too slow",
    Reason.UNANSWERED: "no: unanswered",
    Reason.UNSENT: "no: not sent",
    Reason.LATE: "sender late",
}


def bound_text(view: RunView) -> str:
    """Return the longest time that requests may take, as in `2 ms`."""
    return UNKNOWN if view.plan.max_latency_s is None else time_text(1e6 * view.plan.max_latency_s)


def within_text(view: RunView, trial: Trial) -> str:
    """Return what a trial that passed stayed within: `within 2 ms (p99)`."""
    return f"within {bound_text(view)} ({'p99' if trial.p99_us is not None else 'the longest'})"


def search_section(view: RunView) -> tuple[Section, ...]:
    """Return the section with a table of all trials; empty if nothing was searched."""
    rows = [(number, trial) for number, search in view.searches.items() for trial in search.trials]
    return (Section("The search for the most requests, trial by trial", (_table(rows),), full=True),) if rows else ()


def _table(rows: list[tuple[int, Trial]]) -> Table:
    def passed(row: tuple[int, Trial]) -> Entry:
        reason = row[1].reason
        return Entry("yes" if row[1].passed else UNKNOWN if reason is None else _WORDS[reason])

    columns: list[ColumnOf[tuple[int, Trial]]] = [
        each(Column("Test", "", "requested"), lambda row: row[0]),
        each(Column("Trial", "", "requested"), lambda row: row[1].number),
        number_column("Offered/s", "", lambda row: row[1].asked, count_texts, "requested"),
        number_column("Sent/s", "", lambda row: row[1].sent, to_decimals(1)),
        number_column("p99", "µs", lambda row: row[1].p99_us, to_microseconds),
        number_column("max", "µs", lambda row: row[1].longest_us, to_microseconds),
        number_column("Missing", "", lambda row: row[1].missing, count_texts),
        number_column("Late", "%", lambda row: divide(row[1].late, 0.01), to_decimals(2)),
        entry_column(Column("Passed", "", "derived", words=True), passed),
    ]
    legend = (
        "Requests per second of each pair; times of the slowest pair. Missing: requests without an answer, also those "
        "that could not be sent. A trial of fewer than 1,000 requests has no p99; its longest time counts.",
    )
    return table_of(rows, columns, lambda row: RowHead(row[0], counted=row[1].sent is not None), legend, "Trials")


def request_search_findings(view: RunView) -> Iterator[Finding]:
    """Yield a finding on each search: the most requests per second, and why there are not more."""
    cells = {cell.number: cell for cell in view.plan.cells}
    searches = view.searches.items()
    yield from (_finding(view, cells[number], search) for number, search in searches if search.trials)


def _finding(view: RunView, cell: Cell, search: Search) -> Finding:
    best, above = search.best, search.above
    words: dict[str, object] = {
        "which": f"Test {cell.number}",
        "trials": f"{plural(len(search.trials), 'trial')} of {format_duration(cell.duration_s)}",
        "pairs": " of each pair" if len(cell.streams) > 1 else "",
        "bound": bound_text(view),
    }
    if best is None and above is None:
        return said.REQUEST_SEARCH_UNMEASURED.say(tests([cell.number]), **words)
    if best is None:
        tried = min(trial.asked for trial in search.trials if trial.asked is not None)
        words |= {"tried": count_text(tried), "why": _why(above)}
        return said.REQUEST_SEARCH_NONE.say(tests([cell.number]), {"trials": len(search.trials)}, **words)
    words |= {
        "rate": count_text(best.asked or 0),
        "within": within_text(view, best),
        "beyond": f"; at {count_text(above.asked or 0)} {_why(above)}" if above is not None else _unbounded(best),
    }
    numbers = {"requests_per_s": best.asked, "trials": len(search.trials)}
    return _sentence(above).say(tests([cell.number]), numbers, **words)


def _sentence(above: Trial | None) -> Sentence:
    late = above is not None and above.reason is Reason.LATE
    return said.REQUEST_SEARCH_SENDER if late else said.REQUEST_SEARCH


def _unbounded(best: Trial) -> str:
    if best.asked == MOST_PER_SECOND:
        return ", the most that can be asked for"
    return "; no higher rate was tried"


def _why(trial: Trial | None) -> str:
    """Return what happened in a trial that did not pass, as the rest of a sentence."""
    if trial is None or trial.reason is None:
        return "nothing could be measured"
    if trial.reason is Reason.LATE:
        late = pct_text(100 * (trial.late or 0.0), 2)
        return f"the sender itself was late to {late} % of the requests: the network and the receiver may carry more"
    if trial.reason is Reason.SLOW:
        name, time_us = ("p99", trial.p99_us) if trial.p99_us is not None else ("the longest time", trial.longest_us)
        return f"{name} was {UNKNOWN if time_us is None else time_text(time_us)}"
    what = "could not be sent" if trial.reason is Reason.UNSENT else "had no answer"
    return f"{plural(trial.missing or 0, 'request')} {what}"
