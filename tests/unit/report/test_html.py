"""The page as text: whole, self-contained, and safe against what a scenario may be called."""

import re

import builders
import pytest

from rigctl.base.resources import templates
from rigctl.report.charts.plot import MOST_COLOURS
from rigctl.report.document import document
from rigctl.report.printers.html import page
from rigctl.report.product.colours import LIGHT
from rigctl.report.sections import over_time


def first_traces(duration_s: float = 10.0) -> tuple[over_time.Trace, ...]:
    info, measured = builders.gigablox(duration_s)
    return over_time.traces(info.plan.cells[0], measured[0])


def test_the_style_sheet_knows_every_colour_of_the_charts_and_a_product_page_has_those_of_series() -> None:
    style = (templates() / "report.css").read_text("utf-8") + (templates() / "matrix.css").read_text("utf-8")
    for wanted in ("prefers-color-scheme: dark", "@media print", "max-width: 40rem"):
        assert wanted in style
    series = [f"s{number}" for number in range(1, MOST_COLOURS + 1)]
    for name in (*series, "grid", "axis", "ceiling", "good", "warn", "plate"):
        assert re.search(rf"\.{name} {{ color: var\(--", style), name
    for name in series:
        assert re.search(rf"--{name}: (#\w+);", style)[1] == LIGHT[name]  # type: ignore[index]


def test_the_traces_of_a_chart_hold_the_bytes_and_retransmits_of_the_repetition() -> None:
    first, second = first_traces()
    assert (first.name, second.name) == ("pi1 → pi2", "pi3 → pi4")
    assert sum(first.goodput_mbps) / len(first.goodput_mbps) == pytest.approx(911, abs=0.5)
    assert (sum(first.retransmits), sum(second.retransmits)) == (135, 0)


def test_a_minute_of_samples_is_drawn_with_at_most_120_points() -> None:
    trace = first_traces(60.0)[0]
    assert 60 <= len(trace.goodput_mbps) <= 120


def test_what_identifies_a_machine_is_not_published() -> None:
    text = page(document(*builders.gigablox()))
    assert "192.168.7.1" in text
    assert "dc:a6:32" not in text
    assert "00000000-0000" not in text
