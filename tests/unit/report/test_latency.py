"""Findings on latency under load."""

from typing import Any

import builders
import probing
import pytest

from rigctl.findings import Finding, Severity
from rigctl.records import Cell, Direction, Pair, Repetition
from rigctl.report.document import document

FULL = [3350] * 100


def told(cell: Cell, measured: Repetition) -> list[Finding]:
    """The findings on round trips, without the answer, which names the settings."""
    findings = document(builders.run(builders.plan((cell,))), [measured]).findings[1:]
    words = ("round trip", "No probe", "of the probes")
    return [finding for finding in findings if any(word in finding.text for word in words)]


@pytest.mark.parametrize("settings", [{"direction": Direction.BOTH}, {"pairs": (probing.PAIR, Pair("pi3", "pi2"))}])
def test_where_others_fill_queues_on_the_path_no_size_is_given(settings: dict[str, Any]) -> None:
    cell = probing.cell(**settings)
    (found,) = told(cell, probing.repetition(cell, probing.probes([100] * 50, FULL), mbps=470.0))
    assert "a queue of about" not in found.text
    assert found.numbers["queue_bytes"] is None


def test_probes_that_none_answered_are_a_warning() -> None:
    cell = probing.cell()
    (found,) = told(cell, probing.repetition(cell, probing.probes([None] * 50, [None] * 100)))
    assert found.text == "No probe of pi1 → pi2 was answered in test 1: latency is unknown."
    assert (found.level, found.remedy) == (Severity.WARNING, "Check whether a firewall drops UDP.")
