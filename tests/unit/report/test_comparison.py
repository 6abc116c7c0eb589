"""The comparison table: the page's form, what it lacks beside it, failures shown and not averaged."""

from dataclasses import replace

import builders
from documents import cells_of, column, entries, titles

from rigctl.records import Cell, Copying, Direction, Pair, Repetition, RunInfo, RunStatus, Status
from rigctl.report.blocks import Entry, Table
from rigctl.report.printers.markdown import table_lines
from rigctl.report.sections.streams import comparison

MANY = tuple(Pair(f"a{n}", f"b{n}") for n in range(12))


def table_of(info: RunInfo, measured: list[Repetition]) -> Table:
    return comparison(info, cells_of(info, measured))


def table_for(cell: Cell, *measured: Repetition, **plan: object) -> Table:
    return table_of(builders.run(builders.plan([cell], **plan)), list(measured))


def test_the_table_of_the_page_is_reproduced() -> None:
    table = table_of(*builders.gigablox())
    found = [tuple(entry.text for entry in row.entries[:6]) for row in table.rows]
    assert found == [
        (str(n), str(window), str(mss), str(parallel), f"{speeds[0]}, {speeds[1]}", f"{again[0]}, {again[1]}")
        for n, (window, mss, parallel, speeds, again) in enumerate(builders.GIGABLOX, 1)
    ]
    assert [(made.title, made.unit) for made in table.columns[:6]] == [
        ("Test", ""),
        ("Window", "KiB"),
        ("MSS", "B"),
        ("Parallel", ""),
        ("Goodput of each pair", "Mbit/s"),
        ("Retransmits", ""),
    ]


def test_every_number_keeps_its_value_beside_its_text() -> None:
    table = table_of(*builders.gigablox())
    window, goodput, efficiency = (
        entries(table, title)[0] for title in ("Window", "Goodput of each pair", "Efficiency")
    )
    assert (window.text, window.value) == ("64", 65536)
    assert isinstance(goodput.value, tuple)
    assert [round(value, 1) for value in goodput.value if isinstance(value, float)] == [911.0, 941.0]
    assert isinstance(efficiency.value, float)
    assert f"{efficiency.value:.1f}" == efficiency.text == "98.4"


def test_what_the_page_lacks_stands_beside_it() -> None:
    table = table_of(*builders.gigablox())
    assert column(table, "Effective MSS") == ["1448"] * 7
    assert column(table, "Effective window") == ["64", "64", "64", "200", "64", "200", "200"]
    assert column(table, "Ceiling of a pair") == ["941.5"] * 7
    assert column(table, "Efficiency") == ["98.4", "98.7", "97.0", "96.1", "99.9", "98.2", "99.4"]
    assert column(table, "Limit") == ["line-rate", "line-rate", "unknown", "unknown", *["line-rate"] * 3]
    assert [entry.mark for entry in entries(table, "Limit")] == ["good", "good", "", "", *["good"] * 3]


def test_the_congestion_control_that_ran_has_a_column_where_none_was_requested() -> None:
    table = table_of(*builders.gigablox())
    assert column(table, "Effective congestion control") == ["cubic"] * 7
    requested = builders.cell(congestion="cubic")
    assert "Effective congestion control" not in titles(table_for(requested, builders.repetition(requested)))
    mixed = [builders.cell(1), builders.cell(2, congestion="bbr")]
    measured = [builders.repetition(mixed[0]), builders.repetition(mixed[1], sender={"congestion": "bbr"})]
    table = table_of(builders.run(builders.plan(mixed)), measured)
    assert column(table, "Congestion control") == ["default", "bbr"]
    assert column(table, "Effective congestion control") == ["cubic", "bbr"]


def test_only_the_axes_that_are_set_have_a_column() -> None:
    plain = builders.cell(window_bytes=None, mss=None)
    assert titles(table_for(plain, builders.repetition(plain)))[:3] == ["Test", "Parallel", "Goodput of each pair"]
    full = builders.cell(congestion="bbr", nodelay=True, direction=Direction.REVERSE)
    assert titles(table_for(full, builders.repetition(full)))[4:7] == ["Congestion control", "Nodelay", "Direction"]


def test_repetitions_are_averaged_with_their_spread() -> None:
    cell = builders.cell()
    measured = [builders.repetition(cell, (900 + 10 * n, 940), number=n) for n in (1, 2, 3)]
    table = table_for(cell, *measured, repeat=3)
    assert column(table, "Goodput of each pair") == ["920 ± 10, 940 ± 0.0"]
    assert column(table, "Efficiency") == ["98.8"]
    assert "standard deviation" in table.legend[0]


def test_an_invalid_repetition_is_shown_with_its_reason_and_never_averaged() -> None:
    cell = builders.cell()
    bad = builders.repetition(cell, (100, 100), status=Status.INVALID, reason="start skew 14.0 ms")
    good = builders.repetition(cell, (900, 940), attempt=2)
    table = table_for(cell, bad, good)
    assert column(table, "Goodput of each pair") == ["900, 940"]
    assert table.notes == ("Test 1: invalid: start skew 14.0 ms (100, 100 Mbit/s, not counted); measured once more.",)
    assert table.rows[0].notes == (1,)


def test_a_test_that_failed_shows_dashes_and_the_reason() -> None:
    cell = builders.cell()
    table = table_for(cell, builders.failed(cell))
    assert column(table, "Goodput of each pair") == ["–, –"]
    assert column(table, "Retransmits") == ["–, –"]
    assert (column(table, "Efficiency"), column(table, "Limit")) == (["–"], ["–"])
    assert table.notes == ("Test 1: failed: pi4: connection refused.",)
    assert not table.rows[0].counted
    assert entries(table, "Efficiency") == [Entry("–")]
    assert entries(table, "Goodput of each pair")[0].value == (None, None)


def test_a_test_that_was_not_reached_has_a_note() -> None:
    cell = builders.cell()
    assert table_for(cell).notes == ("Test 1 was not measured.",)
    running = builders.run(builders.plan([cell]), status=RunStatus.RUNNING)
    assert table_of(running, []).notes == ("Test 1 was not measured yet.",)


def test_both_directions_stand_side_by_side() -> None:
    cell = builders.cell(direction=Direction.BOTH)
    table = table_for(cell, builders.repetition(cell, (940, 930, 920, 910)))
    assert column(table, "Goodput of each pair") == ["940 / 930, 920 / 910"]
    assert "forward / reverse" in table.legend[0]


def test_many_pairs_are_a_sum_and_a_range() -> None:
    cell = builders.cell(pairs=MANY)
    table = table_for(cell, builders.repetition(cell, [600.0 + n for n in range(12)], [1] * 12))
    assert column(table, "Total goodput") == ["7266"]
    assert column(table, "Goodput of each pair") == ["600 to 611"]
    assert column(table, "Retransmits") == ["12"]
    assert table.legend == ("Goodput of each pair: the lowest to the highest. Retransmits: of all pairs.",)


def test_where_one_test_has_many_pairs_all_rows_show_ranges() -> None:
    cells = [builders.cell(1, pairs=MANY[:2]), builders.cell(2, pairs=MANY[:1]), builders.cell(3, pairs=MANY)]
    measured = [
        builders.repetition(cells[0], (900, 940)),
        builders.repetition(cells[1], (941,)),
        builders.repetition(cells[2], [600.0] * 12),
    ]
    table = table_of(builders.run(builders.plan(cells)), measured)
    assert column(table, "Pairs") == ["2", "1", "12"]
    assert column(table, "Total goodput") == ["1840", "941", "7200"]
    assert column(table, "Goodput of each pair") == ["900, 940", "941", "600"]


def test_a_pair_of_many_that_is_not_known_is_not_hidden_by_the_range() -> None:
    cell = builders.cell(pairs=MANY)
    measured = builders.repetition(cell, [600.0 + n for n in range(12)])
    flows = tuple(replace(flow, bytes=None) if at == 3 else flow for at, flow in enumerate(measured.flows))
    table = table_for(cell, replace(measured, flows=flows))
    assert column(table, "Goodput of each pair") == ["600 to 611, –"]
    assert column(table, "Total goodput") == ["–"]


def test_a_column_has_one_number_of_decimals_that_of_its_smallest_rate() -> None:
    cells = [builders.cell(number) for number in (1, 2, 3)]
    measured = [
        builders.repetition(cell, rates)
        for cell, rates in zip(cells, ((911, 941), (94.26, 94), (9.4, 9.414)), strict=True)
    ]
    table = table_of(builders.run(builders.plan(cells)), measured)
    assert column(table, "Goodput of each pair") == ["911.00, 941.00", "94.26, 94.00", "9.40, 9.41"]
    table = table_of(builders.run(builders.plan(cells[:2])), measured[:2])
    assert column(table, "Goodput of each pair") == ["911.0, 941.0", "94.3, 94.0"]


def test_no_rate_is_rounded_to_above_its_ceiling() -> None:
    cells = [builders.cell(number, pairs=(Pair("pi1", "pi2"),)) for number in (1, 2)]
    # 1 Gbit/s × 1400 / 1490 are 939.6 Mbit/s: 939.52 is below it, 940 would not be.
    measured = [
        builders.repetition(cell, (rate,), sender={"mss": 1400})
        for cell, rate in zip(cells, (939.52, 900), strict=True)
    ]
    table = table_of(builders.run(builders.plan(cells)), measured)
    assert column(table, "Goodput") == ["939.5", "900.0"]
    assert column(table_of(builders.run(builders.plan(cells)), measured[1:]), "Goodput") == ["–", "900"]


def test_a_row_above_its_ceiling_is_marked_and_has_the_cause_as_a_note() -> None:
    cell = builders.cell(mss=536, pairs=(Pair("pi1", "pi2"),))
    measured = builders.repetition(cell, (890,), sender={"mss": 524})
    table = table_for(cell, measured)
    assert [entry.mark for entry in entries(table, "Efficiency")] == ["warn"]
    assert [(entry.text, entry.mark) for entry in entries(table, "Limit")] == [("unknown", "")]
    assert table.rows[0].notes == (1,)
    assert table.notes[0].startswith("Test 1: 10")
    assert "virtual links are shaped for full frames and carry more of smaller ones" in table.notes[0]


def test_pairs_that_share_a_link_show_their_common_ceiling() -> None:
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
    lines = table_lines(table_for(cell, builders.failed(cell, "pi4: a | b <script>")))
    assert lines[0].startswith("| Test | Window (KiB) | MSS (B) |")
    assert lines[1].startswith("|--:|--:|")
    assert lines[2].startswith("| 1 [1] | 64 | 1460 | 1 | –, – |")
    assert lines[4].strip() == r"[1] Test 1: failed: pi4: a \| b \<script\>."


def test_requested_and_effective_zerocopy_stand_in_one_table() -> None:
    cell = builders.cell(zerocopy=True, copy=False)
    measured = builders.repetition(cell)
    sent = Copying(sends=400, uncopied_sends=100)
    flows = tuple(replace(flow, sender=flow.sender and replace(flow.sender, copying=sent)) for flow in measured.flows)
    table = table_for(cell, replace(measured, flows=flows))
    assert (column(table, "Zerocopy"), column(table, "Copy")) == (["on"], ["off"])
    assert column(table, "Effective zerocopy") == ["25"]
    assert "Effective zerocopy" not in titles(table_for(builders.cell()))
