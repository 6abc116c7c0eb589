import json
from dataclasses import replace
from pathlib import Path

import builders
import jsonschema
import pages
import pytest

from rigctl.findings import Finding, Weight
from rigctl.report.blocks import Column, Document, Entry, Folded, Paragraph, Row, Section, Table
from rigctl.report.document import document
from rigctl.report.printers.html import page
from rigctl.report.printers.json import as_json
from rigctl.report.printers.table_parts import MOST_PAPER_ROWS, PAPER_CHARACTERS, paper_parts, screen_parts


def with_table(table: Table) -> Document:
    """A document of an answer, this table, a finding, and a folded section without a table."""
    findings = (Finding("The answer.", Weight.ANSWER), Finding("A finding.", Weight.DETAIL))
    results = (Section("Results", (table,), brief=True),)
    folded = (Section("Details", (Folded("more", (Paragraph("inside"),)),), brief=True),)
    return replace(document(*builders.gigablox()), findings=findings, results=results, sections=folded)


@pytest.mark.parametrize("name", pages.RUNS)
def test_json_keeps_to_the_schema_in_docs(name: str) -> None:
    schema = json.loads((Path(__file__).parents[3] / "docs" / "schemas" / "show.schema.json").read_text())
    jsonschema.validate(json.loads(as_json(document(*pages.RUNS[name]()))), schema)
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
    text = page(with_table(long))
    assert text.count('<div class="scroll across"') == len(screen_parts(long))
    assert '<div class="paper"' not in text
    assert len(paper_parts(Table(columns[:3], (Row(row.entries[:3], 1),) * 2 * MOST_PAPER_ROWS))) == 1
