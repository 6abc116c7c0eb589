"""One long test of several pairs: the table of its flows with their sum, and the sum over time."""

from dataclasses import replace
from typing import Any

import builders
import das2
import documents
import pytest
from switched import Paper

from rigctl.analysis.rows.frames import load
from rigctl.analysis.run_view import RunView
from rigctl.records import Pair, Repetition, RunInfo
from rigctl.report.blocks import Charts, Folded, Paragraph, Section, Table
from rigctl.report.document import document
from rigctl.report.printers.html import page
from rigctl.report.printers.markdown import markdown
from rigctl.report.sections.soak import FlowMean, _summed_up, flow_means, is_soak, part, sum_over_time
from rigctl.report.tables.streams import span

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


def test_the_table_has_the_flows_in_two_columns_side_by_side_and_their_sum() -> None:
    info, measured = das2.run(**LONG)
    table = table_of(info, measured)
    assert documents.titles(table) == ["Flow", "Pair", "Goodput", "Retransmits"] * 2
    assert [(row.entries[0].value, row.entries[4].value) for row in table.rows] == [(n, n + 6) for n in range(1, 7)]
    means = flow_means(load(info, measured).derived.flows)
    assert means[0].pair == "n01 → n13"
    known = [flow.goodput_mbps for flow in means if flow.goodput_mbps is not None]
    assert table.total is not None
    assert [entry.text for entry in table.total.entries[:6]] == ["", "", "", "", "", "Sum"]
    assert table.total.entries[6].value == pytest.approx(sum(known))
    assert float(table.total.entries[6].text) == pytest.approx(sum(known), abs=1)
    assert table.total.entries[7].value == sum(flow.retransmits or 0 for flow in means)


def test_goodput_has_the_same_decimals_in_all_rows() -> None:
    shape = das2.Shape(goodput_mbps=lambda cell, mtu: 101.0 * len(cell.pairs))
    table = table_of(*das2.run(shape=shape, **LONG))
    assert table.total is not None
    texts = [entry.text for row in (*table.rows, table.total) for entry in (row.entries[2], row.entries[6])]
    values = [flow.value for row in table.rows for flow in (row.entries[2], row.entries[6])]
    assert (
        min(value for value in values if isinstance(value, float))
        < 100
        < max(value for value in values if isinstance(value, float))
    )
    assert {len(text.partition(".")[2]) for text in texts if text} == {1}


def test_streams_of_datagrams_have_no_column_of_retransmits() -> None:
    info, measured = das2.run(**LONG)
    unknown = [replace(one, flows=tuple(replace(flow, retransmits=None) for flow in one.flows)) for one in measured]
    assert documents.titles(table_of(info, unknown)) == ["Flow", "Pair", "Goodput"] * 2


def test_without_samples_there_is_no_chart() -> None:
    assert charts_of(section_of(*das2.run(**LONG))) == []


def test_a_terminal_has_the_same_table_with_its_columns_aligned() -> None:
    info, measured = das2.run(**LONG)
    printed = documents.printed(info, measured)
    begins = printed.index("Goodput of each flow, and their sum")
    flows = [line for line in printed[begins:] if "→" in line][:6]
    assert [line.split()[0] for line in flows] == [str(number) for number in range(1, 7)]
    assert len({line.index("→") for line in flows}) == 1
    sums = next(line for line in printed[begins:] if line.split()[:1] == ["Sum"])
    total = table_of(info, measured).total
    assert total is not None
    assert sums.split() == ["Sum", total.entries[6].text, total.entries[7].text]


def test_a_narrow_terminal_has_the_blocks_below_each_other_and_the_sum_keeps_its_label() -> None:
    info, measured = das2.run(**LONG)
    printed = documents.printed(info, measured, 60)
    begins = printed.index("Goodput of each flow, and their sum")
    lines = printed[begins:]
    assert [line.split()[0] for line in lines if "→" in line] == [str(number) for number in range(1, 13)]
    (sums,) = (line for line in lines if "Sum" in line.split())
    total = table_of(info, measured).total
    assert total is not None
    assert sums.split() == ["Sum", total.entries[6].text, total.entries[7].text]


def test_an_odd_number_of_flows_leaves_one_field_empty_and_repetitions_are_averaged() -> None:
    info, _ = das2.run(**(LONG | {"pairs": (3,)}))
    cell = info.plan.cells[0]
    measured = [das2.repetition(cell, number=number) for number in (1, 2)]
    measured.append(builders.failed(cell, repetition=3))
    table = table_of(info, measured)
    assert [entry.text for entry in table.rows[1].entries[4:]] == [""] * 4
    rates = [row["goodput_mbps"] for row in load(info, measured).derived.flows if row["source"] == "n01"]
    assert table.rows[0].entries[2].value == pytest.approx(sum(rates) / 2)
    assert Paragraph("Means over 2 repetitions.", small=True) in section_of(info, measured).blocks
    assert "Means over 2 repetitions." in page(document(info, measured))


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


def test_the_rates_that_switches_counted_are_lines_beside_the_sum() -> None:
    paper = Paper()
    (charts,) = charts_of(section_of(paper.run(), [paper.repetition()]))
    assert [(key.name, key.colour) for key in charts.keys] == [("sum of the flows", "s1"), ("trunk, a up out", "s2")]
    html = page(document(paper.run(), [paper.repetition()]))
    assert '<path class="s2"' in html
    assert "trunk, a up out" in html


def test_a_flow_that_was_not_reported_leaves_no_sum_over_time() -> None:
    info, measured = das2.run(samples=100, **LONG)
    lost = replace(measured[0], flows=(replace(measured[0].flows[0], receiver=None), *measured[0].flows[1:]))
    assert sum_over_time(lost) is None
    assert sum_over_time(replace(measured[0], window_start_ns=None)) is None
    assert charts_of(section_of(info, [lost])) == []


def test_other_runs_have_no_table_of_a_long_test() -> None:
    assert not is_soak(builders.plan())
    assert part(RunView(*builders.gigablox())) is None
    assert is_soak(das2.run(**LONG)[0].plan)
    info, _ = das2.run(**LONG)
    assert part(RunView(info, [builders.failed(info.plan.cells[0])])) is None


def test_of_many_flows_the_slowest_are_named_and_the_rest_is_folded() -> None:
    pairs = tuple(Pair(f"a{number:03}", f"b{number:03}") for number in range(1, 101))
    cell = replace(das2.cells(**LONG)[0], pairs=pairs)
    rates = {pair: 20.0 + at / 100 for at, pair in enumerate(pairs)}
    rates[pairs[41]], rates[pairs[6]], rates[pairs[70]] = 3.0, 5.0, 7.0
    flows = [
        FlowMean(at, f"{pair.source} → {pair.destination}", rates[pair], 0.0) for at, pair in enumerate(cell.pairs, 1)
    ]
    table = _summed_up(flows, 1990.0, 12.0)
    assert [[entry.text for entry in row.entries] for row in table.rows] == [
        ["slowest 1", "a042 → b042", "3.00", "0"],
        ["slowest 2", "a007 → b007", "5.00", "0"],
        ["slowest 3", "a071 → b071", "7.00", "0"],
        ["median", "", "20.48", ""],
        ["fastest", "a100 → b100", "20.99", "0"],
    ]
    assert table.total is not None
    assert [entry.text for entry in table.total.entries] == ["sum", "of 100 flows", "1990.00", "12"]


def test_the_whole_table_of_many_flows_is_on_the_page_folded() -> None:
    info, measured = das2.run(**{**LONG, "flows": (3,), "windows": (393216,)})
    brief, folded = section_of(info, measured).blocks[:2]
    assert isinstance(brief, Table)
    assert isinstance(folded, Folded)
    (whole,) = folded.blocks
    assert isinstance(whole, Table)
    assert (folded.summary, len(whole.rows), len(brief.rows)) == ("All 36 flows", 18, 5)


def test_markdown_has_the_slowest_flows_and_says_where_the_others_are() -> None:
    text = markdown(document(*das2.run(**{**LONG, "flows": (10,), "windows": (1310720,)})))
    assert "| slowest 1 |" in text
    assert "All 120 flows: on the HTML page" in text
    assert text.count("n01 → n13") <= 4


def test_pairs_whose_goodput_reads_alike_are_no_range() -> None:
    assert span([18.81, 18.82, 18.83], lambda rate: f"{rate:.1f}").text == "18.8"
    assert span([18.81, 18.82, 18.93], lambda rate: f"{rate:.1f}").text == "18.8 to 18.9"
