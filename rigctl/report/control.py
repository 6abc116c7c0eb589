"""The report part that subtracts a control: what the switch adds to a plain cable, or to another switch."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, Literal

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.control import SUBTRACTED, Added, added_to_control
from rigctl.figures.connections import CONNECT_P50, CONNECT_P99
from rigctl.figures.datagrams import LOSS
from rigctl.figures.messages import ROUND_TRIP_P50, ROUND_TRIP_P99
from rigctl.figures.probes import LOADED, LOADED_P99
from rigctl.findings import Finding, Statement, Weight, note, tests
from rigctl.findings.changes import measurements_text, verdict_text
from rigctl.findings.text import UNKNOWN, join_list
from rigctl.model.statistics.comparing import Comparison
from rigctl.report.blocks import Column, Entry, Part, Section, Table
from rigctl.report.tables.columns import ColumnOf, RowHead, each, entry_column, table_of
from rigctl.report.tables.requested import COMPARED, Requested

NONE_IN_COMMON: Final = note(
    "control-without-tests",
    "Run {control}, the control, has no test of this run.",
    "Measure the same scenario, with the same pairs and settings, over the control.",
    Weight.MISSING,
)
_MARKS: Final[dict[Comparison, Literal["warn", "good"]]] = {Comparison.WORSE: "warn", Comparison.BETTER: "good"}
_TITLE: Final = "Beside the control"
_TRIPS: Final = (
    (ROUND_TRIP_P50, ROUND_TRIP_P99, "round trip"),
    (LOADED, LOADED_P99, "round trip"),
    (CONNECT_P50, CONNECT_P99, "time to connect"),
)
"""Medians of times, each with the percentile that belongs to it, and what the times are of."""


def part(view: RunView) -> Part | None:
    """Return the report part on what a run adds to its control; None if the run has no control."""
    control = view.control
    if control is None:
        return None
    found = added_to_control(view, control)
    if not found:
        return Part(findings=(NONE_IN_COMMON.say(control=control.info.run),))
    table = _table(view, found)
    return Part(findings=tuple(_findings(found)), sections=(Section(_TITLE, (table,), full=True, brief=True),))


def _findings(found: Sequence[Added]) -> Iterator[Finding]:
    """Yield what the switch adds to the round trip of the smallest message, and whether it loses more."""
    parts, statements = [], []
    for middle, high, name in _TRIPS:
        first = next((one for one in found if one.figure is middle), None)
        if first is not None:
            tail = next((one for one in found if (one.stream, one.cell, one.figure) == (*_place(first), high)), None)
            parts.append(_added_text(first, tail, name))
            statements.append(Statement(parts[-1], [first], lambda one: bool(one.change.before)))
            break
    losses = [one for one in found if one.figure is LOSS]
    if losses:
        more_lost = [one for one in losses if one.amount > 0]
        worst = max(losses, key=lambda one: one.amount)
        text = "loses nothing that the control does not"
        if more_lost:
            text = f"loses up to {worst.amount:.2g} % more than the control (test {worst.cell.number})"
        parts.append(text)
        statements.append(Statement(text, losses, lambda one: one.amount <= worst.amount))
    if parts:
        subject = tests({one.cell.number for one in found})
        text = f"This run {join_list(parts)}."
        yield Finding("control", text, Weight.EXPECTED, subject=subject, statements=tuple(statements))


def _added_text(first: Added, tail: Added | None, name: str) -> str:
    """Return what is added to a time, with the percentile of `tail`; nothing that chance may explain."""
    if not first.told:
        return f"adds nothing to the {name} that its repetitions tell from the control ({_interval(first).text} µs)"
    more = f" (p99 {_amount(tail)})" if tail is not None and tail.told else ""
    return f"adds {_amount(first)} µs to the {name} of the control{more}{_few(first)}"


def _place(one: Added) -> tuple[object, object]:
    return one.stream, one.cell


def _few(one: Added) -> str:
    return "" if one.interval is not None else f"; {measurements_text([one.change])}"


def _table(view: RunView, found: Sequence[Added]) -> Table:
    several = len({one.stream for one in found}) > 1
    varied = (item for item in COMPARED if len({item.value(one.cell) for one in found}) > 1)
    columns: list[ColumnOf[Added]] = [
        each(Column("Test", "", "requested"), lambda one: one.cell.number),
        *(entry_column(item.column, partial(_requested, item)) for item in varied),
    ]
    if several:
        columns.append(each(Column("Pair", "", "requested", words=True), lambda one: str(one.stream)))
    columns += [
        each(Column("Figure", "", "requested", words=True), lambda one: SUBTRACTED[one.figure]),
        entry_column(Column("Control", minor=-1), lambda one: _entry(one.change.before)),
        entry_column(Column("This run", minor=-1), lambda one: _entry(one.change.after)),
        entry_column(Column("Difference", minor=-1), lambda one: Entry(_amount(one), one.amount)),
        entry_column(Column("Interval", "", "derived", minor=1), _interval),
        entry_column(Column("Verdict", words=True), _verdict),
    ]
    control = view.control.info if view.control is not None else None
    legend = [f"The control is run {control.run} on {control.plan.rig_name}."] if control is not None else []
    legend.append("Medians of the repetitions; the interval of the difference has 95 %.")
    return table_of(found, columns, lambda one: RowHead(one.cell.number), legend, label=_TITLE)


def _requested(item: Requested, one: Added) -> Entry:
    value = item.value(one.cell)
    return Entry(item.unset if value is None else item.text(value), value)


def _entry(value: float | None) -> Entry:
    return Entry(UNKNOWN if value is None else _digits(value), value)


def _interval(one: Added) -> Entry:
    if one.interval is None:
        return Entry(UNKNOWN)
    low, high = one.interval
    return Entry(f"{_signed(low)} to {_signed(high)}", (low, high))


def _verdict(one: Added) -> Entry:
    if one.figure is LOSS:  # nothing lost has no ratio, so it is judged by its amount
        return Entry("same" if one.amount == 0 else "more" if one.amount > 0 else "less")
    return Entry(verdict_text(one.change), str(one.change.verdict), _MARKS.get(one.change.verdict, ""))


def _amount(one: Added) -> str:
    return _signed(one.amount).removeprefix("+")


def _signed(value: float) -> str:
    return f"{'+' if value >= 0 else '−'}{_digits(abs(value))}"


def _digits(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
