"""Findings of streams: results above the ceiling and why, congestion control, windows, the MSS of a whole run."""

from dataclasses import replace
from typing import Any

import builders
import pytest
from documents import cells_of, finding, result_table, texts

from rigctl.analysis.views.shaping import carried_mbps
from rigctl.findings import Finding, Severity, Weight
from rigctl.records import Cell, Link, Pair, Repetition, RunInfo
from rigctl.report.document import document
from rigctl.report.words.above_ceiling import excess_cause

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


def test_the_row_above_its_ceiling_says_what_the_shaped_link_carries() -> None:
    info, measured = one_test(880.0, mtu=9000, mss=524, pmtu=9000)
    (note,) = result_table(info, measured).notes
    carried = carried_mbps(info, cells_of(info, measured)[0])
    assert note.endswith(f"{SHAPED}, {carried:.1f} Mbit/s.")
    pairs = builders.cell(mss=524)
    both = builders.run(builders.plan([pairs]))
    (note,) = result_table(both, [builders.repetition(pairs, (880, 880), sender={"mss": 524})]).notes
    assert note.endswith(" Mbit/s on each pair.")


def test_in_a_long_test_of_full_frames_the_cause_is_unknown_and_says_what_to_compare() -> None:
    info, measured = one_test(960.0)
    assert above(info, measured).text == f"Above the ceiling: test 1 at 102.0 %: {UNKNOWN}."


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


def test_only_the_tests_without_a_request_are_its_subject_and_all_defaults_are_named() -> None:
    cells = [builders.cell(1), builders.cell(2), builders.cell(3, congestion="cubic")]
    measured = [
        builders.repetition(cell, sender={"congestion": name})
        for cell, name in zip(cells, ("cubic", "bbr", "cubic"), strict=True)
    ]
    found = finding(builders.run(builders.plan(cells)), measured, "No congestion control")
    assert "the nodes' defaults, bbr and cubic, were used." in found.text
    assert found.subject.names == ("1", "2")


def with_mss(requested: list[int | None], effective: list[int]) -> tuple[RunInfo, list[Repetition]]:
    cells = [builders.cell(number, mss=mss) for number, mss in enumerate(requested, 1)]
    measured = [
        builders.repetition(cell, sender={"mss": mss, "pmtu": 1500}) for cell, mss in zip(cells, effective, strict=True)
    ]
    return builders.run(builders.plan(cells)), measured


def test_of_an_mss_that_was_lowered_on_the_path_no_cause_is_claimed() -> None:
    found = finding(*with_mss([1460, 8960], [1400] * 2), "MSS 1400")
    assert found.text == "MSS 1400 went over the wire in every test: the MSS requested made no difference."


def test_a_test_that_does_not_count_says_nothing_of_the_mss() -> None:
    info, measured = with_mss([1460, 8960], [1448, 1448])
    failed = builders.failed(info.plan.cells[1])
    assert not [said for said in texts(info, [measured[0], failed]) if "made no difference" in said]


def test_windows_that_were_not_granted_are_named_three_and_the_others_counted() -> None:
    cells = [builders.cell(number, window_bytes=(number + 1) * 1024**2) for number in range(1, 6)]
    cut = {"sndbuf_bytes": 2 * 212992}
    info = builders.run(builders.plan(cells))
    measured = [builders.repetition(cell, sender=cut) for cell in cells]
    found = [made for made in document(info, measured).findings if "window" in made.text and "granted" in made.text]
    assert [made.subject.names for made in found] == [("1",), ("2",), ("3",), ()]
    assert all(made.level is Severity.WARNING and made.weight is Weight.GRANTED for made in found)
    assert found[-1].text == "2 more windows were not granted as requested; the table has them."


def test_no_retransmits_are_good_news_and_unknown_ones_are_none() -> None:
    cells = [builders.cell(1), builders.cell(2)]
    info = builders.run(builders.plan(cells))
    measured = [builders.repetition(cell, retransmits=(0, 0)) for cell in cells]
    found = finding(info, measured, "No retransmits")
    assert (found.text, found.level) == ("No retransmits in the measurement interval of any test.", Severity.OK)
    unknown = [replace(one, flows=tuple(_silent(flow) for flow in one.flows)) for one in measured]
    assert not [said for said in texts(info, unknown) if "etransmits" in said]


def _silent(flow: Any) -> Any:
    return replace(flow, retransmits=None)


def test_a_mean_of_retransmits_of_few_tests_is_not_said_of_all() -> None:
    cells: list[Cell] = [builders.cell(1), builders.cell(2)]
    measured = [builders.repetition(cells[0], retransmits=(0, 0)), builders.repetition(cells[1], retransmits=(13, 4))]
    found = finding(builders.run(builders.plan(cells)), measured, "Retransmits in all")
    assert found.numbers == {"retransmits": 17}
    assert (found.weight, found.level) == (Weight.LOSS, Severity.NOTE)


def test_a_few_retransmits_of_very_many_segments_are_no_finding() -> None:
    cell = builders.cell()
    info = builders.run(builders.plan([cell]))
    assert not [text for text in texts(info, [builders.repetition(cell, retransmits=(1, 0))]) if "etransmits" in text]
    twice = replace(info, plan=replace(info.plan, repeat=2))
    measured = [builders.repetition(cell, retransmits=(33, again), number=number) for number, again in ((1, 1), (2, 0))]
    said = finding(twice, measured, "Retransmits in all").text
    assert said.startswith("Retransmits in all measurement intervals together: 34, 1 in ")
    assert said.endswith(" segments, the mean of the repetitions.")
