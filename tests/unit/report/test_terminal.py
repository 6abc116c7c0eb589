"""What a terminal shows: the table whole where it fits, in two parts where not; runs with their fate."""

from dataclasses import replace

import builders
import das2
import pytest
from documents import printed
from rich.console import Console

from rigctl.report.blocks import Column, Entry, Row, Table
from rigctl.report.printers.terminal import MOST_NOTES, _rich_table, _widest


def test_a_wide_terminal_shows_one_table_with_every_row_of_the_page() -> None:
    info, measured = builders.gigablox()
    lines = printed(info, measured, 140)
    assert lines[0] == info.plan.title
    rows = [line.split() for line in lines if line.strip()[:1].isdigit() and "941.5" in line and "tests" not in line]
    assert len(rows) == 7
    assert rows[0] == [
        *["1", "64", "1460", "1", "911,", "941", "135,", "0", "64", "1448", "cubic", "941.5", "98.4", "line-rate"]
    ]


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


def test_markup_in_a_title_or_reason_is_shown_as_it_is() -> None:
    cell = builders.cell()
    info = builders.run(builders.plan([cell], title="[red]hot[/red]"))
    lines = printed(info, [builders.failed(cell, "[link] gone [/]")], 120)
    assert lines[0] == "[red]hot[/red]"
    assert any("[link] gone [/]" in line for line in lines)


def test_a_large_matrix_is_printed_as_grids_with_a_line_that_says_where_the_rest_is() -> None:
    info, measured = das2.run((das2.OFF,), das2.Shape(noise=0.0))
    lines = printed(info, measured[1:], 100)
    assert len(lines) < 100
    assert "Total goodput: resize-off" in lines
    heads = [line for line in lines if line.startswith("Total window ")]
    assert heads == [f"Total window {size} KiB: Gbit/s by pairs and flows" for size in (32, 64, 128, 256)]
    first = lines[lines.index(heads[0]) + 1 :]
    assert first[0].split() == ["pairs", "↓", "flows", "→", *map(str, range(1, 11))]
    assert first[2].split() == ["1", "–", *["0.33"] * 9]
    rest = " ".join(lines)
    assert f"`rigctl export {info.run} --level cells`" in rest
    assert "From 8 pairs on, the sum stays at 7.53 Gbit/s: a shared limit of 8.0 Gbit/s" in rest
    assert "¹ Test 1 was not measured." in rest
    assert rest.count("All 480 tests, a row each") == 1


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


def test_a_small_matrix_is_printed_as_a_table() -> None:
    info, measured = das2.run(windows=(65536,), flows=(1, 2), pairs=(1, 8))
    lines = printed(info, measured, 200)
    assert [line.split()[:3] for line in lines if "resize-off" in line][:2] == [
        ["1", "resize-off", "1"], ["2", "resize-off", "8"],
    ]  # fmt: skip


@pytest.mark.parametrize("width", [60, 80, 110])
def test_a_small_matrix_in_a_narrow_terminal_goes_on_in_further_tables(width: int) -> None:
    info, measured = das2.run(windows=(65536,), flows=(1, 2), pairs=(1, 8))
    lines = printed(info, measured, width)
    assert max(map(len, lines)) <= width
    assert not any("…" in line for line in lines)
    for column in ("Condition", "Pairs", "Parallel", "Efficiency", "Limit"):
        assert sum(column in line.split() for line in lines) == 1


def test_one_long_test_is_printed_with_the_goodput_of_each_flow_and_their_sum() -> None:
    info, measured = das2.run(windows=(131072,), flows=(1,), pairs=(12,))
    lines = printed(info, measured)
    at = lines.index("Goodput of each flow, and their sum")
    assert lines[at + 2].split() == ["Flow", "Pair", "Mbit/s", "Retransmits"] * 2
    flows = [line.split() for line in lines[at + 4 : at + 10]]
    assert [row[0] for row in flows] + [row[6] for row in flows] == [str(number) for number in range(1, 13)]
    assert flows[0][1:4] == ["n01", "→", "n13"]
    (last,) = [line.split() for line in lines[at:] if line.split()[:1] == ["Sum"]]
    assert abs(int(last[1]) - sum(int(row[4]) + int(row[10]) for row in flows)) <= 6
