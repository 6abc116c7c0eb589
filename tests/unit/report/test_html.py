"""The page as text: whole, self-contained, and safe against what a scenario may be called."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import builders
import pytest
from rigctl.report.sections.streams.goodput_chart import goodput_charts, legend, traces

from rigctl.analysis.frames import load
from rigctl.records import Pair
from rigctl.report.printers.html import method, render, write_report
from rigctl.report.sections.host_facts import fact_rows
from rigctl.report.svg import CEILING, GRID, INK, SERIES_COLOURS
from rigctl.resources import templates

NASTY = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def elements(page: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = _Elements()
    parser.feed(page)
    return parser.found


@pytest.fixture(scope="module")
def page() -> str:
    return render(*builders.gigablox())


def test_the_page_holds_the_table_the_answer_and_a_chart_per_test(page: str) -> None:
    assert "911, 941" in page
    assert "MSS 8960 was asked for; 1448 went over the wire, because the MTU is 1500." in page
    assert page.count("<svg") == 7
    assert page.count('scope="row"') >= 7


def test_the_page_asks_for_nothing_from_anywhere(page: str) -> None:
    for tag, attributes in elements(page):
        assert tag not in {"script", "iframe", "object", "embed", "base"}
        for name in ("src", "href", "data", "action", "srcset"):
            value = attributes.get(name) or ""
            assert value == "" or value.startswith(("#", "data:"))
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page


def test_every_text_of_the_user_is_escaped() -> None:
    cell = builders.cell(congestion="cubic")
    plan = builders.plan(
        [cell], title=NASTY, notes=NASTY, scenario_name=NASTY, scenario_yaml=NASTY, rig_name=NASTY, rig_yaml=NASTY,
        overrides=(f"--set title={NASTY}",),
    )  # fmt: skip
    facts = {NASTY: builders.facts(kernel=NASTY, os=NASTY), "pi1": builders.facts(**{NASTY: NASTY})}
    info = builders.run(plan, versions={"rigctl": NASTY}, facts=facts)
    measured = [builders.failed(cell, NASTY), builders.repetition(cell, attempt=2)]
    found = elements(render(info, measured))
    assert not {tag for tag, _ in found} & {"script", "img"}
    assert not any(name.startswith("on") for _, attributes in found for name in attributes)
    assert render(info, measured).count("&lt;script&gt;") >= 10


def test_a_node_whose_name_is_markup_does_not_break_its_chart() -> None:
    cell = builders.cell(pairs=(Pair("<b>", "&"),))
    info = builders.run(builders.plan([cell]))
    charts = goodput_charts(load(info, [builders.repetition(cell, (900,))]), {})
    assert "<b>" not in charts[0].svg


def test_the_style_sheet_knows_every_stand_in_colour_of_the_charts() -> None:
    style = (templates() / "report.css").read_text("utf-8")
    for colour in (*SERIES_COLOURS, GRID, INK, CEILING):
        assert f'"{colour}"' in style
    for wanted in ("prefers-color-scheme: dark", "@media print", "max-width: 40rem"):
        assert wanted in style


def test_the_colours_in_a_chart_are_stand_ins_only(page: str) -> None:
    charts = "".join(re.findall(r"<svg.*?</svg>", page, re.DOTALL))
    found = set(re.findall(r'(?:stroke|fill)="(#[0-9a-fA-F]+)"', charts))
    assert found <= {*SERIES_COLOURS, GRID, INK, CEILING}
    assert {SERIES_COLOURS[0], SERIES_COLOURS[1], CEILING} <= found


def test_the_traces_of_a_chart_hold_the_bytes_and_retransmits_of_the_repetition() -> None:
    info, measured = builders.gigablox()
    first, second = traces(load(info, measured), measured[0])
    assert (first.name, second.name) == ("pi1 → pi2", "pi3 → pi4")
    assert sum(first.goodput_mbps) / len(first.goodput_mbps) == pytest.approx(911, abs=0.5)
    assert (sum(first.retransmits), sum(second.retransmits)) == (135, 0)


def test_a_minute_of_samples_is_drawn_with_at_most_120_points() -> None:
    info, measured = builders.gigablox(60.0)
    trace = traces(load(info, measured), measured[0])[0]
    assert 60 <= len(trace.goodput_mbps) <= 120


def test_many_pairs_have_no_legend_and_one_colour() -> None:
    pairs = tuple(Pair(f"a{n}", f"b{n}") for n in range(12))
    cell = builders.cell(pairs=pairs)
    frames = load(builders.run(builders.plan([cell])), [builders.repetition(cell, [600.0] * 12)])
    assert legend(frames) == []
    assert SERIES_COLOURS[1] not in goodput_charts(frames, {})[0].svg


def test_a_run_in_which_nothing_was_measured_still_makes_a_page() -> None:
    cell = builders.cell()
    bare = builders.run(builders.plan([cell]), facts={}, versions={}, ended_at=None)
    for measured in ([], [builders.failed(cell)]):
        page = render(bare, measured)
        assert "Nothing was measured that counts." in page
        assert "<svg" not in page


def test_facts_that_all_nodes_share_are_said_once() -> None:
    facts = {"pi1": builders.facts(governor="performance"), "pi2": builders.facts()}
    rows = {row.title: row for row in fact_rows(facts)}
    assert rows["MTU"].same == "1500"
    assert rows["Link speed"].same == "1 Gbit/s"
    assert rows["CPU governor"].same is None
    assert rows["CPU governor"].values == ("performance", "ondemand")
    assert rows["net.core.wmem_max"].same == "212992"
    assert rows["offloads: tso"].same == "on"


def test_what_identifies_a_machine_is_not_published() -> None:
    info, measured = builders.gigablox()
    page = render(info, measured)
    assert "192.168.7.1" in page
    assert "dc:a6:32" not in page
    assert "00000000-0000" not in page


def test_a_fact_that_no_node_knows_is_left_out_and_one_that_some_know_is_a_dash() -> None:
    rows = fact_rows({"pi1": {"mtu": 1500, "governor": None}, "pi2": {"governor": None}})
    assert [(row.title, row.values) for row in rows] == [("MTU", ("1500", "–"))]


def test_how_it_was_measured_names_skew_clock_error_and_what_does_not_count() -> None:
    info, measured = builders.gigablox()
    said = " ".join(method(info, measured))
    assert "7 tests of 10 s, 1 repetition each." in said
    assert "started within 0.11 ms (median; at worst 0.11 ms)" in said
    assert "compared to within 0.06 ms" in said
    said = " ".join(method(info, [*measured, builders.failed(info.plan.cells[0])]))
    assert "0 invalid, 1 failed" in said
    omitted = replace(info, plan=replace(info.plan, cells=(builders.cell(omit_s=2.0),)))
    assert "The first 2 s of each do not count." in " ".join(method(omitted, []))


def test_the_page_is_written_whole(tmp_path: Path, page: str) -> None:
    path = tmp_path / "report.html"
    write_report(*builders.gigablox(), path)
    assert path.read_text("utf-8") == page
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]
