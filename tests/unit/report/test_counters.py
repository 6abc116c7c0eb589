"""Counters beside the flows: rows, sentences and chart lines, from a rig on paper."""

from collections.abc import Sequence
from dataclasses import replace

import builders
import documents
from switched import Paper, several

from rigctl.analysis.run_view import RunView
from rigctl.records import Capture, Direction, Pair, Repetition, RunInfo
from rigctl.report.blocks import Folded, Part, Table
from rigctl.report.sections.counters import part


def part_of(info: RunInfo, repetitions: Sequence[Repetition]) -> Part:
    found = part(RunView(info, repetitions))
    assert found is not None
    return found


def made(paper: Paper) -> Part:
    return part_of(paper.run(), [paper.repetition()])


def sentences(found: Part) -> tuple[str, ...]:
    return tuple(finding.text for finding in found.findings)


def rows_by_test(found: Part) -> list[dict[str, str]]:
    folded = [block for block in found.details[0].blocks if isinstance(block, Folded)]
    (table,) = next(block.blocks for block in folded if block.summary.startswith("Test by test"))
    assert isinstance(table, Table)
    return documents.rows_of(table)


def test_traffic_at_one_port_only_is_not_taken_for_the_trunks() -> None:
    found = made(Paper(foreign_octets={("p3", "out"): 50_000_000}))
    assert "At single ports, counters and flows differ by more than 1 % in test 1." in sentences(found)
    assert not rows_by_test(found)[0]["Difference"].endswith("!")


def test_of_a_few_retransmits_nothing_is_said() -> None:
    found = made(Paper(losses={(0, "switch out"): 1}))
    assert not [text for text in sentences(found) if "retransmit" in text]


def test_what_was_lost_before_the_counters_explains_that_they_show_less() -> None:
    whole, *_ = sentences(made(Paper(losses={(0, "switch in"): 2000})))
    assert whole.endswith(" %, which segments lost before these counters explain.")


def test_a_resumed_run_does_not_count_what_passed_meanwhile() -> None:
    """Ten minutes between two cells, with other traffic on the trunk: not the run's."""
    info, repetitions = several(2, Paper(), gap_s=600)
    later = tuple(
        replace(
            one,
            columns={
                name: [value + 10**9 if name.endswith("octets") else value for value in values]
                for name, values in one.columns.items()
            },
        )
        for one in repetitions[1].counters
    )
    found = part_of(info, [repetitions[0], replace(repetitions[1], counters=later)])
    assert sentences(found)[0].endswith("a difference of less than 0.1 %.")


def test_a_full_file_is_not_compared() -> None:
    pair = Pair("pi1", "pi2")
    cell = builders.cell(pairs=(pair,), duration_s=1.0)
    full = Capture("pi1", pair, Direction.FORWARD, "r-pi1.pcap", 900, 0, True, None, 3)
    measured = builders.repetition(cell, [900.0], captures=(full,))
    said = documents.texts(builders.run(builders.plan((cell,))), [measured])
    assert "Captures of test 1 were full before the end: their retransmits are not compared." in said
    assert not [text for text in said if "differ" in text or "confirm" in text]
