"""Which tests have a large chart, the lines in the rows of a table, and the values beside a drawing."""

import json
import re
from dataclasses import replace
from html import unescape

import builders
import pytest

from rigctl.report.blocks import Charts, Folded, Table
from rigctl.report.charts.marks import LIGHT
from rigctl.report.charts.plot import Axis, Bars, Line, Panel, Plot, Points, Rule
from rigctl.report.charts.svg import render_sparkline, render_svg
from rigctl.report.document import document
from rigctl.report.printers.html import page
from rigctl.report.printers.table_parts import screen_parts
from rigctl.report.sections.over_time import Trace, eventful

LEVEL = [940.0, 941.0, 939.5, 941.2, 940.4, 938.8, 941.0, 940.0, 939.0, 941.1]


def trace(goodput_mbps: list[float], retransmits: list[int] | None = None, name: str = "a → b") -> Trace:
    middles_s = [0.5 + number for number in range(len(goodput_mbps))]
    return Trace(name, float(len(goodput_mbps)), middles_s, goodput_mbps, retransmits or [0] * len(goodput_mbps))


@pytest.mark.parametrize(
    ("found", "seen"),
    [
        ([trace(LEVEL)], False),
        ([trace(LEVEL), trace(LEVEL)], False),
        ([trace([11.0, 10.2, 11.9, 10.8, 11.1])], False),
        ([trace(LEVEL, [3, 2, 4, 3, 2, 3, 3, 4, 2, 3])], False),  # evenly spread
        ([trace(LEVEL, [0, 0, 0, 0, 5, 0, 0, 0, 0, 0])], False),  # a few
        ([trace([0.0, 0.0, 0.0])], False),
        ([trace([*LEVEL, 600.0])], True),  # a dip
        ([trace([*LEVEL, 0.0])], True),
        ([trace([300.0, *LEVEL])], True),  # a slow start
        ([trace([*LEVEL[:5], *(600.0,) * 5])], True),  # a step
        ([trace(LEVEL, [0, 0, 0, 0, 120, 0, 0, 0, 0, 0])], True),
        ([trace(LEVEL * 2, [0] * 19 + [120])], True),  # a burst
        ([trace(LEVEL), trace([0.8 * mbps for mbps in LEVEL])], True),  # pairs that differ
        ([trace(LEVEL), trace([0.95 * mbps for mbps in LEVEL])], False),
    ],
)
def test_a_test_has_a_large_chart_where_something_is_to_be_seen(found: list[Trace], seen: bool) -> None:
    assert eventful(found) is seen


def sections_of() -> tuple[list[Charts], list[Folded], Table]:
    made = document(*builders.gigablox())
    (section,) = [section for section in made.sections if section.title == "Goodput over time"]
    table = next(block for block in made.results[0].blocks if isinstance(block, Table))
    opened = [block for block in section.blocks if isinstance(block, Charts)]
    return opened, [block for block in section.blocks if isinstance(block, Folded)], table


def test_steady_tests_are_folded_and_every_row_has_its_line() -> None:
    opened, folded, table = sections_of()
    drawn = [len(block.charts) for block in opened]
    hidden = [len(inner.charts) for block in folded for inner in block.blocks if isinstance(inner, Charts)]
    assert sum(drawn) + sum(hidden) == len(table.rows) == 7
    assert sum(hidden) > 0
    lines = [row.over_time for row in table.rows]
    assert all(line is not None and len(line.lines) == 2 for line in lines)
    assert len({line.most for line in lines if line}) == 1  # one scale
    assert lines[0] is not None
    assert re.fullmatch(r"Goodput over time: [0-9.]+ to [0-9.]+ Mbit/s", lines[0].label)


def test_the_line_stands_in_the_last_part_of_a_table_that_is_split() -> None:
    _, _, table = sections_of()
    column = table.columns[-1]
    wide = replace(
        table,
        columns=table.columns + (replace(column, title="a long title of a column"),) * 12,
        rows=tuple(replace(row, entries=row.entries + row.entries[-1:] * 12) for row in table.rows),
    )
    parts = screen_parts(wide)
    assert len(parts) > 1
    assert [all(row.over_time for row in part.rows) for part in parts] == [False] * (len(parts) - 1) + [True]


def test_a_page_has_a_column_for_the_lines_and_names_them_for_screen_readers() -> None:
    text = page(document(*builders.gigablox()))
    assert text.count(">Over time</th>") >= 1
    assert len(re.findall('<span role="img" aria-label="Goodput over time: [^"]+"><svg', text)) >= 7


def test_a_line_begins_at_the_left_and_0_is_at_the_foot() -> None:
    svg = render_sparkline([("s1", (0.0, 10.0)), ("s2", (10.0,))], 10.0)
    (height,) = re.findall(r'height="(\d+)"', svg)
    assert re.findall('class="s1" d="M1 ([0-9.]+)', svg) == [str(int(height) - 1)]
    assert re.findall('class="s2" d="M1 1l', svg)


def test_the_values_of_a_series_stand_beside_its_drawing_exactly() -> None:
    points = ((0.05, 940.361), (0.15, None), (0.25, 941.0))
    hostile = "<b>'\"&"
    panels = (
        Panel(Axis("it's <Mbit/s>", 0, 1000), (Rule(941.5, name="ceiling"), Line(points, "s1", name=hostile)), 100),
        Panel(Axis("retransmits", 0, 4), (Bars(((0.05, 0), (0.15, 123456), (0.25, 1)), "s2", name="b"),), 30),
    )
    svg = render_svg(Plot(400, Axis("seconds", 0, 0.3), panels))
    found = [json.loads(unescape(text)) for text in re.findall(r"data-panel='([^']*)'", svg)]
    assert [up[0] for up in found] == ["it's <Mbit/s>", "retransmits"]
    assert [up[1:4] for up in found] == [["linear", 0, 1000], ["linear", 0, 4]]
    (across,) = (json.loads(unescape(text)) for text in re.findall(r"data-axis='([^']*)'", svg))
    assert across[:4] == ["seconds", "linear", 0, 0.3]
    assert across[4] + across[5] <= 400
    assert [unescape(name) for name in re.findall('data-name="([^"]*)"', svg)] == ["ceiling", hostile, "b"]
    assert re.findall('data-x="([^"]*)"', svg) == ["0.05 0.15 0.25"] * 2
    assert re.findall('data-y="([^"]*)"', svg) == ["940.36 - 941", "0 123456 1"]


def test_series_with_the_same_positions_have_them_once_and_dates_to_the_second() -> None:
    at = (1763950000.0, 1764036400.0)
    marks = tuple(
        Line(tuple(zip(at, values, strict=True)), "s1", name=name) for name, values in (("a", (1, 2)), ("b", (3, 4)))
    )
    svg = render_svg(Plot(400, Axis(kind="date"), (Panel(Axis("Mbit/s"), marks, 100),)))
    assert re.findall('data-x="([^"]*)"', svg) == ["1763950000 1764036400"]


def test_a_plot_without_names_and_one_that_stands_alone_have_no_values() -> None:
    panel = Panel(Axis("y"), (Points(((1, 2),), "s1"), Line(((1, 2), (2, 3)), "s1")), 100)
    assert "data-" not in render_svg(Plot(400, Axis("x"), (panel,)))
    named = Plot(400, Axis("x"), (Panel(Axis("y"), (Line(((1, 2), (2, 3)), "s1", name="a"),), 100),))
    assert "data-y" in render_svg(named)
    assert "data-" not in render_svg(named, LIGHT)


def test_a_page_without_charts_has_no_script_and_allows_none() -> None:
    made = document(*builders.gigablox())
    bare = page(replace(made, sections=()))
    assert "<script>" not in bare
    assert "script-src 'none'" in bare
    with_charts = page(made)
    assert with_charts.count("<script>") == 1
    assert re.findall(r"script-src ('[^']*')", with_charts)[0].startswith("'sha256-")
