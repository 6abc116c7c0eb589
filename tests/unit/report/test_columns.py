"""Tables column by column: one number of decimals in each, values beside texts, notes numbered once."""

import pytest

from rigctl.report.blocks import Column
from rigctl.report.tables.columns import (
    ColumnOf,
    Head,
    alike,
    count_texts,
    decimals_of,
    digits_decimals,
    filled,
    fixed,
    significant,
    table_of,
)

RATE = Column("Goodput", "Mbit/s")


def test_all_numbers_of_a_column_have_the_same_decimals_and_keep_their_values() -> None:
    made = filled(RATE, [941.237, 9.5, None], fixed(1))
    assert [entry.text for entry in made.entries] == ["941.2", "9.5", "–"]
    assert [entry.value for entry in made.entries] == [941.237, 9.5, None]


@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        ([941.2, 9.5], 2),  # 9.50
        ([941.2, 100.0], 0),
        ([2.9929e-05], 6),  # no more than six
        ([0.0123], 4),
        ([0.0, None], 0),
        ([0.0, 12.0], 1),
        ([-0.5], 3),
        ([], 0),
    ],
)
def test_decimals_are_by_the_smallest_value_but_0(values: list[float | None], decimals: int) -> None:
    assert decimals_of(values) == decimals


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0, 170.66, 1000.42, None], ["0.00", "170.66", "1000.42", "–"]),
        ([64, 62.5], ["64.0", "62.5"]),
        ([3276 / 1024, 25.6, 32], ["3.2", "25.6", "32.0"]),  # four decimals do not stretch the others
        ([0.09765, 64], ["0.098", "64.000"]),
        ([0.00001, 1], ["0.00001", "1"]),  # too small for three decimals: each has its own
        ([0.0152, 0.0163], ["0.0152", "0.0163"]),
        ([None], ["–"]),
    ],
)
def test_numbers_have_as_many_decimals_as_the_one_that_needs_most(values: list[float | None], texts: list[str]) -> None:
    text = alike(values, lambda value: digits_decimals(value, 5))
    assert [text(value) for value in values] == texts


@pytest.mark.parametrize(
    ("values", "texts"),
    [([135, 45.25], ["135.0", "45.2"]), ([3.0, 7], ["3", "7"]), ([1234.5, 2000], ["1234", "2000"])],
)
def test_a_mean_of_counts_has_a_decimal_below_1000(values: list[float], texts: list[str]) -> None:
    text = count_texts(values)
    assert [text(value) for value in values] == texts


@pytest.mark.parametrize(
    ("value", "digits", "rounded"), [(63.94824, 5, 63.948), (131072.4, 5, 131072), (0.1234, 3, 0.123)]
)
def test_significant_digits_are_never_fewer_than_the_whole_number_has(
    value: float, digits: int, rounded: float
) -> None:
    assert significant(value, digits) == rounded


def test_values_are_texts_by_a_function_and_unknown_is_a_dash() -> None:
    assert [entry.text for entry in filled(RATE, [True, None], lambda value: "on" if value else "off").entries] == [
        "on",
        "–",
    ]
    assert [entry.text for entry in filled(RATE, [0, "a"]).entries] == ["0", "a"]


def test_a_column_may_leave_itself_out() -> None:
    columns: list[ColumnOf[int]] = [lambda items: filled(RATE, items, fixed(0)), lambda _: None]
    table = table_of([1, 2], columns, lambda item: Head(item))
    assert [column.title for column in table.columns] == ["Goodput"]
    assert [row.test for row in table.rows] == [1, 2]


def test_equal_notes_have_one_number_in_the_order_of_the_rows() -> None:
    notes = {1: ("b",), 2: (), 3: ("a", "b")}
    table = table_of(
        [1, 2, 3], [lambda items: filled(RATE, items, fixed(0))], lambda item: Head(item, notes[item], item != 2)
    )
    assert table.notes == ("b", "a")
    assert [row.notes for row in table.rows] == [(1,), (), (2, 1)]
    assert [row.counted for row in table.rows] == [True, False, True]
