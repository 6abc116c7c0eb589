"""Charts of times by percentile and over the offered rate: which points they have, and where their lines end."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from documents import document
from known import known
from request_runs import cell, flow, repetition, rising, run, side

from rigctl.analysis.run_view import RunView
from rigctl.figures import FlowGroup
from rigctl.figures import requests as figures
from rigctl.figures.messages import MessageTimes, times_of
from rigctl.records import Cell, Pair, Side
from rigctl.report.blocks import Charts, Part
from rigctl.report.charts.plot import MOST_COLOURS, Axis, Line, Panel
from rigctl.report.charts.scales import scale_of
from rigctl.report.charts.spectrum import colours_of_few, spectrum_of, spectrum_points
from rigctl.report.requests import part

OTHER = Pair("n1", "n3")


def times(count: int, unanswered: int = 0, step_us: float = 1.0) -> MessageTimes:
    sender = side(list(rising(count, step_us)), 1.0, unanswered=unanswered)
    return known(times_of(FlowGroup(cell(), [flow(sender)])))


@pytest.mark.parametrize(
    ("count", "last"), [(99, None), (100, 90), (999, 98.8), (1000, 99), (1999, 99.4), (2000, 99.5), (100_000, 99.99)]
)
def test_a_line_ends_where_fewer_than_ten_times_are_longer(count: int, last: float | None) -> None:
    points = spectrum_points(times(count))
    assert (points[-1][0] if points else None) == last
    for percent, time_us in points:
        assert count * (100 - percent) / 100 >= 10 - 1e-6
        assert time_us == pytest.approx(max(1, math.ceil(round(count * percent / 100, 6))), rel=0.004, abs=0.001)


def test_the_points_are_the_percentiles_of_the_table() -> None:
    sender = side(list(rising(20_000, 3.0)), 1.0, unanswered=3)
    group = FlowGroup(cell(), [flow(sender)])
    points = dict(spectrum_points(known(times_of(group))))
    table = {50: figures.REQUEST_P50, 90: figures.REQUEST_P90, 99: figures.REQUEST_P99, 99.9: figures.REQUEST_P999}
    assert {percent: points[percent] for percent in table} == {of: figure.of(group) for of, figure in table.items()}


def test_a_line_ends_where_requests_without_an_answer_begin() -> None:
    """250 of 10,000 requests have no answer: they are the longest 2.5 %."""
    points = spectrum_points(times(9750, unanswered=250))
    assert points[-1][0] == 97.5
    assert points[-1][1] == pytest.approx(9750, rel=0.004)


@pytest.mark.parametrize("percent", [0, 50, 90, 99, 99.9, 99.99])
def test_an_axis_of_percentiles_gives_the_same_room_to_each_decade(percent: float) -> None:
    scale = scale_of(Axis(kind="percentile", low=0, high=99.99), [])
    assert scale.share(percent) == pytest.approx(-math.log10((100 - percent) / 100) / 4)
    assert scale.share(100) is None


def chart_lines(charts: Charts) -> dict[str, dict[str | None, Line]]:
    """Return the lines by the title of their panel and by their name."""
    (chart,) = charts.charts
    return {
        panel.y.title: {mark.name: mark for mark in panel.marks if isinstance(mark, Line)}
        for panel in chart.plot.panels
    }


def spectra_of(made: Part) -> dict[str, dict[str | None, Line]]:
    (section,) = made.sections
    return chart_lines(next(block for block in section.blocks if isinstance(block, Charts)))


def panels(charts: Charts) -> Sequence[Panel]:
    return charts.charts[0].plot.panels


def test_the_axis_of_times_is_logarithmic_if_they_span_more_than_a_decade() -> None:
    wide, close = (
        known(spectrum_of([("", MessageTimes(((low, 500), (low + 128 * more, 500))))], "time"))
        for low, more in ((1280, 4), (1280, 3))
    )  # each 128 buckets double the time
    assert [panels(charts)[0].y.kind for charts in (wide, close)] == ["log10", "linear"]
    assert panels(close)[0].y.low == 0


def test_of_many_lines_the_fastest_and_the_slowest_are_drawn() -> None:
    made = {f"test {number}": [times(200, step_us=number)] for number in range(1, 10)}
    made["test 5"] = [times(200, unanswered=50)]
    colours, caption = colours_of_few(made)
    assert list(colours) == ["test 1", "test 5", "test 6", "test 7", "test 8", "test 9"]
    assert len({*colours.values()}) == MOST_COLOURS
    assert caption.startswith("Of 9 lines")
    few = dict(list(made.items())[:MOST_COLOURS])
    assert (list(colours_of_few(few)[0]), colours_of_few(few)[1]) == (list(few), "")


def part_of(*tests: tuple[Cell, Side]) -> Part:
    repetitions = [repetition(own, *(replace(flow(sender), pair=pair) for pair in own.pairs)) for own, sender in tests]
    return part(RunView.in_memory(run(*(the_cell for the_cell, _ in tests)), repetitions))


def test_one_pair_has_a_line_for_each_percentile_over_the_rate() -> None:
    """p99.9 needs 10,000 requests, which two tests have; of the fastest test 10 % have no answer."""
    made = part_of(
        (cell(1, 100), side([150.0] * 1000, 10.0)),
        (cell(3, 4000), side([900.0] * 36_000, 10.0, unanswered=4000)),
        (cell(2, 1000), side([150.0] * 9_800 + [2000.0] * 200, 10.0)),
    )
    lines = chart_lines(known(made.picture))["time of a request [µs]"]
    assert [point[0] for point in lines["p99"].points] == [100, 1000, 4000]
    assert [point[1] for point in lines["p99"].points] == [150, pytest.approx(2000, rel=0.004), None]
    assert "p99.9" not in lines
    spectra = spectra_of(made)["time of a request [µs]"]
    assert list(spectra) == ["100 requests/s", "1,000 requests/s", "4,000 requests/s"]
    assert [line.points[-1][0] for line in spectra.values()] == [99, 99.9, 90]


def test_several_pairs_have_a_panel_for_each_percentile_and_one_for_each_rate() -> None:
    both = (Pair("n1", "n2"), OTHER)
    made = part_of(*((cell(at, 1000 * at, pairs=both), side([50.0 * at] * 1000, 1.0)) for at in (1, 2)))
    over_rate = chart_lines(known(made.picture))
    assert list(over_rate) == ["p50 of the time of a request [µs]", "p99 of the time of a request [µs]"]
    names = ["n1 → n2", "n1 → n3"]
    assert [list(lines) for lines in over_rate.values()] == [names, names]
    spectra = spectra_of(made)
    assert list(spectra) == ["1,000 requests/s: time of a request [µs]", "2,000 requests/s: time of a request [µs]"]
    assert [list(lines) for lines in spectra.values()] == [names, names]
    assert [key.name for key in known(made.picture).keys] == names


def test_tests_of_one_rate_have_a_line_each() -> None:
    made = part_of(*((cell(at, 1000, parallel=at), side([50.0 * at] * 1000, 1.0)) for at in (1, 2)))
    assert made.sections == ()
    (lines,) = chart_lines(known(made.picture)).values()
    assert list(lines) == ["1 flow", "2 flows"]
    assert {line.points[-1][0] for line in lines.values()} == {99}


def test_tests_with_the_same_settings_are_told_apart_by_their_numbers() -> None:
    made = part_of(*((cell(at), side([50.0 * at] * 1000, 1.0)) for at in (1, 2)))
    (lines,) = chart_lines(known(made.picture)).values()
    assert list(lines) == ["test 1", "test 2"]


def test_a_run_with_too_few_requests_or_without_any_has_no_picture() -> None:
    for sender in (side([50.0] * 99, 1.0), side([], 0.0, unanswered=10)):
        assert part_of((cell(), sender)).picture is None


def test_every_chart_has_a_text_alternative_with_its_ends() -> None:
    tests = [(cell(at, 1000 * at), side([50.0 * at] * 1000, 1.0)) for at in (1, 2)]
    made = document(run(*(own for own, _ in tests)), [repetition(own, flow(sender)) for own, sender in tests])
    assert [chart.label for chart in known(made.picture).charts] == [
        "Time of a request over the offered rate of 1,000–2,000 requests/s: p50 50 µs–100 µs and p99 50 µs–100 µs"
    ]
    labels = [
        chart.label
        for section in made.sections
        for block in section.blocks
        if isinstance(block, Charts)
        for chart in block.charts
    ]
    assert labels == ["Time of a request by percentile, 2 lines: p50 50 µs–100 µs and p99 50 µs–100 µs"]
