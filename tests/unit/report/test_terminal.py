"""What a terminal shows: the table whole where it fits, in two parts where not; runs with their fate."""

from dataclasses import replace

import builders
import pytest
from documents import printed
from rich.console import Console

from rigctl.report.blocks import Column, Entry, Row, Table
from rigctl.report.printers.terminal import _rich_table, _widest


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
