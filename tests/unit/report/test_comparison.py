"""The comparison table: the page's form, what it lacks beside it, failures shown and not averaged."""

from dataclasses import replace

import builders

from rigctl.analysis.frames import load
from rigctl.analysis.summary import summaries
from rigctl.records import Cell, Direction, Pair, Repetition, RunInfo, RunStatus, Status
from rigctl.report.printers.markdown import markdown
from rigctl.report.sections.streams.comparison import comparison
from rigctl.report.table import ComparisonTable


def table_of(info: RunInfo, measured: list[Repetition]) -> ComparisonTable:
    return comparison(summaries(load(info, measured)))


def table_for(cell: Cell, *measured: Repetition, **plan: object) -> ComparisonTable:
    return table_of(builders.run(builders.plan([cell], **plan)), list(measured))


def column(table: ComparisonTable, title: str) -> list[str]:
    at = [one.title for one in table.columns].index(title)
    return [row.cells[at] for row in table.rows]


def test_the_table_of_the_page_is_reproduced() -> None:
    table = table_of(*builders.gigablox())
    found = [row.cells[:6] for row in table.rows]
    assert found == [
        (str(n), str(window), str(mss), str(parallel), f"{speeds[0]}, {speeds[1]}", f"{again[0]}, {again[1]}")
        for n, (window, mss, parallel, speeds, again) in enumerate(builders.GIGABLOX, 1)
    ]
    assert [one.header for one in table.columns[:6]] == [
        "Test",
        "Window [KiB]",
        "MSS [B]",
        "Parallel",
        "Speed of each pair [Mbit/s]",
        "Retransmits",
    ]


def test_what_the_page_lacks_stands_beside_it() -> None:
    table = table_of(*builders.gigablox())
    assert column(table, "Effective MSS") == ["1448"] * 7
    assert column(table, "Effective window") == ["64", "64", "64", "200", "64", "200", "200"]
    assert column(table, "Ceiling of a pair") == ["941.5"] * 7
    assert column(table, "Efficiency") == ["98.4", "98.7", "97.0", "96.1", "99.9", "98.2", "99.4"]
    assert column(table, "Limit") == ["line-rate", "line-rate", "unknown", "unknown", *["line-rate"] * 3]


def test_only_the_axes_that_are_set_have_a_column() -> None:
    plain = builders.cell(window_bytes=None, mss=None)
    titles = [one.title for one in table_for(plain, builders.repetition(plain)).columns]
    assert titles[:3] == ["Test", "Parallel", "Speed of each pair"]
    full = builders.cell(congestion="bbr", nodelay=True, direction=Direction.REVERSE)
    titles = [one.title for one in table_for(full, builders.repetition(full)).columns]
    assert titles[4:7] == ["Congestion", "Nodelay", "Direction"]


def test_repetitions_are_averaged_with_their_spread() -> None:
    cell = builders.cell()
    measured = [builders.repetition(cell, (900 + 10 * n, 940), number=n) for n in (1, 2, 3)]
    table = table_for(cell, *measured, repeat=3)
    assert column(table, "Speed of each pair") == ["920 ± 10, 940 ± 0.0"]
    assert "standard deviation" in table.legend[0]


def test_an_invalid_repetition_is_shown_with_its_reason_and_never_averaged() -> None:
    cell = builders.cell()
    bad = builders.repetition(cell, (100, 100), status=Status.INVALID, reason="start skew 14.0 ms")
    good = builders.repetition(cell, (900, 940), attempt=2)
    table = table_for(cell, bad, good)
    assert column(table, "Speed of each pair") == ["900, 940"]
    assert table.notes == ("Test 1: invalid: start skew 14.0 ms (100, 100 Mbit/s, not counted); measured once more.",)
    assert table.rows[0].notes == (1,)


def test_a_cell_that_failed_shows_dashes_and_the_reason() -> None:
    cell = builders.cell()
    table = table_for(cell, builders.failed(cell))
    assert column(table, "Speed of each pair") == ["–, –"]
    assert column(table, "Retransmits") == ["–, –"]
    assert (column(table, "Efficiency"), column(table, "Limit")) == (["–"], ["–"])
    assert table.notes == ("Test 1: failed: pi4: connection refused.",)
    assert not table.rows[0].counted


def test_a_cell_that_was_not_reached_says_so() -> None:
    cell = builders.cell()
    assert table_for(cell).notes == ("Test 1 was not measured.",)
    running = builders.run(builders.plan([cell]), status=RunStatus.RUNNING)
    assert table_of(running, []).notes == ("Test 1 was not measured yet.",)


def test_both_directions_stand_side_by_side() -> None:
    cell = builders.cell(direction=Direction.BOTH)
    table = table_for(cell, builders.repetition(cell, (940, 930, 920, 910)))
    assert column(table, "Speed of each pair") == ["940 / 930, 920 / 910"]
    assert "forward / reverse" in table.legend[0]


def test_many_pairs_are_a_sum_and_a_range() -> None:
    cell = builders.cell(pairs=tuple(Pair(f"a{n}", f"b{n}") for n in range(12)))
    table = table_for(cell, builders.repetition(cell, [600.0 + n for n in range(12)], [1] * 12))
    assert column(table, "Speed, sum") == ["7266"]
    assert column(table, "Speed of each pair") == ["600 to 611"]
    assert column(table, "Retransmits") == ["12"]


def test_pairs_that_share_a_link_show_what_they_can_have_together() -> None:
    cell = builders.cell(pairs=(Pair("a", "b"), Pair("a", "c")))
    table = table_for(cell, builders.repetition(cell, (470, 471)))
    assert column(table, "Ceiling of a pair") == ["941.5 together"]


def test_pairs_that_were_granted_different_things_show_each() -> None:
    cell = builders.cell()
    one = builders.repetition(cell)
    jumbo = one.flows[1]
    assert jumbo.sender is not None
    other = replace(jumbo, sender=builders.counting(jumbo.sender, mss=8948, pmtu=9000))
    table = table_for(cell, replace(one, flows=(one.flows[0], other)))
    assert column(table, "Effective MSS") == ["1448, 8948"]
    assert column(table, "Ceiling of a pair") == ["941.5, 990.0"]


def test_markdown_has_aligned_numbers_units_and_numbered_notes() -> None:
    cell = builders.cell()
    text = markdown(table_for(cell, builders.failed(cell, "pi4: a | b <script>")))
    lines = text.splitlines()
    assert lines[0].startswith("| Test | Window [KiB] | MSS [B] |")
    assert lines[1].startswith("|--:|--:|")
    assert lines[2].startswith("| 1 [1] | 64 | 1460 | 1 | –, – |")
    assert lines[4].strip() == r"[1] Test 1: failed: pi4: a \| b \<script\>."
