"""Every printer prints any document: the answer, the results, three findings; and executes nothing of its texts."""

import json
from dataclasses import replace
from pathlib import Path

import builders
import jsonschema
import pytest
from documents import printed
from rich.console import Console

from rigctl.findings import Finding, Weight
from rigctl.report.blocks import (
    Chart,
    Charts,
    Column,
    Document,
    Entry,
    Folded,
    HeatField,
    HeatMap,
    HeatMaps,
    Items,
    Key,
    Paragraph,
    Row,
    Section,
    Table,
    Term,
    Terms,
    Verbatim,
)
from rigctl.report.charts.plot import Axis, Line, plot
from rigctl.report.document import document
from rigctl.report.printers.html import page
from rigctl.report.printers.json import as_json
from rigctl.report.printers.table_parts import MOST_PAPER_ROWS, PAPER_CHARACTERS, paper_parts, screen_parts
from rigctl.report.printers.terminal import _rich_table, _widest

PLOT = plot(200, 100, Axis("seconds"), Axis("Mbit/s"), (Line(((0, 1), (1, 2)), "s1"),))
TABLE = Table(
    (Column("Test", "", "requested"), Column("Goodput", "Mbit/s"), Column("Limit", "", "derived", words=True)),
    (
        Row((Entry("1", 1), Entry("941", 940.9), Entry("line-rate", "line-rate", "good")), 1),
        Row((Entry("2", 2), Entry("–"), Entry("–")), 2, (1,), counted=False),
    ),
    ("Test 2: failed: no route.",),
    ("Means.",),
)


DOCUMENT = Document(
    title="A title",
    run="20261122-041500-ab12",
    about=("rig", "2026-11-22"),
    notes="Some notes.",
    findings=(
        Finding("The answer.", Weight.ANSWER),
        *(Finding(f"Finding {number}.", Weight.DETAIL, numbers={"goodput_mbps": 941.2}) for number in range(1, 6)),
    ),
    results=(Section("Results", (TABLE,), brief=True),),
    sections=(
        Section("Brief", (Paragraph("A paragraph."), Items(("An item.",))), brief=True),
        Section("For the page", (Terms((Term("Test 1", "window 64 KiB", ("A sentence.",)),)), Verbatim("text: 1"))),
        Section(
            "Drawn",
            (
                Charts((Chart(PLOT, "a point", "caption", "Test 1"),), (Key("a", "s1"),)),
                HeatMaps((HeatMap("map", "pairs", ("1",), (("1", (HeatField("0.94", "h1", 940.0),)),)),), "Gbit/s"),
                Folded("more", (Paragraph("inside"),)),
            ),
            brief=True,
        ),
    ),
    footer="Made by rigctl.",
)


@pytest.mark.parametrize("width", [30, 40, 60])
def test_a_narrow_terminal_gets_the_table_in_parts_and_nothing_is_cut(width: int) -> None:
    wide = replace(
        TABLE,
        columns=(TABLE.columns[0], *(Column(f"Column{number}") for number in range(8))),
        rows=(Row((Entry("1", 1), *(Entry(f"{number}" * 6, number) for number in range(8))), 1),),
    )
    lines = printed(replace(DOCUMENT, results=(Section("Results", (wide,), brief=True),)), width)
    table = lines[: next(at for at, line in enumerate(lines) if "Finding" in line)]
    assert max(map(len, table)) <= width
    for number in range(8):
        assert sum(f"{number}" * 6 in line for line in table) == 1


def test_json_keeps_to_the_schema_in_docs() -> None:
    schema = json.loads((Path(__file__).parents[3] / "docs" / "schemas" / "show.schema.json").read_text())
    jsonschema.validate(json.loads(as_json(DOCUMENT)), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"version": 1}, schema)


def test_a_table_wider_than_paper_is_printed_in_parts_that_begin_with_its_first_column() -> None:
    columns = (Column("Test"), *(Column(f"A column {number}") for number in range(30)))
    wide = Table(columns, (Row((Entry("1", 1), *(Entry("1234567.89") for _ in range(30))), 1),), ("note",), ("legend",))
    parts = paper_parts(wide)
    assert len(parts) > 1
    assert all(part.columns[0].title == "Test" for part in parts)
    assert [column.title for part in parts for column in part.columns[1:]] == [column.title for column in columns[1:]]
    assert all(sum(len(entry.text) + 2 for entry in part.rows[0].entries) <= PAPER_CHARACTERS for part in parts)
    assert [part.notes for part in parts] == [()] * (len(parts) - 1) + [("note",)]


def test_a_wide_table_of_many_rows_is_printed_across_instead_of_twice() -> None:
    columns = tuple(Column(f"Column {number}") for number in range(30))
    row = Row(tuple(Entry("1234567.89") for _ in columns), 1)
    long = Table(columns, (row,) * (MOST_PAPER_ROWS + 1))
    assert paper_parts(long) == []
    assert paper_parts(replace(long, rows=(row,) * MOST_PAPER_ROWS)) != []
    text = page(replace(DOCUMENT, results=(Section("Results", (long,)),)))
    assert text.count('<div class="scroll across"') == len(screen_parts(long))
    assert '<div class="paper"' not in text
    assert len(paper_parts(replace(TABLE, rows=TABLE.rows * MOST_PAPER_ROWS))) == 1


def test_a_narrow_terminal_shows_two_tables_and_cuts_nothing() -> None:
    lines = printed(document(*builders.gigablox()), 80)
    assert not any("…" in line for line in lines)
    assert max(len(line) for line in lines) <= 80
    heads = [line for line in lines if line.strip().startswith("Test ")]
    assert len(heads) == 2


@pytest.mark.parametrize("kept", [[], [1], [2], [1, 3], [1, 2, 3]])
def test_a_table_is_measured_by_its_widest_texts_in_whatever_rows_they_are(kept: list[int]) -> None:
    columns = tuple(
        Column(name, unit) for name, unit in (("Test", ""), ("Speed", "Mbit/s"), ("Loss", ""), ("Limit", ""))
    )
    rows = [["1", "一" * 9, "-", "a" * 20], ["1234567", "12", "b" * 30, "-"], ["all", "c" * 17, "-\n" * 20, "-"]]
    first, second, total = (Row(tuple(map(Entry, texts))) for texts in rows)
    table = Table(columns, (replace(first, notes=(1, 12, 345)), second), total=total)
    console = Console(width=500)
    widths = [console.measure(_rich_table(each, kept)).maximum for each in (table, _widest(table))]
    assert widths[0] == widths[1]
