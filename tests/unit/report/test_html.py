"""The page as text: whole, self-contained, and safe against what a scenario may be called."""

import re

import builders
import pytest

from rigctl.base.resources import templates
from rigctl.records import Repetition, RunInfo
from rigctl.report.charts.plot import MOST_COLOURS
from rigctl.report.document import document
from rigctl.report.printers.html import page as page_of
from rigctl.report.product.colours import LIGHT
from rigctl.report.sections import over_time
from rigctl.report.sections.matrix import LINE_COLOURS

CLASSES = ("grid", "axis", "ceiling", "good", "warn", "plate")


def render(info: RunInfo, measured: list[Repetition]) -> str:
    return page_of(document(info, measured))


def first_traces(info: RunInfo, measured: list[Repetition]) -> tuple[over_time.Trace, ...]:
    return over_time.traces(info.plan.cells[0], measured[0])


def test_the_style_sheet_knows_every_colour_of_the_charts_and_a_product_page_has_those_of_series() -> None:
    style = (templates() / "report.css").read_text("utf-8") + (templates() / "matrix.css").read_text("utf-8")
    for wanted in ("prefers-color-scheme: dark", "@media print", "max-width: 40rem"):
        assert wanted in style
    series = [f"s{number}" for number in range(1, MOST_COLOURS + 1)]
    for name in (*series, *(f"l{number}" for number in range(LINE_COLOURS)), *CLASSES):
        assert re.search(rf"\.{name} {{ color: var\(--", style), name
    for name in series:
        assert re.search(rf"--{name}: (#\w+);", style)[1] == LIGHT[name]  # type: ignore[index]


def test_the_traces_of_a_chart_hold_the_bytes_and_retransmits_of_the_repetition() -> None:
    info, measured = builders.gigablox()
    first, second = first_traces(info, measured)
    assert (first.name, second.name) == ("pi1 → pi2", "pi3 → pi4")
    assert sum(first.goodput_mbps) / len(first.goodput_mbps) == pytest.approx(911, abs=0.5)
    assert (sum(first.retransmits), sum(second.retransmits)) == (135, 0)


def test_a_minute_of_samples_is_drawn_with_at_most_120_points() -> None:
    info, measured = builders.gigablox(60.0)
    trace = first_traces(info, measured)[0]
    assert 60 <= len(trace.goodput_mbps) <= 120


def test_what_identifies_a_machine_is_not_published() -> None:
    info, measured = builders.gigablox()
    page = render(info, measured)
    assert "192.168.7.1" in page
    assert "dc:a6:32" not in page
    assert "00000000-0000" not in page
