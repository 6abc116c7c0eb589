"""Latency under load in the report: its finding, its table, its chart, its columns of the results table."""

from typing import Any

import builders
import probing
import pytest

from rigctl.findings import Finding, Severity
from rigctl.records import Cell, Direction, Pair, Repetition
from rigctl.report.blocks import Document, Section, Table
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


def test_probes_that_none_answered_are_a_warning() -> None:
    (found,) = told(made(probing.repetition(probing.cell(), probing.probes([None] * 50, [None] * 100))))
    assert found.text == "No probe of pi1 → pi2 was answered in test 1: latency is unknown."
    assert (found.level, found.remedy) == (Severity.WARNING, "Check whether a firewall drops UDP.")


def test_probes_that_got_lost_are_a_note() -> None:
    loaded = [3350] * 95 + [None] * 5
    found = told(made(probing.repetition(probing.cell(), probing.probes([100] * 50, loaded))))
    assert [finding.text for finding in found][1:] == ["Under load 5 % of the probes of pi1 → pi2 got lost in test 1."]


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


def test_a_run_without_probes_has_no_such_section() -> None:
    cell = probing.cell(latency_ms=None)
    found = made(builders.repetition(cell, [941.0]), cells=(cell,))
    assert not [part for part in found.sections if part.title == "Latency under load"]
    assert told(found) == []
