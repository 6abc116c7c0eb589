"""Gaps of 200 ms or longer in the series of streams are a finding, as far as the samples show them."""

from dataclasses import replace
from typing import Any

import builders
import pytest
from probing import MS, stream, with_gap

from rigctl.findings import Finding, Severity, Weight
from rigctl.records import Cell, NicCounters, Repetition
from rigctl.report.document import document


def found_in(*repetitions: Repetition, cells: tuple[Cell, ...] = (), **plan: Any) -> list[Finding]:
    info = builders.run(builders.plan(cells or (stream(),), **plan))
    return [made for made in document(info, repetitions).findings if "rrived" in made.text]


def test_a_gap_of_two_seconds_is_a_finding_with_test_pair_start_and_length() -> None:
    (found,) = found_in(with_gap(stream(), 1000, 3000))
    assert found.text == "Nothing arrived for 2 s or longer on pi1 → pi2 in test 1 (from 1.0 s on)."
    assert (found.weight, found.level, found.subject.names) == (Weight.SUSPECT, Severity.WARNING, ("1",))
    assert found.numbers["gaps"] == 1
    assert found.numbers["longest_gap_s"] == pytest.approx(2.0)
    assert found.numbers["carrier_changes"] is None


def test_a_length_is_never_rounded_up() -> None:
    repetition = replace(with_gap(stream(), 1000, 3000), window_start_ns=builders.BEGIN_NS + 1050 * MS)
    (found,) = found_in(repetition)
    assert found.text == "Nothing arrived for 1.9 s or longer on pi1 → pi2 in test 1 (from 0.0 s on)."
    early = replace(repetition, window_start_ns=builders.BEGIN_NS + 1002 * MS)
    assert "for 2 s or longer" in found_in(early)[0].text  # a sample that is taken 2 ms late


def test_the_flows_of_a_pair_have_a_gap_where_all_of_them_have() -> None:
    cell = stream(parallel=3)
    assert found_in(with_gap(cell, 1000, 3000, slice(0, 2)), cells=(cell,)) == []
    assert len(found_in(with_gap(cell, 1000, 3000), cells=(cell,))) == 1


def test_a_link_that_went_down_meanwhile_is_named() -> None:
    repetition = with_gap(stream(), 1000, 3000)
    nodes = tuple(
        replace(usage, nic=NicCounters(carrier_changes=2 if usage.node == "pi2" else 0)) for usage in repetition.nodes
    )
    (found,) = found_in(replace(repetition, nodes=nodes))
    assert found.text.endswith("Meanwhile the carrier changed 2 times on pi2: a link went down or came up.")
    assert found.remedy == "Check the cable, the switch port and its log."
    assert found.numbers["carrier_changes"] == 2
