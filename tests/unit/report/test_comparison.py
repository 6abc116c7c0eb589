"""The comparison table: the page's form, what it lacks beside it, failures shown and not averaged."""

from dataclasses import replace

import builders
from documents import cells_of, column, titles

from rigctl.records import Cell, Copying, Direction, Pair, Repetition, RunInfo
from rigctl.report.blocks import Table
from rigctl.report.sections.streams import comparison

MANY = tuple(Pair(f"a{n}", f"b{n}") for n in range(12))


def table_of(info: RunInfo, measured: list[Repetition]) -> Table:
    return comparison(info, cells_of(info, measured))


def table_for(cell: Cell, *measured: Repetition) -> Table:
    return table_of(builders.run(builders.plan([cell])), list(measured))


def test_only_the_axes_that_are_set_have_a_column() -> None:
    plain = builders.cell(window_bytes=None, mss=None)
    assert titles(table_for(plain, builders.repetition(plain)))[:3] == ["Test", "Parallel", "Goodput of each pair"]
    full = builders.cell(congestion="bbr", nodelay=True, direction=Direction.REVERSE)
    assert titles(table_for(full, builders.repetition(full)))[4:7] == ["Congestion control", "Nodelay", "Direction"]


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


def test_requested_and_effective_zerocopy_stand_in_one_table() -> None:
    cell = builders.cell(zerocopy=True, copy=False)
    measured = builders.repetition(cell)
    sent = Copying(sends=400, uncopied_sends=100)
    flows = tuple(replace(flow, sender=flow.sender and replace(flow.sender, copying=sent)) for flow in measured.flows)
    table = table_for(cell, replace(measured, flows=flows))
    assert (column(table, "Zerocopy"), column(table, "Copy")) == (["on"], ["off"])
    assert column(table, "Effective zerocopy") == ["25"]
    assert "Effective zerocopy" not in titles(table_for(builders.cell()))
