"""The page as text: whole, self-contained, and safe against what a scenario may be called."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import builders
import pytest
from documents import rows_of, shown

from rigctl.analysis.run_view import RunView
from rigctl.base.resources import templates
from rigctl.records import Facts, Pair, Repetition, RunInfo
from rigctl.report.blocks import Charts, Folded, Table
from rigctl.report.charts.colours import LIGHT
from rigctl.report.charts.svg import render_svg
from rigctl.report.document import document
from rigctl.report.printers.html import page as page_of
from rigctl.report.printers.html import write_page
from rigctl.report.sections import host_facts, over_time
from rigctl.report.words import method

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


def render(info: RunInfo, measured: list[Repetition]) -> str:
    return page_of(document(info, measured))


def charts(info: RunInfo, measured: list[Repetition]) -> Charts:
    """Goodput over time, with its legend."""
    part = over_time.part(RunView(info, measured))
    assert part is not None
    drawn = part.sections[0].blocks[0]
    assert isinstance(drawn, Charts)
    return drawn


def first_traces(info: RunInfo, measured: list[Repetition]) -> tuple[over_time.Trace, ...]:
    return over_time.traces(info.plan.cells[0], measured[0])


def facts_of(facts: dict[str, Facts]) -> tuple[dict[str, list[str]], dict[str, str]]:
    """What differs between nodes, by its title, and what is the same."""
    differing: dict[str, list[str]] = {}
    same: dict[str, str] = {}
    for section in host_facts.sections(builders.run(facts=facts)):
        for block in section.blocks:
            if isinstance(block, Table):
                rows = rows_of(block)
                differing = {title: [row[title] for row in rows] for title in rows[0] if title != "Node"}
            assert isinstance(block, Table | Folded)
        for block in (inner for folded in section.blocks if isinstance(folded, Folded) for inner in folded.blocks):
            assert isinstance(block, Table)
            same = {row["Fact"]: row["Value"] for row in rows_of(block)}
    return differing, same


@pytest.fixture(scope="module")
def page() -> str:
    return render(*builders.gigablox())


def test_the_page_holds_the_table_the_answer_and_a_chart_per_test(page: str) -> None:
    assert "911, 941" in page
    assert "MSS 8960 was requested; 1448 went over the wire, because the MTU is 1500." in page
    assert page.count("<svg") == 7
    assert page.count('scope="row"') >= 7


def test_the_page_asks_for_nothing_from_anywhere(page: str) -> None:
    for tag, attributes in elements(shown(page)):
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
    found = elements(shown(render(info, measured)))
    assert not {tag for tag, _ in found} & {"script", "img"}
    assert not any(name.startswith("on") for _, attributes in found for name in attributes)
    assert render(info, measured).count("&lt;script&gt;") >= 10


def test_a_node_whose_name_is_markup_does_not_break_its_chart() -> None:
    cell = builders.cell(pairs=(Pair("<b>", "&"),))
    info = builders.run(builders.plan([cell]))
    (chart,) = charts(info, [builders.repetition(cell, (900,))]).charts
    assert "<b>" not in render_svg(chart.plot)


def test_the_style_sheet_knows_every_colour_of_the_charts_and_a_chart_alone_has_the_light_page_s() -> None:
    style = (templates() / "report.css").read_text("utf-8") + (templates() / "matrix.css").read_text("utf-8")
    for wanted in ("prefers-color-scheme: dark", "@media print", "max-width: 40rem"):
        assert wanted in style
    for name in (*LIGHT.colours, "plate"):
        assert re.search(rf"\.{name} {{ color: var\(--", style), name
    for name, colour in LIGHT.colours.items():
        variable = {"axis": "soft"}.get(name, name)
        assert re.search(rf"--{variable}: (#\w+);", style)[1] == colour  # type: ignore[index]


def test_the_colours_in_a_chart_are_classes_only(page: str) -> None:
    drawn = "".join(re.findall(r"<svg.*?</svg>", page, re.DOTALL))
    assert set(re.findall(r'(?:stroke|fill)="([^"]+)"', drawn)) == {"none", "currentColor"}
    assert set(re.findall(r'class="([^"]+)"', drawn)) == {"axis", "grid", "ceiling", "s1", "s2"}


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


def test_many_pairs_have_no_legend_and_one_colour() -> None:
    pairs = tuple(Pair(f"a{n}", f"b{n}") for n in range(12))
    cell = builders.cell(pairs=pairs)
    drawn = charts(builders.run(builders.plan([cell])), [builders.repetition(cell, [600.0] * 12)])
    assert [key.name for key in drawn.keys] == ["ceiling of a pair"]
    assert 'class="s2"' not in render_svg(drawn.charts[0].plot)


def test_a_run_in_which_nothing_was_measured_still_makes_a_page() -> None:
    cell = builders.cell()
    bare = builders.run(builders.plan([cell]), facts={}, versions={}, ended_at=None)
    for measured, said in (([], "No test was measured."), ([builders.failed(cell)], "Test 1 failed: pi4: ")):
        page = render(bare, measured)
        assert said in page
        assert "<svg" not in page


def test_facts_that_all_nodes_share_are_listed_once() -> None:
    differing, same = facts_of({"pi1": builders.facts(governor="performance"), "pi2": builders.facts()})
    assert (same["MTU"], same["Link speed"], same["net.core.wmem_max"]) == ("1500", "1 Gbit/s", "212992")
    assert same["offloads: tso"] == "on"
    assert differing == {"CPU governor": ["performance", "ondemand"]}


def test_what_identifies_a_machine_is_not_published() -> None:
    info, measured = builders.gigablox()
    page = render(info, measured)
    assert "192.168.7.1" in page
    assert "dc:a6:32" not in page
    assert "00000000-0000" not in page


def test_a_fact_that_no_node_knows_is_left_out_and_one_that_some_know_is_a_dash() -> None:
    differing, same = facts_of({"pi1": {"mtu": 1500, "governor": None}, "pi2": {"governor": None}})
    assert (differing, same) == ({"MTU": ["1500", "–"]}, {})


def test_the_method_names_skew_clock_error_and_what_does_not_count() -> None:
    info, measured = builders.gigablox()
    said = method.sentences(info, measured, ["Goodput is measured at the receiver."])
    assert said[:4] == [
        "7 tests, 1 repetition each, of 10 s.",
        "Goodput is measured at the receiver.",
        "Start skew: 0.11 ms (median), 0.11 ms at most.",
        "Clock offsets between nodes are known within 0.06 ms.",
    ]
    one, *others = measured
    said = method.sentences(info, [replace(one, start_skew_us=None, clock_error_us=25_000.0), *others], [])
    assert "Clock offsets between nodes are known within 0.06 ms." in said
    assert "Where the start skew is unknown, the start of each pair is known within 25.00 ms." in said
    said = method.sentences(info, [*measured, builders.failed(info.plan.cells[0])], [])
    assert "0 invalid and 1 failed repetitions are listed with the reason and not averaged." in said
    omitted = replace(info, plan=replace(info.plan, cells=(builders.cell(omit_s=2.0),)))
    assert "1 test, 1 repetition each, of 10 s; the first 2 s of each are omitted." in method.sentences(omitted, [], [])


def test_the_page_is_written_whole(tmp_path: Path, page: str) -> None:
    path = tmp_path / "report.html"
    write_page(document(*builders.gigablox()), path)
    assert path.read_text("utf-8") == page
    assert [written.name for written in tmp_path.iterdir()] == ["report.html"]


def test_the_method_names_the_agents_of_the_machines_that_were_used() -> None:
    info, measured = builders.gigablox()
    agents = {f"agent {machine} sha256": f"{machine}-sum" for machine in ("x86_64", "aarch64", "freebsd-x86_64")}
    known = replace(info, versions={"rigctl": "1", **agents}, facts={"pi1": builders.facts(), "pi2": builders.facts()})
    (said,) = [each for each in method.sentences(known, measured, []) if each.startswith("Measured with")]
    assert said == "Measured with rigctl 1, agent aarch64 sha256 aarch64-sum."
    unknown = replace(known, facts={"pi1": builders.facts(), "pi2": builders.facts(kernel=None)})
    (said,) = [each for each in method.sentences(unknown, measured, []) if each.startswith("Measured with")]
    assert all(agent in said for agent in agents)
