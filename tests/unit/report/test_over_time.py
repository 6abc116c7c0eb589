import json
import re
from dataclasses import replace
from html import unescape
from typing import Any

import builders
import das2
import numpy as np
import pytest
from documents import finding, section
from known import known
from probing import MS, stream, with_gap

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.over_time import dip_s, grid
from rigctl.findings import Finding, Severity, Weight
from rigctl.records import NicCounters, Repetition, RunInfo
from rigctl.report.blocks import Charts, Part, Table
from rigctl.report.charts.plot import Axis, Bars, Dots, Guide, Line, Panel, Plot
from rigctl.report.charts.svg import render_svg
from rigctl.report.document import document
from rigctl.report.printers.html import page
from rigctl.report.sections.soak import part as soak_part
from rigctl.report.sections.soak import sum_over_time

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
    assert {mbps: dip_s(np.array(mbps), 0.1) for mbps in expected_s} == pytest.approx(expected_s)


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


LONG: dict[str, Any] = {"windows": (131072,), "flows": (1,), "pairs": (12,), "duration_s": 1800.0}


def soak(info: RunInfo, measured: list[Repetition]) -> Part:
    return known(soak_part(RunView(info, measured)))


def test_a_flow_of_which_some_repetition_is_unknown_has_no_mean() -> None:
    info, _ = das2.run(**(LONG | {"pairs": (3,)}))
    one, two = (das2.repetition(info.plan.cells[0], number=number) for number in (1, 2))
    two = replace(two, flows=(replace(two.flows[0], bytes=None), *two.flows[1:]))
    table = soak(info, [one, two]).sections[0].blocks[0]
    assert isinstance(table, Table)
    entry = table.rows[0].entries[2]
    assert (entry.text, entry.value) == ("–", None)


def test_the_sum_over_time_holds_all_bytes() -> None:
    info, measured = das2.run(samples=1800, **LONG)
    summed = known(sum_over_time(measured[0]))
    assert len(summed.t_s) == len(summed.mbps) == 180
    total = sum(flow.bytes or 0 for flow in measured[0].flows)
    assert sum(summed.mbps) / 180 * 1800 / 8e-6 == pytest.approx(total, rel=1e-6)
    (chart,) = known(soak(info, measured).picture).charts
    assert chart.caption == "Goodput of all flows together; each point is the mean over 10 s."


def test_a_flow_that_was_not_reported_leaves_no_sum_over_time() -> None:
    info, measured = das2.run(samples=100, **LONG)
    lost = replace(measured[0], flows=(replace(measured[0].flows[0], receiver=None), *measured[0].flows[1:]))
    assert sum_over_time(lost) is None
    assert sum_over_time(replace(measured[0], window_start_ns=None)) is None
    assert soak(info, [lost]).picture is None
