"""Findings of streams: results above the ceiling and why, congestion control, windows, the MSS of a whole run."""

from dataclasses import replace
from typing import Any

import builders
import pytest
from documents import cells_of, finding, texts

from rigctl.findings import Finding
from rigctl.records import Link, Pair, Repetition, RunInfo
from rigctl.report.document import document
from rigctl.report.words.goodput import excess_cause

ONE_PAIR = (Pair("pi1", "pi2"),)
SHAPED = "virtual links are shaped for full frames and carry more of smaller ones"
UNKNOWN = "the rate in the rig file or a node is wrong. Compare that rate with the link"


def one_test(
    goodput_mbps: float, virtual: str | None = "namespaces", mtu: int = 1500, duration_s: float = 10.0, **sender: Any
) -> tuple[RunInfo, list[Repetition]]:
    """A run of one test on a pair; 941.5 Mbit/s are its ceiling unless the sender's MSS is another."""
    cell = builders.cell(pairs=ONE_PAIR, duration_s=duration_s)
    links = {name: Link(10**9, mtu) for name in ("pi1", "pi2")}
    facts = {name: builders.facts(mtu=mtu) for name in links}
    info = builders.run(builders.plan([cell], virtual=virtual, links=links), facts=facts)
    return info, [builders.repetition(cell, (goodput_mbps,), sender=sender)]


def above(info: RunInfo, measured: list[Repetition]) -> Finding:
    return finding(info, measured, "Above the ceiling")


@pytest.mark.parametrize("sender", [{"mss": 524}, {"duration_s": 0.1}])
def test_on_real_links_nothing_about_virtual_ones_is_blamed(sender: dict[str, Any]) -> None:
    info, measured = one_test(960.0, None, **sender)
    assert excess_cause(info, cells_of(info, measured)[0]) == UNKNOWN


def test_tests_above_the_ceiling_are_grouped_by_their_cause() -> None:
    cells = [builders.cell(number, pairs=ONE_PAIR) for number in (1, 2, 3, 4)]
    rates: list[tuple[float, dict[str, Any]]] = [(890, {"mss": 524}), (960, {}), (900, {"mss": 524}), (940, {})]
    measured = [
        builders.repetition(cell, (rate,), sender=sender) for cell, (rate, sender) in zip(cells, rates, strict=True)
    ]
    info = builders.run(builders.plan(cells))
    found = [made for made in document(info, measured).findings if made.text.startswith("Above")]
    assert [made.subject.names for made in found] == [("2",), ("1", "3")]  # what nothing explains comes first
    assert [SHAPED in made.text for made in found] == [False, True]


def test_one_per_cent_above_is_what_measuring_explains() -> None:
    assert not [said for said in texts(*one_test(941.5 * 1.009)) if "Above the ceiling" in said]
    assert [said for said in texts(*one_test(941.5 * 1.012)) if "Above the ceiling" in said]


def bbr(duration_s: float, congestion: str = "bbr") -> tuple[RunInfo, list[Repetition]]:
    cells = [
        builders.cell(1, congestion="bbr", duration_s=duration_s),
        builders.cell(2, congestion="cubic", duration_s=duration_s),
    ]
    measured = [
        builders.repetition(cells[0], sender={"congestion": congestion}),
        builders.repetition(cells[1]),
    ]
    return builders.run(builders.plan(cells)), measured


def test_a_test_too_short_for_a_dip_or_without_bbr_has_no_such_finding() -> None:
    assert finding(*bbr(10.0), "Dips of goodput").subject.names == ("1",)
    assert not [said for said in texts(*bbr(9.9)) if "Dips" in said]
    assert not [said for said in texts(*bbr(60.0, "cubic")) if "Dips" in said]


def with_mss(requested: list[int | None], effective: list[int]) -> tuple[RunInfo, list[Repetition]]:
    cells = [builders.cell(number, mss=mss) for number, mss in enumerate(requested, 1)]
    measured = [
        builders.repetition(cell, sender={"mss": mss, "pmtu": 1500}) for cell, mss in zip(cells, effective, strict=True)
    ]
    return builders.run(builders.plan(cells)), measured


def test_a_test_that_does_not_count_says_nothing_of_the_mss() -> None:
    info, measured = with_mss([1460, 8960], [1448, 1448])
    failed = builders.failed(info.plan.cells[1])
    assert not [said for said in texts(info, [measured[0], failed]) if "made no difference" in said]


def test_a_few_retransmits_of_very_many_segments_are_no_finding() -> None:
    cell = builders.cell()
    info = builders.run(builders.plan([cell]))
    assert not [text for text in texts(info, [builders.repetition(cell, retransmits=(1, 0))]) if "etransmits" in text]
    twice = replace(info, plan=replace(info.plan, repeat=2))
    measured = [builders.repetition(cell, retransmits=(33, again), number=number) for number, again in ((1, 1), (2, 0))]
    said = finding(twice, measured, "Retransmits in all").text
    assert said.startswith("Retransmits in all measurement intervals together: 34, 1 in ")
    assert said.endswith(" segments, the mean of the repetitions.")
