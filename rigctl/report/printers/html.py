"""The report: one self-contained HTML file. No script, no request, no font but the reader's own."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any, Final

from rigctl.analysis.drawn import drawn_numbers
from rigctl.analysis.frames import Frames, load
from rigctl.analysis.panels import matrix
from rigctl.analysis.summary import CellSummary, summaries
from rigctl.garbage import uncollected
from rigctl.model.search import decided
from rigctl.records import Repetition, RunInfo, Status
from rigctl.report.files import write_whole
from rigctl.report.sections.bins import bin_section, bin_words, gap_words
from rigctl.report.sections.captures import capture_table, capture_words
from rigctl.report.sections.counters.section import port_rates, section
from rigctl.report.sections.datagrams import search_table, search_words
from rigctl.report.sections.host_facts import fact_rows
from rigctl.report.sections.matrix.charts import matrix_section
from rigctl.report.sections.messages.chart import message_legend, message_svg
from rigctl.report.sections.messages.round_trips import trip_words
from rigctl.report.sections.messages.table import message_results, message_table, message_words, shaping_words
from rigctl.report.sections.retest import first_of, retested, until_words
from rigctl.report.sections.streams.comparison import comparison
from rigctl.report.sections.streams.goodput_chart import goodput_charts, legend, shown_repetition
from rigctl.report.sections.streams.soak import MOST_POINTS, Line, soak_section
from rigctl.report.sections.streams.words import answer, explain, rig_words
from rigctl.report.text import plural, rate_text, settings_text
from rigctl.resources import templates
from rigctl.units import format_duration

MOST_EXPLAINED: Final = 200
"""Cells with sentences of their own; a matrix of thousands is read from its export."""
MOST_OPEN: Final = 60
"""A table of more rows is folded away, below what is said and drawn of it."""


def write_report(info: RunInfo, repetitions: Sequence[Repetition], path: Path) -> None:
    """Write the page of a run to `path`, whole or not at all. Raises `InputError` where that can't be."""
    write_whole(path, render(info, repetitions).encode("utf-8", "replace"))


@uncollected()
def render(info: RunInfo, repetitions: Sequence[Repetition]) -> str:
    """The page as text. Every text of the user is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    # What ends in .html.j2 is escaped too; only the style sheet and the charts, which are ours, go in as they are.
    loader = FileSystemLoader(templates())
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    first, again = decided(info.plan, first_of(info, repetitions)), retested(info, repetitions)
    parts = (_message_parts if info.plan.in_messages else _stream_parts)(info, first)
    trials = search_table(info, repetitions)
    bins = bin_section(info, first)
    more = [
        *(gap_words(info, bins) if bins else ()),
        *capture_words(repetitions),
        *until_words(info, repetitions),
        *(again.sentences if again else ()),
    ]
    parts["answer"] = [*search_words(info, repetitions), *parts["answer"], *more]
    style = "".join((templates() / name).read_text("utf-8") for name in ("report.css", "matrix.css"))
    return environment.get_template("report.html.j2").render(
        style=Markup(style),  # noqa: S704 — our own file
        info=info,
        title=info.plan.title or info.plan.scenario_name,
        when=_when(info),
        nodes=list(info.facts),
        facts=fact_rows(info.facts),
        again=again,
        trials=trials,
        captures=capture_table(repetitions),
        bins=bins,
        bin_words=bin_words(bins) if bins else "",
        datagrams=any(cell.transport == "udp" for cell in info.plan.cells),
        **parts,
    )


def _message_parts(info: RunInfo, repetitions: Sequence[Repetition]) -> dict[str, Any]:
    """What the page says of messages: their table, and the chart against their size."""
    results = message_results(info, repetitions)
    blast = not info.plan.cells[0].kind.round_trips
    note = (
        "Throughput at the sender, until the receiver acknowledged the last byte; the dashed line is the ceiling."
        if blast
        else "Means; the bars reach from what half of the round trips did not exceed to what 99 % of them did not."
    )
    return {
        "answer": [
            *message_words(results, again=info.plan.retest is not None),
            *trip_words(results),
            *rig_words(info),
            *shaping_words(info, results),
        ],
        "messages": {
            "title": "Throughput against message size" if blast else "Round-trip time against message size",
            "svg": message_svg(results),
            "legend": message_legend(results),
            "note": note,
        },
        "table": message_table(results),
        "matrix": None,
        "soak": None,
        "counters": None,
        "folded": False,
        "charts": [],
        "legend": [],
        "has_ceiling": False,
        "charts_left": 0,
        "explained": [],
        "explained_left": 0,
        "method": message_method(info),
    }


def _stream_parts(info: RunInfo, repetitions: Sequence[Repetition]) -> dict[str, Any]:
    """What the page says of streams: table, charts, sentences, counters."""
    frames = load(info, repetitions)
    cells = summaries(frames)
    found = matrix(info.plan, cells)
    drawn = drawn_numbers(info.plan)
    explained = [cell for cell in cells if cell.cell.number in drawn] if found else cells[:MOST_EXPLAINED]
    return {
        "messages": None,
        "answer": answer(info, cells),
        "matrix": matrix_section(info, found) if found else None,
        "soak": soak_section(frames, cells[0], _counted_lines(frames)) if cells else None,
        "counters": section(info, frames.repetitions, frames.derived.balances),
        "table": comparison(cells),
        "folded": len(cells) > MOST_OPEN,
        "charts": _charts(frames, cells),
        "legend": legend(frames),
        "has_ceiling": any(_one_ceiling(cell) is not None for cell in cells),
        "charts_left": max(0, sum(cell.counted > 0 for cell in cells) - len(drawn)),
        "explained": [
            (cell.cell.number, settings_text(cell.cell, bool(found)), explain(info, cell)) for cell in explained
        ],
        "explained_left": len(cells) - len(explained),
        "method": method(info, repetitions),
    }


def _charts(frames: Frames, cells: Sequence[CellSummary]) -> list[dict[str, Any]]:
    from markupsafe import Markup

    by_number = {cell.cell.number: cell for cell in cells}
    pairs = len({len(cell.cell.pairs) for cell in cells}) > 1
    made = goodput_charts(frames, {number: _one_ceiling(cell) for number, cell in by_number.items()})
    return [
        {
            "number": chart.cell,
            "settings": settings_text(by_number[chart.cell].cell, pairs),
            "repetition": chart.repetition if frames.info.plan.repeat > 1 else None,
            "from": rate_text(chart.from_mbps) if chart.from_mbps > 0 else None,
            "svg": Markup(chart.svg),  # noqa: S704 — made by vl-convert, which escapes the names in it
        }
        for chart in made
    ]


def _counted_lines(frames: Frames) -> list[Line]:
    """What the switches counted during the repetition that is drawn."""
    shown = shown_repetition(frames.repetitions)
    return [] if shown is None else list(port_rates(frames.info.plan, shown, MOST_POINTS))


def _one_ceiling(cell: CellSummary) -> float | None:
    """The ceiling of a pair, where it is one number for all of them."""
    found = {stream.ceiling_mbps for stream in cell.streams}
    return found.pop() if len(found) == 1 else None


def _when(info: RunInfo) -> str:
    started = datetime.fromtimestamp(info.started_at).astimezone()
    took = f", took {format_duration(info.ended_at - info.started_at)}" if info.ended_at is not None else ""
    return f"{started:%Y-%m-%d %H:%M %Z}{took}"


def method(info: RunInfo, repetitions: Sequence[Repetition]) -> list[str]:
    """How it was measured, in sentences: times, skew, clock error, what counts and what does not."""
    durations = sorted({cell.duration_s for cell in info.plan.cells})
    omitted = sorted({cell.omit_s for cell in info.plan.cells})
    each = (
        " to ".join(dict.fromkeys(format_duration(time) for time in (durations[0], durations[-1]))) if durations else ""
    )
    said = [f"{plural(len(info.plan.cells), 'test')} of {each}, {plural(info.plan.repeat, 'repetition')} each."]
    if omitted and omitted[-1] > 0:
        said.append(f"The first {format_duration(omitted[-1])} of each do not count.")
    counted = "Goodput is application bytes per second at the receiver, counted only while all flows of a test ran; "
    if any(cell.transport == "udp" for cell in info.plan.cells):
        said.append(f"{counted}a datagram that came twice counts once. Loss, order and jitter are of all a test sent.")
        said.append(
            "Each datagram has a number and the time it was handed over. Jitter is that of RFC 3550 as it stood at the "
            "end; datagrams that a kernel handed over together arrived at one instant."
        )
    else:
        said.append(f"{counted}retransmits are TCP segments sent again in that time.")
    skews = [one.start_skew_us for one in repetitions if one.start_skew_us is not None]
    errors = [one.clock_error_us for one in repetitions if one.clock_error_us is not None]
    if skews:
        middle, worst = median(skews) / 1e3, max(skews) / 1e3
        said.append(f"The flows of a test started within {middle:.2f} ms (median; at worst {worst:.2f} ms).")
    if errors:
        said.append(f"The nodes' clocks were compared to within {max(errors) / 1e3:.2f} ms.")
    invalid = sum(one.status is Status.INVALID for one in repetitions)
    failed = sum(one.status is Status.FAILED for one in repetitions)
    strangers = sum(usage.strangers for one in repetitions for usage in one.nodes)
    if invalid or failed:
        said.append(f"Repetitions: {invalid} invalid, {failed} failed; shown with the reason, never averaged in.")
    if strangers:
        said.append(f"{plural(strangers, 'connection')} without the test's token came to a data port and got nothing.")
    return said + _measured_with(info)


def message_method(info: RunInfo) -> list[str]:
    """How messages were measured."""
    said = [f"{plural(len(info.plan.cells), 'test')}, {plural(info.plan.repeat, 'repetition')} each."]
    if info.plan.cells[0].kind.files:
        said.append(
            "The sender reads its file, which was put on its disk and out of its memory before, in pieces of 64 KiB; "
            "the receiver writes as it receives, and sends one byte when it has written all. Elapsed: from the first "
            "send to that byte, on the sender's clock. Sync: what the receiver's disk took after that to have it safe."
        )
    elif not info.plan.cells[0].kind.round_trips:
        said.append(
            "The sender sends messages one after the other; the receiver takes them, and sends one byte when it has "
            "all. Elapsed: from the first send to that byte, on the sender's clock."
        )
    else:
        said.append(
            "Each message is sent back when it has arrived whole, and the next one sent when it is back. Elapsed: from "
            "the first send to the last answer, on the sender's clock."
        )
        said.append("Mean, least and largest round trip are exact; percentiles are of a histogram, within 0.4 %.")
    said.append("Between repetitions the connection is made anew; what the handshake takes is not counted.")
    return said + _measured_with(info)


def _measured_with(info: RunInfo) -> list[str]:
    versions = ", ".join(f"{name} {value[:12]}" for name, value in info.versions.items())
    return [f"Measured with {versions}."] if versions else []
