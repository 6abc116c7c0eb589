"""Throughput in fine bins: gaps, the table, the chart, the words."""

from dataclasses import replace
from pathlib import Path

import builders
import documents
import pytest

from rigctl.analysis.rows.frames import load
from rigctl.analysis.run_view import RunView
from rigctl.base.errors import InputError
from rigctl.columns import Level
from rigctl.findings import Severity, Weight
from rigctl.model.bins import BinSeries, Gaps, gaps_of, together
from rigctl.records import Bins, Cell, Direction, Flow, Pair, Repetition, RunInfo, Side, Status
from rigctl.report.blocks import Charts, Part, Table
from rigctl.report.charts.plot import Plot, Points
from rigctl.report.document import document
from rigctl.report.printers.html import page
from rigctl.report.sections.bins import MOST_CHARTS, MOST_POINTS, figure, part
from rigctl.scenario.load import Overrides, load_plan

PAIR = Pair("pi1", "pi2")
# Ten bins of 0.607 ms as of the page's figure: a plateau, and what follows nothing.
BYTES = (23378, 0, 0, 23378, 23378, 0, 23378, 0, 0, 0)


def test_a_gap_is_a_run_of_bins_in_which_nothing_came() -> None:
    series = BinSeries(607, BYTES)
    assert gaps_of(series) == Gaps(3, 1, 3, 6, 0.6)
    assert series.bytes_per_s[0] == pytest.approx(38_514_003, rel=1e-6)  # the page's 38,515,440.8 byte/s
    assert series.median_busy == series.bytes_per_s[0]
    assert series.cumulative[-1] == pytest.approx(4 * 23378 / 0.00607)
    assert series.after_gap == [False, False, True, True, False, False, True, False, True, True]
    assert gaps_of(BinSeries(500, (1, 2))) == Gaps(0, None, None, 0, 0.0)


def test_flows_are_summed_over_whole_bins_of_the_time_that_counts() -> None:
    one, two = Bins(1000, 500, (1, 2, 3, 4)), Bins(1000, 500, (10, 20))
    assert together([one, two], 1000, 1000 + 2_000_000) == BinSeries(500, (11, 22, 3, 4))
    assert together([one, two], 1001, 1000 + 1_999_999) == BinSeries(500, (22, 3))
    assert together([one], 1000, 1000 + 3_000_000) == BinSeries(500, (1, 2, 3, 4, 0, 0))
    assert together([one, replace(two, width_us=100)], 1000, 9_000_000) is None
    assert together([one], 1000, 1001) is None
    assert together([], 0, 9_000_000) is None


def measured(values: tuple[int, ...], width_us: int = 500) -> tuple[RunInfo, list[Repetition]]:
    cell = Cell(1, "tcp", (PAIR,), 1.0, 0.0, 1, bin_us=width_us)
    end_ns = len(values) * width_us * 1000
    side = Side(sum(values), 1, end_ns, bins=Bins(0, width_us, values))
    flow = Flow(PAIR, Direction.FORWARD, 1, Side(sum(values), 1, end_ns), side, bytes=sum(values))
    info = builders.run(builders.plan((cell,)))
    one = Repetition(1, 1, 1, Status.OK, None, 0.0, 1.0, 0, end_ns, 0.0, 0.0, flows=(flow,))
    return info, [one]


def test_each_bin_is_a_row_of_the_export() -> None:
    info, repetitions = measured((1000, 0, 3000), 500)
    rows = load(info, repetitions).rows(Level.BINS)
    assert [(row["t_s"], row["bytes"]) for row in rows] == [(0.0005, 1000), (0.001, 0), (0.0015, 3000)]
    assert [row["goodput_mbps"] for row in rows] == pytest.approx([16, 0, 48])
    assert [row["cumulative_mbps"] for row in rows] == pytest.approx([16, 8, 64 / 3])
    assert (rows[0]["source"], rows[0]["destination"], rows[0]["direction"]) == ("pi1", "pi2", "forward")


def test_bins_of_what_does_not_count_are_not_exported() -> None:
    info, (one,) = measured((1000, 0, 3000), 500)
    assert load(info, [replace(one, status=Status.INVALID, reason="start skew")]).rows(Level.BINS) == []
    unasked = [replace(cell, bin_us=None) for cell in info.plan.cells]
    assert load(replace(info, plan=replace(info.plan, cells=tuple(unasked))), [one]).rows(Level.BINS) == []


def made(info: RunInfo, repetitions: list[Repetition]) -> Part:
    found = part(RunView(info, repetitions))
    assert found is not None
    return found


def table_of(found: Part) -> Table:
    (table,) = (block for block in found.sections[0].blocks if isinstance(block, Table))
    return table


def charts_of(found: Part) -> Charts:
    (charts,) = (block for block in found.sections[0].blocks if isinstance(block, Charts))
    return charts


def test_the_section_has_a_row_and_a_chart_of_each_stream() -> None:
    info, repetitions = measured(BYTES, 607)
    found = made(info, repetitions)
    (row,) = table_of(found).rows
    assert [entry.text for entry in row.entries] == [
        "1", "pi1 → pi2", "10", "38.5", "38.5", "15.4", "3", "0.607", "1.821", "60.0",
    ]  # fmt: skip
    assert [entry.value for entry in row.entries[6:]] == [3, 0.607, 1.821, pytest.approx(60)]
    assert row.entries[3].value == pytest.approx(38.514003, rel=1e-6)
    (chart,) = charts_of(found).charts
    assert chart.label == (
        "Throughput over time. Test 1, pi1 → pi2: 1 flow: 3 gaps, the longest of 1.821 ms; 15.4 MB/s in all"
    )
    assert [key.name for key in charts_of(found).keys] == ["a bin", "after a gap", "cumulative"]
    html = page(document(info, repetitions))
    assert "Throughput over time, in bins of 0.607 ms" in html
    assert "after a gap" in html


def test_gaps_are_a_finding_with_their_numbers_and_on_virtual_links_their_likely_cause() -> None:
    info, repetitions = measured(BYTES, 607)
    (found,) = made(info, repetitions).findings
    assert found.text.startswith(
        "In bins of 0.607 ms, test 1 (pi1 → pi2) has 3 gaps, the longest of 1.821 ms; "
        "nothing came in 60.0 % of its time."
    )
    assert found.numbers == {"gaps": 3, "longest_gap_ms": 1.821, "time_in_gaps": 0.6}
    assert (found.weight, found.subject.names) == (Weight.COMPARISON, ("1",))
    assert "A virtual link passes 64 KiB at once" in found.text
    real = replace(info, plan=replace(info.plan, virtual=None))
    (found,) = made(real, repetitions).findings
    assert "virtual" not in found.text


def test_without_gaps_the_finding_is_good() -> None:
    found = made(*measured((5, 6, 7)))
    assert [(finding.text, finding.level) for finding in found.findings] == [
        ("In bins of 0.5 ms there are no gaps.", Severity.OK)
    ]
    row = documents.rows_of(table_of(found))[0]
    assert (row["Gaps"], row["Shortest gap"], row["Longest gap"], row["Time in gaps"]) == ("0", "–", "–", "0.0")


def dots(drawn: Plot) -> list[Points]:
    """The bins, then those after a gap."""
    return [mark for mark in drawn.panels[0].marks if isinstance(mark, Points)]


def test_a_chart_shows_the_first_of_many_bins_and_its_legend_tells_how_many() -> None:
    few, many = (figure(BinSeries(500, (100, 0) * (count // 2))) for count in (100, 4 * MOST_POINTS))
    assert [sum(len(mark.points) for mark in dots(each)) for each in (few, many)] == [100, MOST_POINTS]
    bins, after = dots(few)
    assert [at_s for at_s, _ in bins.points[:2]] == [0.00025, 0.00075]
    assert after.points[0] == (0.00125, 0.2)
    found = made(*measured((100, 0) * MOST_POINTS))
    assert charts_of(found).keys[0].name == "a bin (the first 300 ms)"
    assert documents.column(table_of(found), "Bins") == [str(2 * MOST_POINTS)]


def test_more_streams_than_are_drawn_are_in_the_table() -> None:
    info, (one,) = measured((5, 0, 7))
    (cell,) = info.plan.cells
    numbers = range(1, MOST_CHARTS + 3)
    cells = tuple(replace(cell, number=number) for number in numbers)
    found = made(builders.run(builders.plan(cells)), [replace(one, cell=number) for number in numbers])
    assert len(table_of(found).rows) == MOST_CHARTS + 2
    assert len(charts_of(found).charts) == MOST_CHARTS
    assert "2 more are in the table only." in str(found.sections[0].blocks[-1])


def test_a_run_without_bins_has_no_section() -> None:
    info, repetitions = measured(BYTES)
    (cell,) = info.plan.cells
    unasked = replace(info, plan=replace(info.plan, cells=(replace(cell, bin_us=None),)))
    assert part(RunView(unasked, repetitions)) is None
    assert part(RunView(info, [replace(repetitions[0], status=Status.FAILED)])) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bins: 10us", 'bins "10us": expected 0.1 ms to 1 s, as in 0.5ms'),
        (
            "bins: 0.5ms\ntest: pingpong\nmatrix: {size: 1}",
            ":3:7: bins: only for test: tcp, udp or file",
        ),
        ("bins: 0.1ms\nduration: 500s", ":3:7: bins: 5,000,000 bins over all flows; at most 4,000,000."),
    ],
)
def test_bins_that_make_no_sense_are_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "s.yaml").write_text(f"rig: gigablox\npairs: [pi1 -> pi2]\n{text}\n")
    with pytest.raises(InputError) as caught:
        load_plan(str(tmp_path / "s.yaml"), Overrides())
    assert said in str(caught.value)
