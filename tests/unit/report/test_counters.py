"""Counters beside the flows: rows, sentences and chart lines, from a rig on paper."""

from dataclasses import replace

import builders
import pytest
from rigctl.report.sections.counters.section import CountersSection, missing_words, port_rates, section
from switched import SECOND, Paper

from rigctl.analysis.balances import Balances
from rigctl.analysis.frames import load
from rigctl.records import Pair, Repetition, RunInfo
from rigctl.report.printers.html import render


def said(paper: Paper, **fields: object) -> tuple[str, ...]:
    return made(paper, **fields).sentences


def made(paper: Paper, **fields: object) -> CountersSection:
    found = section(paper.run(), [replace(paper.repetition(), **fields)])  # type: ignore[arg-type]
    assert found is not None
    return found


def several(count: int, paper: Paper, gap_s: float = 0.5) -> tuple[RunInfo, list[Repetition]]:
    """A run of `count` cells one after the other; the ports' counters go on from cell to cell."""
    papers = [
        replace(paper, number=at + 1, start_ns=paper.start_ns + round(at * (paper.duration_s + gap_s) * SECOND))
        for at in range(count)
    ]
    one = papers[0].repetition()
    repetitions = []
    for at, each in enumerate(papers):
        counters = []
        for series in each.repetition().counters:
            first = next(first for first in one.counters if (first.switch, first.port) == (series.switch, series.port))
            columns = {
                name: [value + at * (first.columns[name][-1] - first.columns[name][0]) for value in values]
                if name not in ("t_ns", "discontinuity")
                else values
                for name, values in series.columns.items()
            }
            counters.append(replace(series, columns=columns))
        repetitions.append(each.repetition(counters=tuple(counters)))
    plan = replace(paper.plan(), cells=tuple(each.cell for each in papers))
    return builders.run(plan), repetitions


def test_one_test_is_told_as_rates() -> None:
    assert said(Paper()) == (
        "The trunk's counters say 1.882 Gbit/s, the flows and their headers 1.882 Gbit/s: less than 0.1 % apart.",
    )


def test_without_a_trunk_the_senders_ports_are_summed() -> None:
    found = made(Paper(trunk=False))
    assert found.where == "ports"
    assert found.sentences[0].startswith("The switch ports' counters say 1.882 Gbit/s")


def test_many_tests_are_told_as_octets_of_the_whole_run() -> None:
    info, repetitions = several(3, Paper())
    found = section(info, repetitions)
    assert found is not None
    assert found.sentences == (
        "Over the whole run the trunk's counters say 7.058 GB, the flows and their headers 7.058 GB: "
        "less than 0.1 % apart.",
    )
    assert [row.number for row in found.cells] == [1, 2, 3]
    assert {row.difference for row in found.cells} == {"+0.00"}


def test_other_traffic_is_flagged_in_words_and_row() -> None:
    found = made(Paper(foreign_octets={("up", "out"): 50_000_000}))
    assert found.sentences[1] == (
        "More than 1 % apart in test 1 (+2.13 %): more than the flows and their headers: "
        "other traffic passed here, or a counter is wrong."
    )
    assert found.cells[0].flagged
    assert [row.point for row in found.points if row.flagged] == ["a up", "b up"]


def test_traffic_at_one_port_only_is_told_apart_from_the_trunks() -> None:
    found = made(Paper(foreign_octets={("p3", "out"): 50_000_000}))
    assert "At single ports more than 1 % apart in test 1." in found.sentences
    assert not found.cells[0].flagged


def test_a_cache_too_coarse_for_a_test_is_said_with_its_time() -> None:
    info, repetitions = several(12, Paper(duration_s=2))
    cached = []
    for repetition in repetitions:
        series = []
        for one in repetition.counters:
            columns = dict(one.columns)
            # Refreshed at multiples of 15 s: each reading shows what was true at the last of them.
            for name, values in one.columns.items():
                if name not in ("t_ns", "discontinuity"):
                    columns[name] = [_at(one.port, name, t_ns, repetitions) for t_ns in one.columns["t_ns"]]
                    assert len(columns[name]) == len(values)
            series.append(replace(one, columns=columns))
        cached.append(replace(repetition, counters=tuple(series)))
    found = section(info, cached)
    assert found is not None
    coarse = [sentence for sentence in found.sentences if sentence.startswith("No difference")]
    assert coarse == [
        "No difference is given for 12 of 12 tests: the counters are too coarse, "
        "refreshed every 15 s or less often; the flows took 2 s."
    ]
    assert not any(row.flagged for row in found.cells)


def _at(port: str, name: str, t_ns: int, repetitions: list[Repetition]) -> int:
    refreshed_ns = t_ns - t_ns % (15 * SECOND)
    before = 10_000
    for repetition in repetitions:
        one = next(one for one in repetition.counters if one.port == port)
        for at_ns, value in zip(one.columns["t_ns"], one.columns[name], strict=True):
            if at_ns <= refreshed_ns:
                before = value
    return before


def test_a_switch_that_did_not_answer_is_said_once() -> None:
    why = "cisco did not answer at 10.0.0.2 (SNMP)"
    assert missing_words([Paper().repetition(counters_missing=(why,))] * 3) == [
        f"{why}: no counters in 3 measurements."
    ]
    assert said(Paper(), counters=(), counters_missing=(why,))[-1] == f"{why}: no counters in 1 measurement."


def test_retransmits_are_put_down_to_the_port_that_lost_them() -> None:
    assert said(Paper(losses={(0, "switch out"): 300}))[-1] == (
        "Of about 300 segments sent again from first byte to last, about 300 (100 %) were lost at switch b, port p3 "
        "(its octets in and out differ by so much)."
    )


def test_what_was_lost_on_the_way_to_the_counters_explains_that_they_hold_less() -> None:
    whole, *_ = said(Paper(losses={(0, "switch in"): 2000}))
    assert whole.endswith("% apart, no more than what was lost on the way there and sent again.")


def test_what_cannot_be_attributed_is_said_so() -> None:
    sentence = said(Paper(nics=False, losses={(0, "queue"): 300}), counters=(), counters_missing=("a: silent",))[-1]
    assert sentence == (
        "Of about 300 segments sent again from first byte to last, where about 300 were lost is not known: "
        "no counter shows it."
    )


def test_many_places_are_summed_up() -> None:
    pairs = tuple(Pair(f"n{at}", f"n{at + 12}") for at in range(1, 13))
    sentence = said(Paper(pairs, mbps=600, losses={(at, "switch out"): 100 + at for at in range(12)}))[-1]
    assert sentence.startswith(
        "Of about 1266 segments sent again from first byte to last, about 111 (9 %) were lost at switch b, port p24,"
    )
    assert "about 828 at 8 other points" in sentence


def test_interfaces_alone_tell_something_only_where_segments_were_lost() -> None:
    quiet, lossy = Paper(), Paper(losses={(0, "cable out"): 300})
    assert section(quiet.run(), [quiet.repetition(counters=())]) is None
    found = section(lossy.run(), [lossy.repetition(counters=())])
    assert found is not None
    assert "between n1's interface and n3's interface" in found.sentences[-1]


def test_a_run_without_any_counters_has_no_section() -> None:
    info, repetitions = builders.gigablox()
    assert section(info, repetitions) is None


def test_a_repetition_that_was_not_measured_is_left_out() -> None:
    paper = Paper()
    found = section(paper.run(), [paper.repetition(), builders.failed(paper.cell, repetition=2)])
    assert found is not None
    assert len(found.cells) == 1


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
    found = section(info, [repetitions[0], replace(repetitions[1], counters=later)])
    assert found is not None
    assert found.sentences[0].endswith("less than 0.1 % apart.")


def test_places_are_listed_in_the_order_of_the_way() -> None:
    rows = made(Paper(pairs=(Pair("n1", "n2"),))).points
    data = [(row.point, row.direction) for row in rows if row.carries == "data"]
    assert data == [
        ("n1's interface", "out"),
        ("a p1", "in"),
        ("a up", "out"),
        ("b up", "in"),
        ("b p2", "out"),
        ("n2's interface", "in"),
    ]


def test_the_chart_has_the_trunks_rate_beside_the_flows() -> None:
    paper = Paper()
    lines = port_rates(paper.plan(), paper.repetition(), 180)
    assert [line.name for line in lines] == ["trunk, a up out"]
    inside = [mbps for t_s, mbps in zip(lines[0].t_s, lines[0].mbps, strict=True) if 1 < t_s < 9]
    assert inside == [pytest.approx(1882, rel=0.01)] * len(inside)
    assert len(inside) >= 7


def test_a_line_of_many_readings_is_made_of_means() -> None:
    paper = Paper()
    (every,), (few,) = (port_rates(paper.plan(), paper.repetition(), most) for most in (180, 3))
    assert len(few.t_s) <= 3 < len(every.t_s)
    assert sum(few.mbps[:-1]) / (len(few.mbps) - 1) == pytest.approx(1882, rel=0.01)


def test_the_chart_of_one_switch_is_the_sum_of_the_senders_ports() -> None:
    paper = Paper(trunk=False)
    (line,) = port_rates(paper.plan(), paper.repetition(), 180)
    assert line.name == "switch ports, sum"
    assert max(line.mbps) == pytest.approx(1882, rel=0.01)


def test_a_switch_that_was_not_read_draws_no_line() -> None:
    paper = Paper()
    assert port_rates(paper.plan(), paper.repetition(counters=()), 180) == []


def test_the_exports_have_the_octets() -> None:
    paper = Paper()
    frames = load(paper.run(), [paper.repetition()])
    (cell,), pairs = frames.derived.cells, frames.derived.pairs
    octets = paper.segments * 1514
    acknowledgements = 2 * (paper.segments // 2) * 66
    assert cell["trunk_octets"] == 2 * octets
    assert cell["trunk_expected_octets"] == pytest.approx(2 * octets, rel=1e-5)
    assert cell["counters_difference_pct"] == pytest.approx(0, abs=0.01)
    assert [row["source_port_octets"] for row in pairs] == [octets, octets]
    assert [row["destination_port_octets"] for row in pairs] == [octets, octets]
    assert acknowledgements < 0.05 * octets


def test_the_exports_of_a_run_without_counters_leave_them_empty() -> None:
    info, repetitions = builders.gigablox()
    frames = load(info, repetitions)
    assert {row["trunk_octets"] for row in frames.derived.cells} == {None}
    assert {row["source_port_octets"] for row in frames.derived.pairs} == {None}


def test_each_repetition_has_its_balance() -> None:
    paper = Paper()
    first, second = paper.repetition(), paper.repetition(repetition=2)
    balances = Balances(paper.run(), [first, second])
    found = balances.of(second)
    assert found is not None
    assert found.repetition is second


def test_the_page_says_it_and_has_the_tables() -> None:
    paper = Paper(losses={(0, "switch out"): 300})
    page = render(paper.run(), [paper.repetition()])
    assert "Counters of switches and interfaces" in page
    assert "were lost at switch b, port p3" in page
    assert "trunk, a up out" in page
    without = render(*builders.gigablox(1.0))
    assert "Counters of switches and interfaces" not in without
