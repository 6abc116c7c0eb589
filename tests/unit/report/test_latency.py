"""Latency under load in the report: its finding, its table, its chart, its columns of the results table."""

from typing import Any

import builders
import probing
import pytest

from rigctl.findings import Finding, Severity, Weight
from rigctl.records import Cell, Direction, Pair, Repetition
from rigctl.report.blocks import Charts, Document, Section, Table
from rigctl.report.charts.plot import Line
from rigctl.report.charts.svg import render_svg
from rigctl.report.document import document

FULL = [3350] * 100


def made(*repetitions: Repetition, cells: tuple[Cell, ...] = (), **plan: Any) -> Document:
    return document(builders.run(builders.plan(cells or (probing.cell(),), **plan)), repetitions)


def told(found: Document) -> list[Finding]:
    """Without the answer, which names the settings."""
    words = ("round trip", "No probe", "of the probes")
    return [finding for finding in found.findings[1:] if any(word in finding.text for word in words)]


def section(found: Document) -> Section:
    return next(part for part in found.sections if part.title == "Latency under load")


def table(found: Document) -> Table:
    shown = section(found).blocks[0]
    assert isinstance(shown, Table)
    return shown


def test_a_queue_that_fills_is_a_finding_with_its_size() -> None:
    (found,) = told(made(probing.repetition(probing.cell(), probing.probes([100] * 50, FULL), mbps=941.4)))
    assert found.text == (
        "Under load the round trip of pi1 → pi2 grows from 100 µs to 3.35 ms (p50) in test 1: a queue of about 370 KB "
        "at 941 Mbit/s."
    )
    assert (found.weight, found.level, found.subject.names) == (Weight.COMPARISON, Severity.NOTE, ("1",))
    assert found.numbers["latency_rise_us"] == 3250.0
    assert found.numbers["queue_bytes"] == pytest.approx(3250e-6 * 941.4e6 / 8, rel=1e-3)
    assert found.remedy is not None


def test_a_round_trip_that_hardly_grows_is_well() -> None:
    (found,) = told(made(probing.repetition(probing.cell(), probing.probes([100] * 50, [250] * 100))))
    assert found.text == "Under load the round trip stays short: 250 µs of pi1 → pi2 in test 1, 100 µs when idle (p50)."
    assert (found.level, found.numbers["queue_bytes"]) == (Severity.OK, None)


@pytest.mark.parametrize("settings", [{"direction": Direction.BOTH}, {"pairs": (probing.PAIR, Pair("pi3", "pi2"))}])
def test_where_others_fill_queues_on_the_path_no_size_is_given(settings: dict[str, Any]) -> None:
    cell = probing.cell(**settings)
    measured = probing.repetition(cell, probing.probes([100] * 50, FULL), mbps=470.0)
    (found,) = told(made(measured, cells=(cell,)))
    assert "a queue of about" not in found.text
    assert found.numbers["queue_bytes"] is None


def test_the_largest_rise_of_several_tests_is_named() -> None:
    cells = (probing.cell(1), probing.cell(2))
    measured = [
        probing.repetition(cell, probing.probes([100] * 50, [rise_us] * 100))
        for cell, rise_us in zip(cells, (2000, 5000), strict=True)
    ]
    (found,) = told(made(*measured, cells=cells))
    assert found.text.endswith("; the largest rise of 2 rows.")
    assert found.subject.names == ("2",)


def test_probes_that_none_answered_are_a_warning() -> None:
    (found,) = told(made(probing.repetition(probing.cell(), probing.probes([None] * 50, [None] * 100))))
    assert found.text == "No probe of pi1 → pi2 was answered in test 1: latency is unknown."
    assert (found.level, found.remedy) == (Severity.WARNING, "Check whether a firewall drops UDP.")


def test_probes_that_got_lost_are_a_note() -> None:
    loaded = [3350] * 95 + [None] * 5
    found = told(made(probing.repetition(probing.cell(), probing.probes([100] * 50, loaded))))
    assert [finding.text for finding in found][1:] == ["Under load 5 % of the probes of pi1 → pi2 got lost in test 1."]


def test_the_table_has_a_row_for_each_test_and_pair_with_probes() -> None:
    cells = (probing.cell(1, latency_ms=None), probing.cell(2))
    shown = table(
        made(
            builders.repetition(cells[0], [941.0]),
            probing.repetition(cells[1], probing.probes([100] * 50, FULL)),
            cells=cells,
        )
    )
    (row,) = shown.rows
    texts = dict(zip([column.title for column in shown.columns], [entry.text for entry in row.entries], strict=True))
    assert texts == {
        "Test": "2",
        "Pair": "pi1 → pi2",
        "Idle, p50": "0.100",
        "Idle, p99": "0.100",
        "Loaded, p50": "3.35",
        "Loaded, p99": "3.35",
        "Rise": "3.25",
        "Round trips per minute": "17910",
        "Lost": "0",
        "RTT of TCP": "0.621",
    }


def test_the_results_table_has_what_was_asked_for() -> None:
    cells = (probing.cell(1, latency_ms=None), probing.cell(2))
    measured = [builders.repetition(cells[0], [941.0]), probing.repetition(cells[1], probing.probes([100] * 50, FULL))]
    shown = made(*measured, cells=cells).results[0].blocks[0]
    assert isinstance(shown, Table)
    titles = [column.title for column in shown.columns]
    at = titles.index("Probes every")
    assert [row.entries[at].text for row in shown.rows] == ["off", "20"]
    at = titles.index("Loaded round trip")
    assert [row.entries[at].text for row in shown.rows] == ["–", "3.35"]
    plain = made(measured[0], cells=cells[:1]).results[0].blocks[0]
    assert isinstance(plain, Table)
    assert not {"Probes every", "Idle round trip", "Loaded round trip"} & {column.title for column in plain.columns}


def test_the_chart_has_round_trips_from_the_idle_time_on_and_the_goodput() -> None:
    drawn = section(made(probing.repetition(probing.cell(), probing.probes([100] * 50, FULL)))).blocks[1]
    assert isinstance(drawn, Charts)
    (chart,) = drawn.charts
    trips, goodput = (panel.marks for panel in chart.plot.panels)
    assert isinstance(trips[0], Line)
    assert trips[0].points[0][0] == -1.0
    assert max(ms or 0 for _, ms in trips[0].points) == 3.35
    assert len(goodput) == 1
    assert chart.label == "Round trips over time of test 1: up to 3.35 ms"
    assert render_svg(chart.plot).startswith("<svg")


def test_a_run_without_probes_has_no_such_section() -> None:
    cell = probing.cell(latency_ms=None)
    found = made(builders.repetition(cell, [941.0]), cells=(cell,))
    assert not [part for part in found.sections if part.title == "Latency under load"]
    assert told(found) == []
