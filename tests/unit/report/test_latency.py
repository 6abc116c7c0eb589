"""Latency under load in the report: its finding, its table, its chart, its columns of the results table."""

from typing import Any

import builders
import probing
import pytest

from rigctl.findings import Finding, Severity
from rigctl.records import Cell, Direction, Pair, Repetition
from rigctl.report.blocks import Document
from rigctl.report.document import document

FULL = [3350] * 100


def made(*repetitions: Repetition, cells: tuple[Cell, ...] = (), **plan: Any) -> Document:
    return document(builders.run(builders.plan(cells or (probing.cell(),), **plan)), repetitions)


def told(found: Document) -> list[Finding]:
    """Without the answer, which names the settings."""
    words = ("round trip", "No probe", "of the probes")
    return [finding for finding in found.findings[1:] if any(word in finding.text for word in words)]


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


def test_a_run_without_probes_has_no_such_section() -> None:
    cell = probing.cell(latency_ms=None)
    found = made(builders.repetition(cell, [941.0]), cells=(cell,))
    assert not [part for part in found.sections if part.title == "Latency under load"]
    assert told(found) == []
