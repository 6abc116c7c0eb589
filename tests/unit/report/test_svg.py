"""A plot as SVG: its marks and labels where they belong, its colours, what users wrote, and its size."""

import re
import xml.etree.ElementTree as ET
from datetime import date

import pytest

from rigctl.report.charts.marks import cut, text_width
from rigctl.report.charts.plot import Axis, Line, Mark, Plot, Points, Rule, Spans, plot
from rigctl.report.charts.scales import day
from rigctl.report.charts.svg import render_svg

HOSTILE = "<script>alert(1)</script>\"'&\x07"
LONG = "a name that is much longer than its picture could ever be " * 4
SVG = "{http://www.w3.org/2000/svg}"
NIGHTS = Axis(kind="date", low=day(date(2026, 1, 1)), high=day(date(2026, 11, 22)))


def plotted(*marks: Mark, x: Axis | None = None, y: Axis | None = None, width: float = 380) -> Plot:
    return plot(width, 130, x or Axis("seconds", 0, 10), y or Axis("Mbit/s", 0, 1000), marks)


def texts(svg: str) -> list[tuple[str, float, float, float]]:
    """Each text with its left and right ends, estimated, and its base line."""
    found = []
    for parent in ET.fromstring(svg).iter():
        for child in parent:
            if child.tag.removeprefix(SVG) == "text":
                text = child.text or ""
                width, x = text_width(text), float(child.get("x", ""))
                anchor = child.get("text-anchor") or parent.get("text-anchor") or "start"
                left = x - {"start": 0, "middle": width / 2, "end": width}[anchor]
                found.append((text, left, left + width, float(child.get("y", ""))))
    return found


def paths(svg: str, colour: str) -> list[str]:
    return re.findall(rf'<path class="{colour}"[^>]* d="([^"]*)"', svg)


def test_a_line_goes_through_its_points_and_has_a_gap_where_one_is_not_known() -> None:
    svg = render_svg(plotted(Line(((0, 0), (5, 500), (6, None), (7, 500), (10, 1000)), "s1")))
    (line,) = paths(svg, "s1")
    assert line.count("M") == 2
    assert line.count("l") == 2


def test_a_point_between_two_gaps_is_still_seen() -> None:
    (line,) = paths(render_svg(plotted(Line(((0, None), (5, 500), (6, None)), "s1"))), "s1")
    assert re.fullmatch(r"M[\d.]+ [\d.]+h0", line)


def test_positions_do_not_drift_along_a_line_of_relative_steps() -> None:
    points = tuple((at / 100, (at * 7919) % 1000) for at in range(1001))
    whole = render_svg(plotted(Line(points, "s1")))
    alone = render_svg(plotted(Line(points[-1:], "s1"), x=Axis("seconds", 0, 10)))
    (line,), (dot,) = paths(whole, "s1"), paths(alone, "s1")
    numbers = [float(text) for text in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", line)]
    assert (sum(numbers[::2]), sum(numbers[1::2])) == pytest.approx(
        [float(text) for text in re.findall(r"[\d.]+", dot.removesuffix("h0"))]
    )


@pytest.mark.parametrize("width", [200, 380, 1040])
def test_all_labels_are_within_the_picture_and_none_lies_on_another(width: float) -> None:
    x = Axis("bytes per message", kind="log2", labels="bytes", ticks=30)
    tall = plotted(Line(((1, 3), (2**27, 120_000)), "s1"), x=x, y=Axis("round trip [µs]", kind="log10"), width=width)
    nights = plotted(Points(((NIGHTS.low or 0, 941.0),), "s1"), x=NIGHTS, width=width)
    names = plotted(
        Points(((3, 0), (5, 1)), "s1"), y=Axis(kind="names", names=(LONG, "short")), x=Axis("", 0, 10), width=width
    )
    for drawn in (tall, nights, names):
        svg = render_svg(drawn)
        found = texts(svg)
        height = float(re.findall(r'viewBox="0 0 [\d.]+ ([\d.]+)"', svg)[0])
        assert len(found) >= 4
        assert all(left >= -0.6 and right <= width + 0.6 and 8 < base < height for _, left, right, base in found), found
        for number, (_, left, right, base) in enumerate(found):
            for _, other_left, other_right, other_base in found[number + 1 :]:
                assert right <= other_left or other_right <= left or abs(base - other_base) >= 11


def test_texts_of_dates_stand_in_lanes_and_do_not_collide() -> None:
    changes = [Rule(day(date(2026, month, 3)), "x", f"−4.1 % in {month}: kernel 6.12 → 6.13") for month in range(1, 11)]
    found = [entry for entry in texts(render_svg(plotted(*changes, x=NIGHTS))) if "kernel" in entry[0]]
    assert len({text for text, *_ in found}) == 10
    for text, left, right, base in found:
        assert not [
            other
            for other, other_left, other_right, other_base in found
            if other != text and base == other_base and left < other_right and other_left < right
        ]


def test_every_text_of_a_user_is_escaped() -> None:
    marks = (
        Rule(5, "x", HOSTILE),
        Points(((1, 2),), "s1", hints=(HOSTILE,)),
    )
    named = plotted(Points(((1, 0),), "s1"), y=Axis(HOSTILE, kind="names", names=(HOSTILE,)), x=Axis(HOSTILE, 0, 2))
    for drawn in (plotted(*marks), named):
        svg = render_svg(drawn)
        assert {each.tag.removeprefix(SVG) for each in ET.fromstring(svg).iter()} <= {
            "svg",
            "g",
            "path",
            "text",
            "title",
        }
        assert "script" in svg


def test_spans_reach_from_low_to_high() -> None:
    (span,) = paths(render_svg(plotted(Spans(((5, 100, 200),), "s2"))), "s2")
    assert re.fullmatch(r"M[\d.]+ [\d.]+l0-13", span)


def test_a_text_is_cut_to_a_width_with_an_ellipsis() -> None:
    assert cut("short", 100) == "short"
    assert cut(LONG, 100).endswith("…")
    assert text_width(cut(LONG, 100)) <= 100
