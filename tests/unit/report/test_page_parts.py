import json
import re
import shlex
from dataclasses import replace
from typing import Any

import builders
import das2
import pages
import pytest
from documents import shown

from rigctl.analysis.rows.frames import load
from rigctl.base.resources import scenarios, templates
from rigctl.columns import Level
from rigctl.findings import Finding, Severity, Weight
from rigctl.records import RunInfo
from rigctl.report.blocks import Document, Section, Table
from rigctl.report.charts.plot import MOST_COLOURS
from rigctl.report.document import document
from rigctl.report.printers import html
from rigctl.report.printers.html import anchor, page
from rigctl.report.printers.json import whole
from rigctl.report.printers.table_parts import repeated
from rigctl.report.product.colours import LIGHT
from rigctl.report.sections import over_time
from rigctl.report.sections.method import run_command
from rigctl.scenario.overrides import Overrides

DATA = re.compile(r'<script type="application/json" id="rigctl-data">\n(.*?)\n</script>', re.DOTALL)


def gigablox(**changed: Any) -> tuple[RunInfo, Document]:
    info, measured = builders.gigablox(**changed)
    return info, document(info, measured)


def test_the_data_inside_are_the_document_and_the_rows_of_the_export() -> None:
    info, measured = builders.gigablox()
    made = document(info, measured)
    (text,) = DATA.findall(page(made))
    data = json.loads(text)
    rows = [dict(zip(data["pairs"]["columns"], row, strict=True)) for row in data["pairs"]["rows"]]
    assert rows == load(info, measured).rows(Level.PAIRS)
    assert {name: value for name, value in data.items() if name != "pairs"} == json.loads(json.dumps(whole(made)))
    assert f"{len(rows)} rows, one per test, repetition and pair" in page(made)


def test_no_text_of_the_user_ends_the_data() -> None:
    nasty = "</script><script>alert(1)</script><!--"
    _, made = gigablox(title=nasty, notes=html.PLACE)
    text = page(made)
    assert text.count("<script") == text.count("</script>") == 2
    assert json.loads(DATA.findall(text)[0])["title"] == nasty


def test_data_that_would_make_a_page_too_large_are_left_out_with_the_reason(monkeypatch: Any) -> None:
    _, made = gigablox()
    small = len(shown(page(made)).encode())
    monkeypatch.setattr(html, "MOST_BYTES", len(page(made).encode()) - 1000)
    text = page(made)
    assert "pairs" not in json.loads(DATA.findall(text)[0])
    assert "gives the rows of pairs, too many for this page" in text
    monkeypatch.setattr(html, "MOST_BYTES", small)
    text = page(made)
    assert not DATA.findall(text)
    assert "The data would make this page too large" in text
    assert made.export in text


def test_a_matrix_of_960_tests_with_its_results_is_below_2_mb(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what 144 tests take beyond 96 of them, of one and of ten flows, without the rows of pairs."""
    sizes, most = [], html.MOST_BYTES
    for windows in (2, 3):
        axes: dict[str, Any] = {"windows": das2.WINDOWS[:windows], "flows": (1, 10), "pairs": range(1, 13)}
        made = document(*das2.run((das2.OFF, das2.ON), **axes))
        monkeypatch.setattr(html, "MOST_BYTES", most)
        monkeypatch.setattr(html, "MOST_BYTES", len(page(made).encode()) - 1000)
        text = page(made)
        assert {"results", "pairs"} & json.loads(DATA.findall(text)[0]).keys() == {"results"}
        sizes.append(len(text.encode()))
    assert sizes[0] + (960 - 96) / 48 * (sizes[1] - sizes[0]) <= most


def test_a_second_answer_is_a_finding_below_the_table_and_none_is_lost() -> None:
    _, made = gigablox()
    second, missed = Finding("Second.", Weight.ANSWER), Finding("Missed.", Weight.EXPECTED, Severity.ERROR)
    text = shown(page(replace(made, findings=(made.findings[0], second, missed, Finding("Detail.", Weight.DETAIL)))))
    assert text.index("Missed.") < text.index("<table") < text.index("Second.") < text.index("Detail.")


def test_no_two_elements_have_the_same_id() -> None:
    for name in ("streams", "matrix", "ping-pong", "counters"):
        ids = re.findall(r' id="([^"]+)"', pages.page_of(name))
        assert len(ids) == len(set(ids))
    _, made = gigablox()
    twice = replace(made, sections=(Section("Übrig — 1", ()), Section("Ubrig 1", ()), Section("Test 1", ())))
    ids = re.findall(r'<section id="([^"]+)"', page(twice))
    assert ids[-3:] == ["ubrig-1", "ubrig-1-2", "section-test-1"]
    assert anchor("→") == "section"


def test_the_command_runs_the_same_again() -> None:
    given = Overrides("my lab.yaml", ("window=64K,1M", "title=a b"), "60s", 3, ("trunk.rate=10G",), (1, 2), "mss=536")
    info, made = gigablox(overrides=given.as_given(), scenario_name="mine", scenario_yaml="title: x\n")
    words = shlex.split(run_command(info.plan))
    assert words[:3] == ["rigctl", "run", "mine.yaml"]
    again = [f"{option} {value}" for option, value in zip(words[3::2], words[4::2], strict=True)]
    assert Overrides.from_given(again) == given
    assert "mine.yaml is below" in page(made)
    bundled = (scenarios() / "gigablox.yaml").read_text("utf-8")
    info, made = gigablox(scenario_name="gigablox", scenario_yaml=bundled, overrides=())
    assert run_command(info.plan) == "rigctl run gigablox"
    assert "is below, under" not in page(made)


def test_columns_that_are_the_same_in_all_rows_are_told_once_but_never_what_was_measured() -> None:
    table = document(*das2.run(windows=(65536,), flows=(1,), pairs=(1, 4))).results[0].blocks[0]
    assert isinstance(table, Table)
    found = repeated(table)
    assert [table.columns[number].title for number in found] == [title for title, _ in found.values()]
    assert 0 not in found
    assert not {"Retransmits", "Goodput"} & {title for title, _ in found.values()}


def test_every_chart_has_a_text_alternative_with_numbers() -> None:
    for name in ("streams", "matrix", "soak", "ping-pong", "blast", "bins", "datagrams"):
        for label in re.findall(r'role="img" aria-label="([^"]*)"', pages.page_of(name)):
            assert re.search(r"\d.* (?:[MG]bit/s|MB/s|µs|ms)|\d at ", label.rpartition(":")[2]), label


def test_the_style_sheet_knows_every_colour_of_the_charts_and_a_product_page_has_those_of_series() -> None:
    style = (templates() / "report.css").read_text("utf-8") + (templates() / "matrix.css").read_text("utf-8")
    for wanted in ("prefers-color-scheme: dark", "@media print", "max-width: 40rem"):
        assert wanted in style
    series = [f"s{number}" for number in range(1, MOST_COLOURS + 1)]
    for name in (*series, "grid", "axis", "ceiling", "good", "warn", "plate"):
        assert re.search(rf"\.{name} {{ color: var\(--", style), name
    for name in series:
        assert re.search(rf"--{name}: (#\w+);", style)[1] == LIGHT[name]  # type: ignore[index]


def test_a_minute_of_samples_is_drawn_with_at_most_120_points_that_hold_what_was_counted() -> None:
    info, measured = builders.gigablox(60.0)
    trace, _ = over_time.traces(info.plan.cells[0], measured[0])
    assert 60 <= len(trace.goodput_mbps) <= 120
    assert sum(trace.goodput_mbps) / len(trace.goodput_mbps) == pytest.approx(911, abs=0.5)
    assert (trace.name, sum(trace.retransmits)) == ("pi1 → pi2", 135)


def test_what_identifies_a_machine_is_not_published() -> None:
    text = page(document(*builders.gigablox()))
    assert "192.168.7.1" in text
    assert "dc:a6:32" not in text
    assert "00000000-0000" not in text
