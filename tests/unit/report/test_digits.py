"""The digits of a column alike, from the values, never more than they have."""

import pytest

from rigctl.report.blocks import Column, Entry, Row, Table
from rigctl.report.tables.digits import aligned


def column(*entries: Entry, words: bool = False) -> list[str]:
    table = Table((Column("Figure", words=words),), tuple(Row((entry,)) for entry in entries))
    return [row.entries[0].text for row in aligned(table).rows]


def test_a_number_gets_the_decimals_of_the_others_from_its_value() -> None:
    assert column(Entry("0", 0), Entry("170.7", 170.66), Entry("1000", 1000.42), Entry("–")) == [
        "0.0", "170.7", "1000.4", "–",
    ]  # fmt: skip


def test_each_of_several_numbers_is_taken_by_itself() -> None:
    several = (Entry("0, 4.5", (0, 4.5)), Entry("3 / 2, – / 1", (3, 2, None, 1)), Entry("906 to 941", (906.2, 940.9)))
    assert column(*several) == ["0.0, 4.5", "3.0 / 2.0, – / 1.0", "906.2 to 940.9"]


def test_means_and_their_spreads_have_digits_of_their_own() -> None:
    assert column(Entry("939 ± 12", 939.0), Entry("941 ± 0.5", 941.0)) == ["939 ± 12.0", "941 ± 0.5"]


def test_thousands_and_signs_stay() -> None:
    assert column(Entry("1,234", 1234), Entry("5.5", 5.5), Entry("+3"), Entry("9 together", 9)) == [
        "1,234.0", "5.5", "+3.0", "9.0 together",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["max", "default", "no: goodput", "1 in 660,000", "1.2e+05"])
def test_what_is_no_number_stays(text: str) -> None:
    assert column(Entry(text), Entry("1"), Entry("1.5")) == [text, "1.0", "1.5"]


def test_words_stay() -> None:
    assert column(Entry("6.1.0"), Entry("7"), words=True) == ["6.1.0", "7"]


def test_a_number_of_many_decimals_does_not_stretch_the_others() -> None:
    assert column(Entry("3.1992", 3276 / 1024), Entry("25.6", 25.6), Entry("32", 32)) == ["3.2", "25.6", "32.0"]
    assert column(Entry("0.09765", 0.09765), Entry("64", 64)) == ["0.098", "64.000"]
    assert column(Entry("0.00001", 0.00001), Entry("1", 1)) == ["0.00001", "1"]
    assert column(Entry("0.0152"), Entry("0.0160")) == ["0.0152", "0.0160"]


def test_the_total_is_as_the_rows() -> None:
    table = Table((Column("Figure"),), (Row((Entry("1.5", 1.5),)),), total=Row((Entry("3", 3),)))
    made = aligned(table).total
    assert made is not None
    assert made.entries[0].text == "3.0"
