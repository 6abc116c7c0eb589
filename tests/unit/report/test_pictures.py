"""The picture below the answer: values read back from what is drawn equal the figures."""

import json
import re
from collections.abc import Sequence
from html import unescape
from itertools import accumulate
from typing import Any

import builders
import pages
import pytest

from rigctl.analysis.run_view import RunView
from rigctl.model.limits.ceilings import datagram_ceiling_bps, window_bps
from rigctl.report.blocks import Charts, Document, HeatMaps, Table
from rigctl.report.charts.svg import render_svg
from rigctl.report.document import document
from rigctl.report.printers.html import page

NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)")
Points = list[tuple[float, float]]


def picture(name: str) -> tuple[Document, Charts]:
    made = document(*pages.RUNS[name]() if name in pages.RUNS else pages.stored(name))
    assert made.picture is not None
    return made, made.picture


def paths(svg: str, colour: str) -> list[Points]:
    """The places of each path of a colour, without its gaps."""
    found = []
    for text in re.findall(rf'<path class="{colour}"[^>]* d="([^"]*)"', svg):
        for run in text.split("M")[1:]:
            numbers = [float(number) for number in NUMBER.findall(run)]
            found.append(list(zip(accumulate(numbers[::2]), accumulate(numbers[1::2]), strict=True)))
    return found


def axes(svg: str) -> tuple[list[Any], list[Any]]:
    """The axis across and that of the first panel, as the page holds them."""
    across, up = (re.findall(rf"data-{name}='([^']*)'", svg)[0] for name in ("axis", "panel"))
    return json.loads(unescape(across)), json.loads(unescape(up))


def values(svg: str, name: str) -> list[tuple[float, float]]:
    """The values of a series as a page tells them."""
    found = re.search(rf'data-name="{name}"[^>]*data-y="([^"]*)"', svg)
    assert found is not None
    x = re.findall('data-x="([^"]*)"', svg[: found.end()])[-1]
    return [(float(x), float(y)) for x, y in zip(x.split(" "), found[1].split(" "), strict=True)]


def test_the_length_of_each_bar_is_its_goodput_as_a_share_of_the_ceiling() -> None:
    info, measured = pages.streams()
    _, drawn = picture("streams")
    cells = RunView(info, measured).cells
    for plot in (drawn.charts[0].plot, drawn.charts[0].narrow):
        assert plot is not None
        svg = render_svg(plot)
        ((ceiling, _), *_) = paths(svg, "ceiling")[0]
        for pair, colour in enumerate(("s1", "s2")):
            bars = paths(svg, colour)
            assert len(bars) == len(cells) == 7
            for cell, ((left, _), (right, _)) in zip(cells, bars, strict=True):
                goodput, own = cell.streams[pair].goodput_mbps, cell.streams[pair].ceiling_mbps
                assert goodput is not None
                assert own is not None
                assert right - left == pytest.approx(goodput.mean / own * (ceiling - left), abs=0.2)
                assert f">{goodput.mean:.0f}<" in svg


@pytest.mark.parametrize(("repeat", "whiskers"), [(3, 0), (4, 1)])
def test_a_bar_has_a_whisker_of_one_standard_deviation_from_4_repetitions_on(repeat: int, whiskers: int) -> None:
    cell = builders.cell(pairs=(pages.PAIR,))
    rates = (900.0, 910.0, 920.0, 930.0)[:repeat]
    measured = [builders.repetition(cell, [mbps], number=number) for number, mbps in enumerate(rates, 1)]
    made = document(builders.run(builders.plan([cell], repeat=repeat)), measured)
    assert made.picture is not None
    svg = render_svg(made.picture.charts[0].plot)
    assert len(paths(svg, "ink")) == whiskers
    for (low, _), (high, _) in paths(svg, "ink"):
        (((left, _), (right, _)),) = paths(svg, "s1")
        assert (high - low) / (right - left) == pytest.approx(2 * 12.91 / 915, rel=0.05)


@pytest.mark.parametrize(
    ("name", "title", "lines"),
    [
        ("pingpong", "p50", {"p50": "p50", "p99": "p99"}),
        ("blast", "Throughput", {"throughput": "Throughput"}),
    ],
)
def test_lines_against_message_size_have_the_values_of_the_table(name: str, title: str, lines: dict[str, str]) -> None:
    made, drawn = picture(name)
    table = next(block for block in made.results[0].blocks if isinstance(block, Table))
    titles = [column.title for column in table.columns]
    svg = render_svg(drawn.charts[0].plot)
    across, up = axes(svg)
    assert up[1] == ("log10" if name == "pingpong" else "linear")
    for line, column in lines.items():
        factor = 1e6 if name == "blast" else 1
        rows = [
            (row.entries[titles.index("Size")].value, row.entries[titles.index(column)].value) for row in table.rows
        ]
        found = values(svg, line)
        for (x, y), (size, value) in zip(found, rows, strict=True):
            assert isinstance(value, float)
            assert x == size
            assert y == pytest.approx(value / factor, rel=0.006)
    assert title in titles
    assert across[1] == "log2"


def test_the_curve_of_windows_is_window_by_round_trip_and_that_of_sizes_the_line_rate() -> None:
    _, drawn = picture("distance")
    curve = values(render_svg(drawn.charts[0].plot), "window ÷ 4.99 ms, at most the ceiling")
    for size in (8192, 65536):
        assert dict(curve)[size] == pytest.approx(window_bps(size, 0.00499) / 1e6, rel=0.01)
    assert curve[-1][1] == pytest.approx(941.5, abs=1)
    _, drawn = picture("datagrams")
    curve = values(render_svg(drawn.charts[0].plot), "line rate")
    assert dict(curve)[512] == pytest.approx(datagram_ceiling_bps(1e9, 1500, 512) / 1e6, abs=0.6)
    assert values(render_svg(drawn.charts[0].plot), "rate 500 Mbit/s") == [(512, 500), (1472, 500)]


def test_the_panels_of_a_matrix_have_the_sums_of_its_heat_maps_and_nothing_is_said_twice() -> None:
    made, drawn = picture("matrix")
    (maps,) = (block for block in made.results[0].blocks if isinstance(block, HeatMaps))
    assert len(drawn.charts) == len(maps.maps) == 4
    for chart, heat in zip(drawn.charts, maps.maps, strict=True):
        assert heat.title == f"{chart.heading}, {chart.caption}"
        for number, column in enumerate(heat.columns):
            fields = [(float(label), row[number].value) for label, row in heat.rows]
            known = [(x, value) for x, value in fields if value is not None]
            found = values(render_svg(chart.plot), f"{column} flow{'s' * (column != '1')}")
            assert [x for x, _ in found] == [x for x, _ in known]
            assert [y for _, y in found] == pytest.approx([mbps / 1000 for _, mbps in known], abs=0.006)
    sentences = said(made)
    assert sorted({text for text in sentences if sentences.count(text) > 1}) == []


def said(made: Document) -> Sequence[str]:
    """The sentences of a page's items, captions and notes, without what is folded away as data."""
    text = page(made).partition('<script type="application/json"')[0]
    found = re.findall(r"<(?:li|p|figcaption|dd)[^>]*>(.*?)</(?:li|p|figcaption|dd)>", text, re.DOTALL)
    plain = [re.sub(r"<[^>]*>", "", item).strip() for item in found]
    return [sentence for item in plain for sentence in re.split(r"(?<=\.) (?=[A-Z])", item) if len(sentence) > 40]


def test_both_classes_are_in_one_picture_and_a_soak_has_its_sum_over_time() -> None:
    _, drawn = picture("classes")
    (chart,) = drawn.charts
    assert [key.name for key in drawn.keys] == ["voice", "bulk"]
    assert [{mark.name for mark in panel.marks} for panel in chart.plot.panels] == [{"voice", "bulk"}] * 2
    _, drawn = picture("soak")
    assert "sum of the flows" in [key.name for key in drawn.keys]


@pytest.mark.parametrize("name", [*pages.RUNS, "classes", "distance", "latency", "search", "mesh"])
def test_every_page_has_a_picture_below_its_answer(name: str) -> None:
    if name == "mesh":
        made = document(*pages.stored(name))
        assert made.results[0].title.startswith("Client by server")
        return
    made, drawn = picture(name)
    assert re.search(r'</section>\s+<div class="group">', page(made))
    assert all(render_svg(chart.plot) for chart in drawn.charts)
