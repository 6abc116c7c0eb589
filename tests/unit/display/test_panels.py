"""Big digits and bars."""

import pytest

from rigctl.display.panels import bars, big, number_text, scale_for, size_of


@pytest.mark.parametrize("scale", range(1, 9))
def test_the_size_that_is_promised_is_the_size_that_is_drawn(scale: int) -> None:
    rows = big("1,234.50–", scale)
    assert (len(rows[0]), len(rows)) == size_of("1,234.50–", scale)
    assert len({len(row) for row in rows}) == 1


def test_the_largest_scale_that_fits_is_taken() -> None:
    assert scale_for("941", 48, 10) == 4
    assert scale_for("941", 43, 10) == 3
    assert scale_for("941", 48, 9) == 3
    assert scale_for("941", 10, 9) == 0


def test_bars_show_half_a_row_and_never_hide_what_is_not_nothing() -> None:
    assert bars([0, 25, 50, 100], 100, 4, 2) == ["   █", " ▄██"]
    assert bars([1], 1000, 1, 3) == [" ", " ", "▄"]


def test_the_latest_figures_are_shown_of_more_than_fit() -> None:
    assert bars([100, 100, 0, 50], 100, 2, 1) == [" ▄"]


def test_figures_have_the_digits_that_one_reads_at_a_glance() -> None:
    given = (None, 0.5, 12.34, 941.4, 1879.2, 9999.4, 18312.0, 99990.0, 123456.0)
    texts = [number_text(mbps)[0] for mbps in given]
    assert texts == ["–", "0.50", "12.3", "941", "1,879", "9,999", "18.31", "100.0", "123.5"]
    assert number_text(18312.0)[1] == "Gbit/s"
