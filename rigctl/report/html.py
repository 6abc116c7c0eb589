"""The report: one self-contained HTML file. No script, no request, no font but the reader's own."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any, Final

from rigctl.records import Repetition, RunInfo, Status
from rigctl.report.charts import drawn_numbers, goodput_charts, legend, shown_repetition
from rigctl.report.counters import port_rates, section
from rigctl.report.facts import fact_rows
from rigctl.report.files import write_whole
from rigctl.report.frames import Frames, load
from rigctl.report.matrix import matrix
from rigctl.report.matrix_charts import matrix_section
from rigctl.report.soak import Line, soak_section
from rigctl.report.summary import CellSummary, summaries
from rigctl.report.tables import comparison
from rigctl.report.text import plural, rate_text, settings_text
from rigctl.report.words import answer, explain
from rigctl.resources import templates
from rigctl.units import format_duration

MOST_EXPLAINED: Final = 200
"""Cells with sentences of their own; a matrix of thousands is read from its export."""
MOST_OPEN: Final = 60
"""A table of more rows is folded away, below what is said and drawn of it."""


def write_report(info: RunInfo, repetitions: Sequence[Repetition], path: Path) -> None:
    """Write the page of a run to `path`, whole or not at all. Raises `InputError` where that can't be."""
    write_whole(path, render(info, repetitions).encode("utf-8", "replace"))


def render(info: RunInfo, repetitions: Sequence[Repetition]) -> str:
    """The page as text. Every text of the user is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    frames = load(info, repetitions)
    cells = summaries(frames)
    # What ends in .html.j2 is escaped too; only the style sheet and the charts, which are ours, go in as they are.
    loader = FileSystemLoader(templates())
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    found = matrix(info.plan, cells)
    drawn = drawn_numbers(info.plan)
    explained = [cell for cell in cells if cell.cell.number in drawn] if found else cells[:MOST_EXPLAINED]
    style = "".join((templates() / name).read_text("utf-8") for name in ("report.css", "matrix.css"))
    return environment.get_template("report.html.j2").render(
        style=Markup(style),  # noqa: S704 — our own file
        info=info,
        title=info.plan.title or info.plan.scenario_name,
        when=_when(info),
        answer=answer(info, cells),
        matrix=matrix_section(info, found) if found else None,
        soak=soak_section(frames, cells[0], _counted_lines(frames)) if cells else None,
        counters=section(info, frames.repetitions, frames.derived.balances),
        table=comparison(cells),
        folded=len(cells) > MOST_OPEN,
        charts=_charts(frames, cells),
        legend=legend(frames),
        has_ceiling=any(_one_ceiling(cell) is not None for cell in cells),
        charts_left=max(0, sum(cell.counted > 0 for cell in cells) - len(drawn)),
        explained=[
            (cell.cell.number, settings_text(cell.cell, bool(found)), explain(info, cell)) for cell in explained
        ],
        explained_left=len(cells) - len(explained),
        nodes=list(info.facts),
        facts=fact_rows(info.facts),
        method=method(info, repetitions),
    )


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
    return [] if shown is None else list(port_rates(frames.info.plan, shown))


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
    said.append(
        "Goodput is application bytes per second at the receiver, counted only while all flows of a test ran; "
        "retransmits are TCP segments sent again in that time."
    )
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
    versions = ", ".join(f"{name} {value[:12]}" for name, value in info.versions.items())
    if versions:
        said.append(f"Measured with {versions}.")
    return said
