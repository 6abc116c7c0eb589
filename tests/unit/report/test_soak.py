"""One long test of several pairs: the table of its flows with their sum, and the sum over time."""

from dataclasses import replace
from typing import Any

import das2
import pytest

from rigctl.analysis.run_view import RunView
from rigctl.records import Repetition, RunInfo
from rigctl.report.blocks import Charts, Paragraph, Section, Table
from rigctl.report.sections.soak import part, sum_over_time

LONG: dict[str, Any] = {"windows": (131072,), "flows": (1,), "pairs": (12,), "duration_s": 1800.0}


def section_of(info: RunInfo, measured: list[Repetition]) -> Section:
    made = part(RunView(info, measured))
    assert made is not None
    (section,) = made.sections
    return section


def table_of(info: RunInfo, measured: list[Repetition]) -> Table:
    table = section_of(info, measured).blocks[0]
    assert isinstance(table, Table)
    return table


def charts_of(section: Section) -> list[Charts]:
    return [block for block in section.blocks if isinstance(block, Charts)]


def test_a_flow_of_which_some_repetition_is_unknown_has_no_mean() -> None:
    info, _ = das2.run(**(LONG | {"pairs": (3,)}))
    cell = info.plan.cells[0]
    one, two = (das2.repetition(cell, number=number) for number in (1, 2))
    two = replace(two, flows=(replace(two.flows[0], bytes=None), *two.flows[1:]))
    entry = table_of(info, [one, two]).rows[0].entries[2]
    assert (entry.text, entry.value) == ("–", None)


def test_the_sum_over_time_holds_all_bytes() -> None:
    info, measured = das2.run(samples=1800, **LONG)
    summed = sum_over_time(measured[0])
    assert summed is not None
    assert len(summed.t_s) == len(summed.mbps) == 180
    total = sum(flow.bytes or 0 for flow in measured[0].flows)
    assert sum(summed.mbps) / 180 * 1800 / 8e-6 == pytest.approx(total, rel=1e-6)
    section = section_of(info, measured)
    (charts,) = charts_of(section)
    assert [(key.name, key.colour) for key in charts.keys] == [("sum of the flows", "s1")]
    assert charts.charts[0].label.startswith("Sum of all flows over time: ")
    assert Paragraph("Each point is the mean over about 10 s.", small=True) in section.blocks


def test_a_flow_that_was_not_reported_leaves_no_sum_over_time() -> None:
    info, measured = das2.run(samples=100, **LONG)
    lost = replace(measured[0], flows=(replace(measured[0].flows[0], receiver=None), *measured[0].flows[1:]))
    assert sum_over_time(lost) is None
    assert sum_over_time(replace(measured[0], window_start_ns=None)) is None
    assert charts_of(section_of(info, [lost])) == []
