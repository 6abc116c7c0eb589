"""Captures beside the report: a row for each file, and whether they confirm TCP's counters."""

from dataclasses import replace

import builders
from message_runs import finding, said, texts_of

from rigctl.findings import Severity, Weight
from rigctl.records import Capture, Direction, Pair, Repetition, RunInfo
from rigctl.report.blocks import Section, Table
from rigctl.report.document import document

PAIR = Pair("pi1", "pi2")
AT_SENDER = Capture("pi1", PAIR, Direction.FORWARD, "r-pi1.pcap", 900, 0, False, 3, 3)
AT_RECEIVER = Capture("pi2", PAIR, Direction.FORWARD, "r-pi2.pcap", 897, None, False)


def captured(*captures: Capture) -> tuple[RunInfo, list[Repetition]]:
    """A run of one test with these captures."""
    cell = builders.cell(pairs=(PAIR,), duration_s=1.0)
    repetition = replace(builders.repetition(cell, [900.0]), captures=captures)
    return builders.run(builders.plan((cell,))), [repetition]


def section_of(info: RunInfo, repetitions: list[Repetition]) -> Section:
    (section,) = [made for made in document(info, repetitions).sections if made.title == "Captures"]
    return section


def test_each_file_has_a_row_and_what_is_not_known_is_a_dash() -> None:
    section = section_of(*captured(AT_SENDER, AT_RECEIVER))
    table = section.blocks[0]
    assert isinstance(table, Table)
    sent, received = texts_of(table)
    assert sent == {
        "Test": "1", "Pair": "pi1 → pi2", "At": "pi1", "Frames": "900", "File full": "no", "Dropped by kernel": "0",
        "Retransmits in capture": "3", "Retransmits by TCP": "3", "File": "r-pi1.pcap",
    }  # fmt: skip
    assert (received["Dropped by kernel"], received["Retransmits in capture"]) == ("–", "–")
    assert section.brief


def test_a_run_without_captures_has_no_such_section() -> None:
    assert not [section for section in document(*captured()).sections if section.title == "Captures"]


def test_captures_that_agree_confirm_the_counters_of_tcp() -> None:
    found = finding(*captured(AT_SENDER, replace(AT_SENDER, retransmits=0, retransmits_seen=0)), "captures at senders")
    assert found.text == "2 captures at senders confirm TCP's counters: 3 retransmits."
    assert found.level is Severity.OK


def test_one_that_differs_is_suspect_and_named() -> None:
    found = finding(*captured(AT_SENDER, replace(AT_SENDER, retransmits=5)), "differ")
    assert found.text == (
        "Retransmits in 1 of 2 captures differ from what TCP counts: 3 against 5 in test 1 at pi1; the cause is "
        "unknown."
    )
    assert (found.weight, found.level, found.subject.names) == (Weight.SUSPECT, Severity.WARNING, ("1",))


def test_frames_that_the_kernel_dropped_are_given_as_the_cause() -> None:
    found = finding(*captured(replace(AT_SENDER, retransmits=5, lost=2)), "differ")
    assert found.text.endswith("; the kernels dropped 2 frames of these captures.")


def test_of_many_the_largest_differences_are_named() -> None:
    many = [replace(AT_SENDER, node=f"pi{more}", retransmits=3 + more) for more in range(1, 7)]
    text = finding(*captured(*many), "differ").text
    assert text == (
        "Retransmits in 6 of 6 captures differ from what TCP counts, the largest differences: 3 against 9 in test 1 at "
        "pi6, 3 against 8 in test 1 at pi5 and 3 against 7 in test 1 at pi4; the cause is unknown."
    )


def test_a_full_file_is_not_compared() -> None:
    full = replace(AT_SENDER, cut=True, retransmits_seen=None)
    info, repetitions = captured(full)
    assert "Captures of test 1 were full before the end: their retransmits are not compared." in said(info, repetitions)
    assert not [text for text in said(info, repetitions) if "differ" in text or "confirm" in text]
