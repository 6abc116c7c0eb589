"""What a terminal shows: the table whole where it fits, in two parts where not; runs with their fate."""

from dataclasses import replace

import builders
import das2
import pytest
from documents import printed
from rich.console import Console

from rigctl.report.blocks import Column, Entry, Row, Table
from rigctl.report.printers.terminal import MOST_NOTES, _rich_table, _widest


def test_a_narrow_terminal_shows_two_tables_and_cuts_nothing() -> None:
    info, measured = builders.gigablox()
    lines = printed(info, measured, 80)
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


def test_what_does_not_count_is_footnoted() -> None:
    cell = builders.cell()
    lines = printed(builders.run(builders.plan([cell])), [builders.failed(cell)], 120)
    assert any(line.strip().startswith("1¹") for line in lines)
    assert "¹ Test 1: failed: pi4: connection refused." in lines


def test_of_many_notes_the_first_are_printed() -> None:
    info, measured = das2.run(windows=das2.WINDOWS[:1])
    lines = printed(info, measured[:100])
    assert sum(line[1:].startswith(" Test ") for line in lines) == MOST_NOTES == 5
    assert "15 more notes are in the report." in lines
    info, measured = builders.gigablox()
    lines = printed(info, measured[:1], 120)
    assert "1 more note is in the report." in lines
    lines = printed(info, [], 120)
    assert "2 more notes are in the report." in lines
    assert sum(line[1:].startswith(" Test ") for line in printed(info, [], 120, everything=True)) == 7
