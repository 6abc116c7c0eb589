"""The head of a report, whose lines a reader posts: it is true of every row of the table below."""

import io
from collections.abc import Sequence
from statistics import stdev
from typing import Any

import builders
import pages
import pytest
from builders import repetition
from documents import document
from known import known
from rich.console import Console

from rigctl.report.blocks import Brief, Document
from rigctl.report.printers.terminal import print_brief


def run(tests: Sequence[Sequence[Sequence[float]]], **planned: Any) -> Document:
    """Return the report of tests whose windows differ; each has repetitions with the goodput of both pairs."""
    cells = [builders.cell(number, window_bytes=number * 65536) for number in range(1, len(tests) + 1)]
    measured = [
        repetition(cell, mbps, (10, 0), number=number)
        for cell, own in zip(cells, tests, strict=True)
        for number, mbps in enumerate(own, 1)
    ]
    return document(builders.run(builders.plan(cells, repeat=len(tests[0]), **planned)), measured)


def head(*tests: Sequence[Sequence[float]]) -> Brief:
    return known(run(tests).brief)


ALIKE = [(940.0, 941.0), (939.0, 940.0), (940.0, 940.5), (940.5, 941.0)]
SLOW = [(640.0, 641.0), (630.0, 650.0), (650.0, 645.0), (640.0, 638.0)]


def test_tests_that_are_alike_have_one_mean_with_the_deviation_of_all_repetitions_and_pairs() -> None:
    values = [mbps for own in (*ALIKE, *ALIKE) for mbps in own]
    mean, deviation = sum(values) / len(values), stdev(values)
    made = head(ALIKE, ALIKE)
    share = f"{100 * mean / 941.482:.1f}"
    assert made.mean == f"{mean:.1f} ± {deviation:.1f} Mbit/s on each pair = {share} % of what gigabit Ethernet allows"
    assert made.facts == ("slowest 940 (window 64 KiB)", "fastest 941", "retransmits 1 in 160,000")


@pytest.mark.parametrize(("tests", "slowest"), [([ALIKE[:3], SLOW[:3]], "640 (window"), ([ALIKE, SLOW], "640 ± 8")])
def test_fewer_repetitions_or_tests_that_differ_have_no_common_mean(tests: Any, slowest: str) -> None:
    made = head(*tests)
    assert made.mean == ""
    assert made.facts[0].startswith(f"slowest {slowest}")


def test_the_head_says_what_was_requested_and_a_requested_rate_is_no_result() -> None:
    requests = {name: known(document(*pages.stored(name)).brief).request for name in ("streams", "soak", "pingpong")}
    assert requests["streams"] == "7 settings × 1 × 1 s, both pairs at once"
    assert requests["soak"] == "1 setting × 1 × 3 s, 12 pairs at once"
    assert requests["pingpong"].startswith("25 settings × 5")
    facts = known(document(*pages.stored("datagrams")).brief).facts
    assert facts[0].startswith("slowest 741.2 (datagrams of 128 bytes")


def test_four_lines_fit_a_terminal_and_the_warning_has_its_mark() -> None:
    text = io.StringIO()
    print_brief(run([ALIKE, ALIKE]), Console(file=text, width=80))
    lines = text.getvalue().splitlines()
    assert (lines[0][:8], lines[0][-11:]) == ("GigaBlox", "20 Nov 2026")
    assert [len(line) for line in lines if len(line) > 80] == []
    text = io.StringIO()
    print_brief(document(*pages.stored("against")), Console(file=text, width=90))
    assert text.getvalue().splitlines()[-1].startswith("! MSS 8960 never went over the wire")


def test_of_a_run_with_parts_each_part_has_a_short_line() -> None:
    text, made = io.StringIO(), document(*pages.stored("parts"))
    print_brief(made, Console(file=text, width=80))
    request, *lines = text.getvalue().splitlines()
    assert request.startswith("Four parts · 7 tests in 4 parts  ")
    assert [line.partition(": ")[0] for line in lines[:4]] == ["forwarding", "a full port", "delay", "tcp"]
    assert "; ".join(lines[:4]) == made.answer
    assert lines[4].startswith("! ")
