"""Ticks of axes: round numbers, powers, sizes, dates; as many as there is room for."""

from datetime import date

import pytest

from rigctl.report.charts.plot import Axis
from rigctl.report.charts.scales import Tick, day, number_text, scale_of, ticks


def labels(axis: Axis, *values: float, most: int = 99) -> list[str]:
    """Of the ticks of `axis` where `values` are drawn and `most` labels have room."""
    return [tick.text for tick in ticks(scale_of(axis, values), lambda found: len(found) <= most)]


@pytest.mark.parametrize(
    ("axis", "values", "expected"),
    [
        (Axis(low=0, high=10, ticks=6), (), ["0", "2", "4", "6", "8", "10"]),
        (Axis(low=0, high=1, ticks=4), (), ["0", "0.5", "1.0"]),
        (Axis(low=893.2, high=951.7, ticks=4), (), ["900", "920", "940"]),
        (Axis(low=-11, high=6), (), ["−10", "−5", "0", "5"]),
        (Axis(low=0), (83.2,), ["0", "20", "40", "60", "80", "100"]),
        (Axis(), (941.0,), ["850", "900", "950", "1000"]),
        (Axis(low=0, high=60_000, ticks=3), (), ["0", "20\u202f000", "40\u202f000", "60\u202f000"]),
        (Axis(low=0, high=7, at=(0, 7)), (), ["0", "7"]),
        (Axis(kind="log10"), (0.3, 40), ["0.1", "1", "10", "100"]),
        (Axis(kind="log10", ticks=7), (12, 700), ["10", "20", "50", "100", "200", "500", "1000"]),
        (Axis(kind="log10"), (0, -1, 50, 2e6), ["10", "1000", "100\u202f000", "10\u202f000\u202f000"]),
        (
            Axis(kind="log2", labels="bytes", ticks=12),
            (1, 2048),
            ["1", "2", "4", "8", "16", "32", "64", "128", "256", "512", "1K", "2K"],
        ),
        (Axis(kind="log2", labels="bytes", ticks=4), (1, 1048576), ["1", "64", "4K", "256K"]),
        (Axis(kind="names", names=("a", "b")), (), ["a", "b"]),
    ],
)
def test_ticks_are_round_and_within_what_is_asked_for(
    axis: Axis, values: tuple[float, ...], expected: list[str]
) -> None:
    assert labels(axis, *values) == expected


def test_fewer_ticks_where_their_labels_have_no_room() -> None:
    axis = Axis(low=0, high=10, ticks=10)
    assert [labels(axis, most=most) for most in (11, 6, 3)] == [
        [str(number) for number in range(11)], ["0", "2", "4", "6", "8", "10"], ["0", "5", "10"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("first", "last", "most", "expected"),
    [
        (date(2026, 11, 1), date(2026, 11, 4), 9, ["1 Nov 2026", "2 Nov", "3 Nov", "4 Nov"]),
        (date(2026, 11, 1), date(2026, 11, 30), 6, ["2 Nov 2026", "9 Nov", "16 Nov", "23 Nov", "30 Nov"]),
        (date(2026, 11, 10), date(2027, 2, 10), 5, ["Dec 2026", "Jan 2027", "Feb"]),
        (date(2025, 12, 1), date(2026, 11, 22), 5, ["Jan 2026", "Apr", "Jul", "Oct"]),
        (date(2020, 1, 1), date(2026, 1, 1), 4, ["Jan 2020", "Jan 2022", "Jan 2024", "Jan 2026"]),
    ],
)
def test_dates_are_days_mondays_or_months_with_the_year_where_it_changes(
    first: date, last: date, most: int, expected: list[str]
) -> None:
    scale = scale_of(Axis(kind="date"), [day(first), day(last)])
    found = ticks(scale, lambda found: len(found) <= most)
    assert [" ".join(filter(None, (tick.text, tick.below))) for tick in found] == expected


def test_a_single_night_has_hours_and_its_date() -> None:
    scale = scale_of(Axis(kind="date"), [day(date(2026, 11, 22)) + 3 * 3600])
    found = ticks(scale, lambda found: len(found) <= 5)
    assert [(tick.text, tick.below) for tick in found] == [
        ("12:00", "21 Nov 2026"), ("00:00", "22 Nov 2026"), ("12:00", ""), ("00:00", "23 Nov 2026"),
    ]  # fmt: skip


def test_a_value_that_a_logarithm_has_no_place_for_is_not_drawn() -> None:
    scale = scale_of(Axis(kind="log10"), [1, 100])
    assert [scale.share(value) for value in (0, -1, None, float("nan"), 10)] == [None, None, None, None, 0.5]


def test_labels_of_large_and_small_numbers() -> None:
    assert [number_text(value) for value in (0, 0.00012, 0.5, 12.5, 940, 9999, 12345)] == [
        "0", "0.00012", "0.5", "12.5", "940", "9999", "12\u202f345",
    ]  # fmt: skip
    assert number_text(-0.25, 0.05) == "−0.25"


def test_ticks_of_nothing_at_all_are_still_ticks() -> None:
    assert ticks(scale_of(Axis(), []), lambda found: True)[0] == Tick(0, "0")
