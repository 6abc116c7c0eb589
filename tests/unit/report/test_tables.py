"""Tables: decimals and notes of columns; one of any width in a terminal and on a page, with what is alike once."""

from dataclasses import replace
from typing import Any, Final

import pages
import pytest
from documents import document, printed

from rigctl.report.blocks import Column, Entry, Row, Table
from rigctl.report.printers.html import page_table
from rigctl.report.printers.slim import slim
from rigctl.report.tables import columns

Values = tuple[float | None, ...]


def test_decimals_are_by_the_smallest_value_but_0() -> None:
    expected: dict[Values, int] = {
        (941.2, 9.5): 2, (941.2, 100.0): 0, (2.9929e-05,): 6, (0.0, None): 0, (0.0, 12.0): 1, (-0.5,): 3, (): 0,
    }  # fmt: skip
    assert {values: columns.decimals_of(values) for values in expected} == expected


def texts_of(values: Values) -> list[str]:
    return list(map(columns.alike(values, lambda value: columns.digits_decimals(value, 5)), values))


def test_numbers_have_as_many_decimals_as_the_one_that_needs_most() -> None:
    assert texts_of((0, 170.66, 1000.42, None)) == ["0.00", "170.66", "1000.42", "–"]
    assert texts_of((64, 62.5)) == ["64.0", "62.5"]
    assert texts_of((3276 / 1024, 25.6, 32)) == ["3.2", "25.6", "32.0"]  # four decimals do not stretch the others
    assert texts_of((0.09765, 64)) == ["0.098", "64.000"]
    assert texts_of((0.00001, 1)) == ["0.00001", "1"]  # too small for three decimals: each has its own
    assert texts_of((0.0152, 0.0163)) == ["0.0152", "0.0163"]


def test_a_mean_of_counts_has_a_decimal_below_1000_and_no_digit_of_a_whole_number_is_lost() -> None:
    expected: dict[Values, list[str]] = {
        (135, 45.25): ["135.0", "45.2"],
        (3.0, 7): ["3", "7"],
        (999.5,): ["999.5"],
        (1000.5,): ["1000"],
    }
    assert {values: list(map(columns.count_texts(values), values)) for values in expected} == expected
    rounded = [columns.significant(*each) for each in ((63.94824, 5), (131072.4, 5), (0.1234, 3))]
    assert rounded == [63.948, 131072, 0.123]


def test_equal_notes_have_one_number_in_the_order_of_the_rows() -> None:
    notes = {1: ("b",), 2: (), 3: ("a", "b")}
    goodput = [lambda own: columns.fill_column(Column("Goodput"), own, columns.with_decimals(0))]
    made = columns.table_of([1, 2, 3], goodput, lambda row: columns.RowHead(row, notes[row], row != 2))
    assert made.notes == ("b", "a")
    assert [(row.notes, row.counted) for row in made.rows] == [((1,), True), ((), False), ((2, 1), True)]


STREAMS: Final = (("a", "b"), ("c", "d"))


def table(*given: tuple[Column, list[Any]], **more: Any) -> Table:
    """A table of these columns; an entry is given whole or as its text."""
    rows = zip(*(entries for _, entries in given), strict=True)
    made = (Row(tuple(each if isinstance(each, Entry) else Entry(each) for each in row)) for row in rows)
    return Table(tuple(column for column, _ in given), tuple(made), **more)


def lines(made: Table, width: int = 80) -> list[str]:
    return [line.plain.rstrip() for line in slim(made, width).lines]


TEST: Final = (Column("Test"), ["1", "2"])


def test_a_default_that_all_rows_have_is_named_by_what_was_used() -> None:
    asked = (Column("Window", "", "requested"), ["default"] * 2)
    used = (Column("Effective window", "", "derived", phrase="{} by default", granted="Window"), ["2M"] * 2)
    assert slim(table(TEST, asked, used), 80).alike == "Every test: 2M by default"


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


def test_the_streams_of_a_narrow_table_keep_their_names_and_the_limit_goes_first() -> None:
    limit = (Column("Limit", "", "derived", words=True, minor=1), ["line-rate", "unknown"])
    asked = (Column("MSS", "", "requested"), ["1460", "8960"])
    granted = (Column("Effective MSS", "", "derived", phrase="MSS {} on the wire", granted="MSS"), ["1448"] * 2)
    rates = (replace(RATES[0], minor=-1), RATES[1])
    made = table(TEST, asked, rates, COUNTS, granted, SHARE, CEILING, limit, streams=STREAMS)
    assert lines(made, 56) == [
        "                  Mbit/s",
        "Test        MSS  a→b  c→d  Retr  of 941.5  Limit",
        "   1  1460→1448  927  930  2, 1    50.0 %  line-rate",
        "   2  8960→1448  939  941  2, 1   100.0 %  unknown",
    ]
    assert lines(made, 45)[-1] == "   2  8960→1448  939  941  2, 1   100.0 %"
    assert lines(made, 40)[-1] == "   2  8960→1448  939  941   100.0 %"
    assert lines(made, 20)[-1] == "   2  8960  939  941"
    assert slim(made, 20).alike.startswith("Every test: MSS 1448 on the wire")
    assert slim(made, 19).alike.endswith("Values in this order: a→b, c→d")


def test_what_never_occurred_is_a_sentence_and_results_are_no_settings() -> None:
    lost = (Column("Lost", minor=2), [Entry("0, 0", (0, 0))] * 2)
    some = (Column("Reordered", minor=2), [Entry("0, 0", (0, 0)), Entry("–", None)])
    fitted = slim(table(TEST, RATES, lost, some, SHARE, CEILING), 80)
    assert fitted.alike == "Every test: lost 0 · ceiling of a pair 941.5 Mbit/s"
    assert [each.column.title for each in fitted.columns] == [
        "Test",
        *(each[0].title for each in (RATES, some, SHARE)),
        "",
    ]
    asked = (Column("Window", "", "requested"), ["64K"] * 2)
    one = table(*((column, texts[:1]) for column, texts in (TEST, asked, RATES, SHARE, CEILING)))
    assert slim(one, 30).alike == "Settings: window 64K. Ceiling of a pair 941.5 Mbit/s"


def test_a_share_of_an_unknown_ceiling_has_no_column() -> None:
    unknown = [(column, ["–"] * 2) for column, _ in (SHARE, CEILING)]
    assert lines(table(TEST, RATES, *unknown, streams=STREAMS))[1] == "Test  a→b  c→d"


def test_minor_columns_are_left_out_first_and_those_that_the_table_is_about_last() -> None:
    minors = {"w": 3, "x": -1, "y": 3, "z": 0}
    made = table(TEST, *((Column(name, minor=minor), [f"{name}-1", f"{name}-2"]) for name, minor in minors.items()))
    assert slim(made, 80).titles_left_out == ()
    assert slim(made, 16).titles_left_out == ("w", "y")
    assert slim(made, 16).phrases_left_out == [("w w-1", "y y-1"), ("w w-2", "y y-2")]
    assert slim(made, 10).titles_left_out == ("w", "y", "z")


@pytest.mark.parametrize("axes", [("Parallel", "Direction"), ("Direction",), ("Engine", "Window", "Condition")])
def test_the_settings_that_tell_rows_apart_stay_until_only_they_and_the_main_figure_fit(axes: tuple[str, ...]) -> None:
    asked = [(Column(axis, "", "requested"), [f"{axis} 1", f"{axis} 2"]) for axis in axes]
    figures = [
        (Column("Total", "Mbit/s", minor=-1), ["19.1", "28.5"]),
        (Column("Each pair", "Mbit/s", minor=-1), ["7.9 to 28.5", "1.0 to 9.5"]),
        (Column("Share", "%", "derived", minor=-1), ["95.1", "94.0"]),
        (Column("Limit", "", "derived", words=True, minor=-1), ["line-rate", "shared-link"]),
    ]
    made = table(TEST, *asked, *figures)
    whole = slim(made, 200)
    assert whole.titles_left_out == ()
    order = []
    for width in range(whole.width, 1, -1):
        order += [title for title in slim(made, width).titles_left_out if title not in order]
    assert order == ["limit", "share", "each pair", *map(str.lower, reversed(axes)), "total"]


def test_a_page_has_the_columns_of_a_terminal_and_a_phone_those_that_the_table_is_about() -> None:
    asked = (Column("Window", "", "requested"), ["a long window of 65536"] * 2)
    made = table(TEST, asked, RATES, COUNTS, SHARE, CEILING, streams=STREAMS)
    shown = page_table(made)
    assert shown.groups == (("", 1), ("Mbit/s", 2), ("Retransmits", 2), ("", 1))
    assert [" ".join(each.head) for each in shown.columns] == ["Test", "a→b", "c→d", "a→", "c→", "of 941.5"]
    assert shown.below == ("Every test: window a long window of 65536 · ceiling of a pair 941.5 Mbit/s",)
    assert (shown.minor, shown.paper) == (frozenset(), "")
    many = [(Column(f"A column {number}", minor=1), ["1234567.89"] * 2) for number in range(15)]
    shown = page_table(table(TEST, *many[:5], SHARE))
    assert (shown.minor, shown.paper) == (frozenset({4, 5, 6}), "")
    shown = page_table(table(TEST, *many))
    assert (len(shown.columns), shown.below) == (14, ("Left out: a column 13 and a column 14.",))
    assert shown.paper == " across"


@pytest.mark.parametrize("name", pages.RUNS)
def test_no_line_of_a_document_is_wider_than_its_terminal_and_no_table_is_in_two_parts(name: str) -> None:
    made = document(*pages.RUNS[name]())
    for width in (40, 80, 100, 132, 200):
        said = printed(made, width)
        assert [line for line in said if len(line) > width] == []
        heads = [line for line in said if line.startswith("Test ")]
        assert len(heads) <= sum(section.brief for section in (*made.results, *made.sections))
