"""Captures beside the report: a row for each file, and whether they confirm TCP's counters."""

from dataclasses import replace

import builders
from message_runs import said

from rigctl.records import Capture, Direction, Pair, Repetition, RunInfo

PAIR = Pair("pi1", "pi2")
AT_SENDER = Capture("pi1", PAIR, Direction.FORWARD, "r-pi1.pcap", 900, 0, False, 3, 3)


def captured(*captures: Capture) -> tuple[RunInfo, list[Repetition]]:
    """A run of one test with these captures."""
    cell = builders.cell(pairs=(PAIR,), duration_s=1.0)
    repetition = replace(builders.repetition(cell, [900.0]), captures=captures)
    return builders.run(builders.plan((cell,))), [repetition]


def test_a_full_file_is_not_compared() -> None:
    full = replace(AT_SENDER, cut=True, retransmits_seen=None)
    info, repetitions = captured(full)
    assert "Captures of test 1 were full before the end: their retransmits are not compared." in said(info, repetitions)
    assert not [text for text in said(info, repetitions) if "differ" in text or "confirm" in text]
