"""Tables of a terminal: one at any width, with what is alike said once and what was granted beside what was asked."""

from typing import Any, Final

import pages
import pytest
from documents import printed

from rigctl.report.blocks import Column, Entry, Row, Table
from rigctl.report.document import document
from rigctl.report.printers.slim import slim

STREAMS: Final = (("a", "b"), ("c", "d"))


def table(*columns: tuple[Column, list[Any]], **more: Any) -> Table:
    """A table of these columns; an entry is given whole or as its text."""
    rows = zip(*(entries for _, entries in columns), strict=True)
    made = (Row(tuple(each if isinstance(each, Entry) else Entry(each) for each in row)) for row in rows)
    return Table(tuple(column for column, _ in columns), tuple(made), **more)


def lines(made: Table, width: int = 80) -> list[str]:
    return [line.plain.rstrip() for line in slim(made, width).lines]


TEST: Final = (Column("Test"), ["1", "2"])
MSS: Final = (Column("MSS", "B", "requested", short="MSS", phrase="MSS {}"), ["1460", "8960"])
EFFECTIVE: Final = Column("Effective MSS", "B", "derived", phrase="MSS {} on the wire", granted="MSS")


@pytest.mark.parametrize(
    ("granted", "rows", "alike"),
    [
        ([Entry("1448", as_asked=True), "1448"], ["   1       1460", "   2  8960→1448"], ("MSS 1448 on the wire",)),
        (["1448", "8948"], ["   1  1460→1448", "   2  8960→8948"], ()),
        ([Entry("1460", as_asked=True), Entry("8960", as_asked=True)], ["   1  1460", "   2  8960"], ()),
        (["–", "8948"], ["   1       1460", "   2  8960→8948"], ()),
    ],
)
def test_what_was_granted_stands_beside_what_was_asked_where_it_differs(
    granted: list[Any], rows: list[str], alike: tuple[str, ...]
) -> None:
    made = slim(table(TEST, MSS, (EFFECTIVE, granted)), 80)
    assert [line.plain for line in made.lines[1:]] == rows
    assert made.alike == alike


@pytest.mark.parametrize(
    ("column", "texts", "said"),
    [
        (Column("Congestion control", "", "requested", words=True, phrase="{}"), ["cubic"] * 2, ("cubic",)),
        (Column("Parallel", "", "requested", phrase="{} flows"), ["1", "1"], ("1 flow",)),
        (Column("Ceiling", "Mbit/s", "derived"), ["941.5"] * 2, ("ceiling 941.5 Mbit/s",)),
        (Column("DSCP", "", "requested", words=True), ["EF"] * 2, ("DSCP EF",)),
        (Column("Window", "KiB", "requested"), ["64"] * 2, ("window 64K",)),
        (Column("Reading", "%", "derived"), ["–"] * 2, ()),
        (Column("Retransmits"), ["0"] * 2, None),
        (Column("Efficiency", "%", "derived"), ["99", "98"], None),
    ],
)
def test_what_is_alike_in_all_rows_is_said_once_but_for_what_was_measured(
    column: Column, texts: list[str], said: tuple[str, ...] | None
) -> None:
    made = slim(table(TEST, (column, texts)), 80)
    assert made.alike == (said or ())
    assert ("\n".join(line.plain for line in made.lines).count(column.title) == 1) == (said is None)


def test_a_default_that_all_rows_have_is_named_by_what_was_used() -> None:
    asked = (Column("Window", "", "requested"), ["default"] * 2)
    used = (Column("Effective window", "", "derived", phrase="{} by default", granted="Window"), ["2M"] * 2)
    assert slim(table(TEST, asked, used), 80).alike == ("2M by default",)


RATES: Final = (
    Column("Goodput of each pair", "Mbit/s", short="Mbit/s\nof each pair"),
    [Entry("927, 930", parts=("927", "930")), Entry("939, 941", parts=("939", "941"))],
)
COUNTS: Final = (Column("Retransmits", short="Retr"), [Entry("2, 1", parts=("2", "1"))] * 2)
SHARE: Final = (
    Column("Efficiency", "%", "derived", share_of="Ceiling", minor=-1),
    [Entry("50.0", 50.0), Entry("100.0", 100.0)],
)
CEILING: Final = (Column("Ceiling of a pair", "Mbit/s", "derived"), ["941.5"] * 2)


def test_each_stream_has_a_column_of_its_own_and_a_share_its_bar_where_there_is_room() -> None:
    made = table(TEST, RATES, COUNTS, SHARE, CEILING, streams=STREAMS)
    assert lines(made) == [
        "       Mbit/s   Retransmits",
        "Test  a→b  c→d       a→  c→  of 941.5",
        "   1  927  930        2   1    50.0 %  ██▌",
        "   2  939  941        2   1   100.0 %  █████",
    ]
    assert lines(made, 39)[-1] == "   2  939  941        2   1   100.0 %"
    assert "939, 941" in lines(made, 30)[-1]


def test_minor_columns_are_left_out_first_and_those_that_the_table_is_about_last() -> None:
    minors = {"w": 3, "x": -1, "y": 3, "z": 0}
    made = table(TEST, *((Column(name, minor=minor), [f"{name}-1", f"{name}-2"]) for name, minor in minors.items()))
    assert slim(made, 80).titles_left_out == ()
    assert slim(made, 16).titles_left_out == ("w", "y")
    assert slim(made, 16).left_out == (("w w-1", "y y-1"), ("w w-2", "y y-2"))
    assert slim(made, 10).titles_left_out == ("w", "y", "z")


@pytest.mark.parametrize("width", [40, 80, 100, 132, 200])
@pytest.mark.parametrize("name", pages.RUNS)
def test_no_line_of_a_document_is_wider_than_its_terminal_and_no_table_is_in_two_parts(name: str, width: int) -> None:
    made = document(*pages.RUNS[name]())
    said = printed(made, width)
    assert [line for line in said if len(line) > width] == []
    heads = [line for line in said if line.startswith("Test ")]
    assert len(heads) <= sum(section.brief for section in (*made.results, *made.sections))
