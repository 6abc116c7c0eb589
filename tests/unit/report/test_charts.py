"""Charts: marks, labels and ticks as SVG; the picture below an answer against the figures; goodput over time."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html import unescape
from itertools import accumulate
from typing import Any

import builders
import das2
import numpy as np
import pages
import pytest
from cases import from_file
from documents import document, finding, section
from known import known
from probing import MS, stream, with_gap

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.over_time import dip_of, grid
from rigctl.findings import Finding, Severity, Weight
from rigctl.records import NicCounters, Repetition, RunInfo
from rigctl.report.blocks import Charts, Part, Table
from rigctl.report.charts.plot import Axis, Bars, Dots, Guide, Line, Mark, Panel, Plot, Spans, plot
from rigctl.report.charts.scales import number_text, scale_of, ticks
from rigctl.report.charts.svg import render_svg, shorten_text, text_width
from rigctl.report.printers.html import page
from rigctl.report.sections.soak import part as soak_part
from rigctl.report.sections.soak import sum_over_time

NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)")
HOSTILE = "<script>alert(1)</script>\"'&\x07"
LONG = "a name that is much longer than its picture could ever be " * 4
SVG = "{http://www.w3.org/2000/svg}"
RUNS = Axis(low=0.5, high=325.5, at=tuple(range(5, 326, 80)))


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


def places(svg: str, colour: str) -> list[list[tuple[float, float]]]:
    found = [[float(number) for number in NUMBER.findall(run)] for d in paths(svg, colour) for run in d.split("M")[1:]]
    return [list(zip(accumulate(each[::2]), accumulate(each[1::2]), strict=True)) for each in found]


def test_a_line_has_a_gap_a_point_between_two_gaps_is_seen_and_spans_reach_from_low_to_high() -> None:
    (line,) = paths(render_svg(plotted(Line(((0, 0), (5, 500), (6, None), (7, 500), (10, 1000)), "s1"))), "s1")
    assert (line.count("M"), line.count("l")) == (2, 2)
    (point,) = paths(render_svg(plotted(Line(((0, None), (5, 500), (6, None)), "s1"))), "s1")
    assert re.fullmatch(r"M[\d.]+ [\d.]+h0", point)
    (span,) = paths(render_svg(plotted(Spans(((5, 100, 200),), "s2"))), "s2")
    assert re.fullmatch(r"M[\d.]+ [\d.]+l0-13", span)


def test_positions_do_not_drift_along_a_line_of_relative_steps() -> None:
    points = tuple((at / 100, (at * 7919) % 1000) for at in range(1001))
    whole = render_svg(plotted(Line(points, "s1")))
    alone = render_svg(plotted(Line(points[-1:], "s1"), x=Axis("seconds", 0, 10)))
    (dot,) = paths(alone, "s1")
    assert places(whole, "s1")[0][-1] == pytest.approx([float(text) for text in dot[1:].removesuffix("h0").split()])


@pytest.mark.parametrize("width", [200, 380, 1040])
def test_all_labels_are_within_the_picture_and_none_lies_on_another(width: float) -> None:
    x = Axis("bytes per message", kind="log2", labels="bytes", ticks=30)
    tall = plotted(Line(((1, 3), (2**27, 120_000)), "s1"), x=x, y=Axis("round trip [µs]", kind="log10"), width=width)
    runs = plotted(Dots(((1, 941.0),), "s1"), x=RUNS, width=width)
    y = Axis(kind="names", names=(LONG, "short"))
    names = plotted(Dots(((3, 0), (5, 1)), "s1"), y=y, x=Axis("", 0, 10), width=width)
    for drawn in (tall, runs, names):
        svg = render_svg(drawn)
        found = texts(svg)
        height = float(re.findall(r'viewBox="0 0 [\d.]+ ([\d.]+)"', svg)[0])
        assert len(found) >= 4
        assert all(left >= -0.6 and right <= width + 0.6 and 8 < base < height for _, left, right, base in found), found
        for number, (_, left, right, base) in enumerate(found):
            for _, other_left, other_right, other_base in found[number + 1 :]:
                assert right <= other_left or other_right <= left or abs(base - other_base) >= 11


def test_texts_of_rules_stand_in_lanes_and_do_not_collide() -> None:
    changes = [Guide(32 * number, "x", f"−4.1 % in {number}: kernel 6.12 → 6.13") for number in range(1, 11)]
    found = [entry for entry in texts(render_svg(plotted(*changes, x=RUNS))) if "kernel" in entry[0]]
    assert len({text for text, *_ in found}) == 10
    for text, left, right, base in found:
        for other, other_left, other_right, other_base in found:
            assert other == text or base != other_base or left >= other_right or other_left >= right


def test_every_text_of_a_user_is_escaped() -> None:
    marks = (Guide(5, "x", HOSTILE), Dots(((1, 2),), "s1", hints=(HOSTILE,)))
    named = plotted(Dots(((1, 0),), "s1"), y=Axis(HOSTILE, kind="names", names=(HOSTILE,)), x=Axis(HOSTILE, 0, 2))
    for drawn in (plotted(*marks), named):
        svg = render_svg(drawn)
        tags = {each.tag.removeprefix(SVG) for each in ET.fromstring(svg).iter()}
        assert tags <= {"svg", "g", "path", "text", "title"}
        assert "script" in svg


def test_a_text_is_cut_to_a_width_with_an_ellipsis() -> None:
    assert shorten_text("short", 100) == "short"
    assert shorten_text(LONG, 100).endswith("…")
    assert text_width(shorten_text(LONG, 100)) <= 100


def labels(axis: Axis, *values: float, most: int = 99) -> list[str]:
    return [tick.text for tick in ticks(scale_of(axis, values), lambda found: len(found) <= most)]


@from_file
def test_ticks_are_round_and_within_what_is_asked(axis: Any, values: tuple[float, ...], expected: list[str]) -> None:
    assert labels(Axis(**axis), *values) == expected


def test_fewer_ticks_where_their_labels_have_no_room() -> None:
    assert [labels(Axis(low=0, high=10, ticks=10), most=most) for most in (11, 6, 3)] == [
        [str(number) for number in range(11)], ["0", "2", "4", "6", "8", "10"], ["0", "5", "10"],
    ]  # fmt: skip


def test_of_given_ticks_those_closest_to_others_are_left_out() -> None:
    sizes = Axis(kind="log2", at=(18, 82, 210, 466, 978, 1234, 1472))
    assert [labels(sizes, *sizes.at, most=most) for most in (7, 6, 4, 1)] == [
        ["18", "82", "210", "466", "978", "1234", "1472"], ["18", "82", "210", "466", "978", "1472"],
        ["18", "82", "466", "1472"], ["18", "1472"],
    ]  # fmt: skip


def test_a_value_that_a_logarithm_has_no_place_for_is_not_drawn() -> None:
    scale = scale_of(Axis(kind="log10"), [1, 100])
    assert [scale.share(value) for value in (0, -1, None, float("nan"), 10)] == [None, None, None, None, 0.5]


def test_labels_of_large_and_small_numbers() -> None:
    assert [number_text(value) for value in (0, 0.00012, 0.5, 12.5, 940, 9999, 12345)] == [
        "0", "0.00012", "0.5", "12.5", "940", "9999", "12\u202f345",
    ]  # fmt: skip
    assert number_text(-0.25, 0.05) == "−0.25"


def picture_of(*mbps: float, tests: int = 1) -> str:
    """Return the picture of tests of one pair whose repetitions have these rates; of the second test, half of them."""
    cells = [builders.cell(number, pairs=(pages.PAIR,)) for number in range(1, tests + 1)]
    measured = [
        builders.repetition(cell, [rate / cell.number], number=number)
        for cell in cells
        for number, rate in enumerate(mbps, 1)
    ]
    made = document(builders.run(builders.plan(cells, repeat=len(mbps))), measured)
    return render_svg(known(made.picture).charts[0].plot)


def test_dots_near_the_ceiling_are_on_an_axis_that_says_where_it_is_cut() -> None:
    (chart,), cells = known(document(*pages.streams()).picture).charts, RunView.in_memory(*pages.streams()).cells
    assert chart.caption == "The axis is cut: it begins at 90 % of the ceiling."
    for svg in (render_svg(chart.plot), render_svg(known(chart.narrow))):
        ((ceiling, _), *_) = places(svg, "ceiling")[0]
        left = min(x for run in places(svg, "grid") for x, _ in run)
        for pair, colour in enumerate(("s1", "s2")):
            dots = places(svg, colour)
            assert len(dots) == len(cells) == 7
            for cell, ((at, _), _) in zip(cells, dots, strict=True):
                goodput, own = cell.streams[pair].goodput_mbps, cell.streams[pair].ceiling_mbps
                share = known(goodput).mean / known(own)
                assert at - left == pytest.approx((share - 0.9) / 0.1 * (ceiling - left), abs=0.2)
                assert f">{known(goodput).mean:.0f}<" in svg


def test_the_length_of_each_bar_is_its_goodput_as_a_share_of_the_ceiling_and_no_dash_crosses_a_figure() -> None:
    svg = picture_of(910.0, tests=2)
    ((ceiling, _), *_) = places(svg, "ceiling")[0]
    for share, ((left, _), (right, _)) in zip((910 / 941.5, 455 / 941.5), places(svg, "s1"), strict=True):
        assert right - left == pytest.approx(share * (ceiling - left), abs=0.2)
    assert [left > ceiling for text, left, _, _ in texts(svg) if text in ("910", "455")] == [True, True, False, False]


@pytest.mark.parametrize("tests", [1, 2])
def test_a_mean_has_a_whisker_of_one_standard_deviation(tests: int) -> None:
    svg = picture_of(900.0, 910.0, 920.0, tests=tests)
    ((ceiling, _), *_) = places(svg, "ceiling")[0]
    left = min(x for run in places(svg, "grid") for x, _ in run)
    span = 941.5 * (0.1 if tests == 1 else 1)
    for number, ((low, _), (high, _)) in enumerate(places(svg, "ink"), 1):
        assert (high - low) / (ceiling - left) == pytest.approx(2 * 10 / number / span, rel=0.05)
    assert len(places(svg, "ink")) == tests
    assert places(picture_of(900.0), "ink") == []


def test_the_variants_of_a_run_are_side_by_side() -> None:
    cells = {cell.cell.number: cell for cell in RunView.in_memory(*pages.stored("against")).cells}
    picture = known(document(*pages.stored("against")).picture)
    svg = render_svg(picture.charts[0].plot)
    assert [key.name for key in picture.keys] == ["cubic, all pairs", "bbr, all pairs"]
    ((ceiling, _), *_) = places(svg, "ceiling")[0]
    left = min(x for run in places(svg, "grid") for x, _ in run)
    for first, colour in ((1, "s1"), (2, "s2")):
        dots = places(svg, colour)
        for number, ((at, _), _) in zip(range(first, 15, 2), dots, strict=True):
            share = known(cells[number].goodput_mbps).mean / known(cells[number].ceiling_mbps)
            assert at - left == pytest.approx((share - 0.9) / 0.1 * (ceiling - left), abs=0.2)


LEVEL = [940.0, 941.0, 939.5, 941.2, 940.4, 938.8, 941.0, 940.0, 939.0, 941.1]


def test_a_dip_is_as_long_as_goodput_stays_more_than_5_per_cent_below_its_median() -> None:
    expected_s = {
        (*LEVEL,): 0.0,
        (0.0, 0.0, 0.0): 0.0,
        (*LEVEL, 600.0): 0.1,
        (*LEVEL, 892.0, 600.0): 0.2,  # by 5.1 % at first
        (*LEVEL, 894.0, 600.0): 0.1,
        (600.0, *LEVEL, 600.0, 0.0, 600.0): 0.3,
    }
    assert {mbps: dip_of(np.array(mbps), 0.1).longest_s for mbps in expected_s} == pytest.approx(expected_s)


def test_a_test_that_dipped_is_first_and_open_and_others_are_folded() -> None:
    for to_ms, headings in ((1300, ["Test 1"]), (1100, [])):
        made = document(builders.run(builders.plan((stream(),))), [with_gap(stream(), 1000, to_ms)])
        blocks = section(made, "Goodput over time").blocks
        opened = [chart.heading for block in blocks if isinstance(block, Charts) for chart in block.charts]
        assert opened == headings


@pytest.mark.parametrize(("length_s", "most", "middles_s"), [(0.9987, 20, [0.05, 0.15]), (60.0, 120, [0.25, 0.75])])
def test_bins_are_whole_sampling_intervals_and_reach_to_the_end(
    length_s: float, most: int, middles_s: list[float]
) -> None:
    receiver = known(with_gap(stream(), 1000, 1300).flows[0].receiver)
    bins = known(grid([receiver], length_s, most))
    assert (bins.middles_s[:2], bins.edges[-1]) == (middles_s, length_s)
    assert len(bins.middles_s) <= most


def test_the_values_of_a_series_stand_beside_its_drawing_as_tables_print_them() -> None:
    points = ((0.05, 940.361), (0.15, None), (0.25, 941.0))
    hostile = "<b>'\"&"
    panels = (
        Panel(Axis("it's <Mbit/s>", 0, 1000), (Guide(941.5, name="ceiling"), Line(points, "s1", name=hostile)), 100),
        Panel(Axis("retransmits", 0, 4), (Bars(((0.05, 0), (0.15, 123456), (0.25, 1)), "s2", name="b"),), 30),
    )
    svg = render_svg(Plot(400, Axis("seconds", 0, 0.3), panels))
    found = [json.loads(unescape(text))[:4] for text in re.findall(r"data-panel='([^']*)'", svg)]
    assert found == [["it's <Mbit/s>", "linear", 0, 1000], ["retransmits", "linear", 0, 4]]
    (across,) = (json.loads(unescape(text)) for text in re.findall(r"data-axis='([^']*)'", svg))
    assert across[:4] == ["seconds", "linear", 0, 0.3]
    assert across[4] + across[5] <= 400
    assert [unescape(name) for name in re.findall('data-name="([^"]*)"', svg)] == ["ceiling", hostile, "b"]
    assert re.findall('data-x="([^"]*)"', svg) == ["0.05 0.15 0.25"] * 2
    assert re.findall('data-y="([^"]*)"', svg) == ["940 - 941", "0 123456 1"]


def test_a_plot_without_names_has_no_values() -> None:
    panel = Panel(Axis("y"), (Dots(((1, 2),), "s1"), Line(((1, 2), (2, 3)), "s1")), 100)
    assert "data-" not in render_svg(Plot(400, Axis("x"), (panel,)))


def test_a_page_without_charts_has_no_script_and_allows_none() -> None:
    made = document(*builders.gigablox())
    bare = page(replace(made, sections=()))
    assert "<script>" not in bare
    assert "script-src 'none'" in bare
    with_charts = page(made)
    assert with_charts.count("<script>") == 1
    assert re.findall(r"script-src ('[^']*')", with_charts)[0].startswith("'sha256-")


def gap_finding(repetition: Repetition) -> Finding:
    return finding(builders.run(builders.plan((stream(),))), [repetition], "gaps")


def test_a_gap_of_two_seconds_is_a_finding_and_its_length_is_never_rounded_up() -> None:
    found = gap_finding(with_gap(stream(), 1000, 3000))
    assert (found.weight, found.level, found.subject.names) == (Weight.SUSPECT, Severity.WARNING, ("1",))
    lasting = {"longest_gap_s": pytest.approx(2.0), "longest_gap_start_s": 1.0}
    assert found.numbers == {"gaps": 1, "carrier_changes": None, **lasting}
    repetition = replace(with_gap(stream(), 1000, 3000), window_start_ns=builders.BEGIN_NS + 1050 * MS)
    assert gap_finding(repetition).numbers["longest_gap_start_s"] == pytest.approx(0.0)


def test_a_link_that_went_down_meanwhile_is_named() -> None:
    repetition = with_gap(stream(), 1000, 3000)
    changes = {node: {"nic": NicCounters(carrier_changes=2 * (node == "pi2"))} for node in ("pi1", "pi2")}
    found = gap_finding(builders.using(repetition, changes))
    assert (found.remedy is None, found.numbers["carrier_changes"]) == (False, 2)


HALF_HOUR: dict[str, Any] = {"windows": (131072,), "flows": (1,), "pairs": (12,), "duration_s": 1800.0}


def soak(info: RunInfo, measured: list[Repetition]) -> Part:
    return known(soak_part(RunView.in_memory(info, measured)))


def test_a_flow_of_which_some_repetition_is_unknown_has_no_mean() -> None:
    info, _ = das2.run(**(HALF_HOUR | {"pairs": (3,)}))
    one, two = (das2.repetition(info.plan.cells[0], number=number) for number in (1, 2))
    two = replace(two, flows=(replace(two.flows[0], bytes=None), *two.flows[1:]))
    table = soak(info, [one, two]).sections[0].blocks[0]
    assert isinstance(table, Table)
    entry = table.rows[0].entries[2]
    assert (entry.text, entry.value) == ("–", None)


def test_the_sum_over_time_holds_all_bytes() -> None:
    info, measured = das2.run(samples=1800, **HALF_HOUR)
    summed = known(sum_over_time(measured[0]))
    assert len(summed.t_s) == len(summed.mbps) == 180
    total = sum(flow.bytes or 0 for flow in measured[0].flows)
    assert sum(summed.mbps) / 180 * 1800 / 8e-6 == pytest.approx(total, rel=1e-6)
    (chart,) = known(soak(info, measured).picture).charts
    assert chart.caption == "Goodput of all flows together; each point is the mean over 10 s."


def test_a_flow_that_was_not_reported_leaves_no_sum_over_time() -> None:
    info, measured = das2.run(samples=100, **HALF_HOUR)
    lost = replace(measured[0], flows=(replace(measured[0].flows[0], receiver=None), *measured[0].flows[1:]))
    assert sum_over_time(lost) is None
    assert sum_over_time(replace(measured[0], window_start_ns=None)) is None
    assert soak(info, [lost]).picture is None
