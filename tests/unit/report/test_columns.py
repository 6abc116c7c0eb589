import pytest

from rigctl.report.blocks import Column
from rigctl.report.tables import columns
from rigctl.report.tables.columns import Head, alike, decimals_of, digits_decimals, filled, fixed, table_of

RATE = Column("Goodput", "Mbit/s")


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
    ("values", "texts"), [([135, 45.25], ["135.0", "45.2"]), ([3.0, 7], ["3", "7"]), ([1234.5, 2000], ["1234", "2000"])]
)
def test_a_mean_of_counts_has_a_decimal_below_1000(values: list[float], texts: list[str]) -> None:
    text = columns.count_texts(values)
    assert [text(value) for value in values] == texts


@pytest.mark.parametrize(("value", "most", "kept"), [(63.94824, 5, 63.948), (131072.4, 5, 131072), (0.1234, 3, 0.123)])
def test_no_digit_of_a_whole_number_is_lost(value: float, most: int, kept: float) -> None:
    assert columns.significant(value, most) == kept


def test_equal_notes_have_one_number_in_the_order_of_the_rows() -> None:
    notes = {1: ("b",), 2: (), 3: ("a", "b")}
    table = table_of([1, 2, 3], [lambda own: filled(RATE, own, fixed(0))], lambda row: Head(row, notes[row], row != 2))
    assert table.notes == ("b", "a")
    assert [row.notes for row in table.rows] == [(1,), (), (2, 1)]
    assert [row.counted for row in table.rows] == [True, False, True]
