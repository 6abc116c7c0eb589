from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import builders
import documents
from known import known
from switched import Paper, several

from rigctl.analysis.run_view import RunView
from rigctl.records import Capture, Direction, Pair, Repetition, RunInfo
from rigctl.report.blocks import Folded, Part, Table
from rigctl.report.sections.counters import part


def part_of(info: RunInfo, repetitions: Sequence[Repetition]) -> Part:
    return known(part(RunView(info, repetitions)))


def made(paper: Paper) -> Part:
    return part_of(paper.run(), [paper.repetition()])


def codes(found: Part) -> list[str]:
    return [finding.code for finding in found.findings]


def test_traffic_at_one_port_only_is_not_taken_for_the_trunks() -> None:
    found = made(Paper(foreign_octets={("p3", "out"): 50_000_000}))
    assert "ports-differ" in codes(found)
    folded = [block for block in found.details[0].blocks if isinstance(block, Folded)]
    (table,) = next(block.blocks for block in folded if block.summary.startswith("Test by test"))
    assert isinstance(table, Table)
    assert not documents.rows_of(table)[0]["Difference"].endswith("!")


def test_of_a_few_retransmits_nothing_is_said() -> None:
    assert "loss-place" not in codes(made(Paper(losses={(0, "switch out"): 1})))


def test_a_resumed_run_does_not_count_what_passed_meanwhile() -> None:
    """Ten minutes between two cells, with other traffic on the trunk: not the run's."""
    info, repetitions = several(2, Paper(), gap_s=600)

    def busier(columns: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        return {name: [value + 10**9 * name.endswith("octets") for value in row] for name, row in columns.items()}

    later = tuple(replace(one, columns=busier(one.columns)) for one in repetitions[1].counters)
    found = part_of(info, [repetitions[0], replace(repetitions[1], counters=later)])
    assert codes(found) == ["counters"]


def test_a_full_file_is_not_compared() -> None:
    pair = Pair("pi1", "pi2")
    cell = builders.cell(pairs=(pair,), duration_s=1.0)
    full = Capture("pi1", pair, Direction.FORWARD, "r-pi1.pcap", 900, 0, True, None, 3)
    said = documents.codes(builders.run(builders.plan((cell,))), [builders.repetition(cell, [900.0], captures=(full,))])
    assert [code for code in said if code.startswith("captures")] == ["captures-full"]
