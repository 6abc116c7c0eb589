"""Counters beside the flows: rows, sentences and chart lines, from a rig on paper."""

from collections.abc import Sequence
from dataclasses import replace

import builders
import documents
import pytest
from switched import SECOND, Paper, several

from rigctl.analysis.rows.counters import Balances
from rigctl.analysis.rows.frames import load
from rigctl.analysis.run_view import RunView
from rigctl.findings import Severity, Weight
from rigctl.records import Pair, Repetition, RunInfo
from rigctl.report.blocks import Folded, Part, Table
from rigctl.report.document import document
from rigctl.report.printers.html import page
from rigctl.report.sections.counters import MOST_ROWS, missing_text, part


def part_of(info: RunInfo, repetitions: Sequence[Repetition]) -> Part | None:
    return part(RunView(info, repetitions))


def made(paper: Paper, **fields: object) -> Part:
    found = part_of(paper.run(), [replace(paper.repetition(), **fields)])  # type: ignore[arg-type]
    assert found is not None
    return found


def sentences(found: Part) -> tuple[str, ...]:
    return tuple(finding.text for finding in found.findings)


def said(paper: Paper, **fields: object) -> tuple[str, ...]:
    return sentences(made(paper, **fields))


def table_of(found: Part, summary: str) -> Table:
    """The table that is folded behind a summary that begins so."""
    folded = [block for block in found.details[0].blocks if isinstance(block, Folded)]
    (table,) = next(block.blocks for block in folded if block.summary.startswith(summary))
    assert isinstance(table, Table)
    return table


def rows_by_test(found: Part) -> list[dict[str, str]]:
    return documents.rows_of(table_of(found, "Test by test"))


def point_rows(found: Part) -> list[dict[str, str]]:
    return documents.rows_of(table_of(found, "Port by port"))


def test_one_test_is_reported_as_rates() -> None:
    assert said(Paper()) == (
        "The trunk's counters show 1.882 Gbit/s, the flows with their headers 1.882 Gbit/s: a difference of less than "
        "0.1 %.",
    )


def test_without_a_trunk_the_senders_ports_are_summed() -> None:
    found = made(Paper(trunk=False))
    assert sentences(found)[0].startswith("The switch ports' counters show 1.882 Gbit/s")
    folded = found.details[0].blocks[1]
    assert isinstance(folded, Folded)
    assert folded.summary == "Test by test: the switch ports of the senders"


def test_many_tests_are_reported_as_octets_of_the_whole_run() -> None:
    info, repetitions = several(3, Paper())
    found = part_of(info, repetitions)
    assert found is not None
    assert sentences(found) == (
        "Over the whole run the trunk's counters show 7.058 GB, the flows with their headers 7.058 GB: "
        "a difference of less than 0.1 %.",
    )
    rows = rows_by_test(found)
    assert [row["Test"] for row in rows] == ["1", "2", "3"]
    assert {row["Difference"] for row in rows} == {"+0.00"}


def test_other_traffic_is_flagged_in_words_and_row() -> None:
    found = made(Paper(foreign_octets={("up", "out"): 50_000_000}))
    assert sentences(found)[1] == (
        "Counters and flows differ by more than 1 % in test 1 (+2.13 %): more than the flows with their headers; "
        "other traffic passed here, or a counter is wrong."
    )
    assert (found.findings[1].weight, found.findings[1].level) == (Weight.SUSPECT, Severity.WARNING)
    (difference,) = documents.entries(table_of(found, "Test by test"), "Difference")
    assert (difference.text, difference.mark) == ("+2.13 !", "warn")
    assert difference.value == pytest.approx(2.13, abs=0.01)
    flagged = [row["Interface or port"] for row in point_rows(found) if row["Difference"].endswith("!")]
    assert flagged == ["a up", "b up"]


def test_traffic_at_one_port_only_is_not_taken_for_the_trunks() -> None:
    found = made(Paper(foreign_octets={("p3", "out"): 50_000_000}))
    assert "At single ports, counters and flows differ by more than 1 % in test 1." in sentences(found)
    assert not rows_by_test(found)[0]["Difference"].endswith("!")


def test_a_cache_too_coarse_for_a_test_is_reported_with_its_time() -> None:
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
    found = part_of(info, cached)
    assert found is not None
    coarse = [sentence for sentence in sentences(found) if sentence.startswith("No difference")]
    assert coarse == [
        "No difference is given for 12 of 12 tests: the counters are too coarse, "
        "refreshed every 15 s or less often; the flows took 2 s."
    ]
    assert {row["Counted"] for row in rows_by_test(found)} == {"–"}


def _at(port: str, name: str, t_ns: int, repetitions: list[Repetition]) -> int:
    refreshed_ns = t_ns - t_ns % (15 * SECOND)
    before = 10_000
    for repetition in repetitions:
        one = next(one for one in repetition.counters if one.port == port)
        for at_ns, value in zip(one.columns["t_ns"], one.columns[name], strict=True):
            if at_ns <= refreshed_ns:
                before = value
    return before


def test_a_switch_that_did_not_answer_is_reported_once() -> None:
    why = "cisco did not answer at 10.0.0.2 (SNMP)"
    assert missing_text([Paper().repetition(counters_missing=(why,))] * 3) == [f"{why}: no counters in 3 measurements."]
    assert said(Paper(), counters=(), counters_missing=(why,))[-1] == f"{why}: no counters in 1 measurement."


def test_retransmits_are_attributed_to_the_port_that_lost_them() -> None:
    assert said(Paper(losses={(0, "switch out"): 300}))[-1] == (
        "Of about 300 retransmits from the first byte to the last, about 300 (100 %) were lost at switch b, port p3 "
        "(its octets in and out differ by as much)."
    )


def test_of_a_few_retransmits_nothing_is_said() -> None:
    assert not [text for text in said(Paper(losses={(0, "switch out"): 1})) if "retransmit" in text]


def test_what_was_lost_before_the_counters_explains_that_they_show_less() -> None:
    whole, *_ = said(Paper(losses={(0, "switch in"): 2000}))
    assert whole.endswith(" %, no more than what was lost before these counters and retransmitted.")


def test_what_cannot_be_attributed_is_called_unknown() -> None:
    sentence = said(Paper(nics=False, losses={(0, "queue"): 300}), counters=(), counters_missing=("a: silent",))[-1]
    assert sentence == (
        "Of about 300 retransmits from the first byte to the last, where about 300 were lost is unknown: "
        "no counter shows it."
    )


def test_many_points_are_summed_up() -> None:
    pairs = tuple(Pair(f"n{at}", f"n{at + 12}") for at in range(1, 13))
    sentence = said(Paper(pairs, mbps=600, losses={(at, "switch out"): 100 + at for at in range(12)}))[-1]
    assert sentence.startswith(
        "Of about 1266 retransmits from the first byte to the last, about 111 (9 %) were lost at switch b, port p24,"
    )
    assert "about 936 at 9 other points" in sentence


def test_interfaces_alone_show_something_only_where_segments_were_lost() -> None:
    quiet, lossy = Paper(), Paper(losses={(0, "cable out"): 300})
    assert part_of(quiet.run(), [quiet.repetition(counters=())]) is None
    found = part_of(lossy.run(), [lossy.repetition(counters=())])
    assert found is not None
    assert "between n1's interface and n3's interface" in sentences(found)[-1]


def test_a_run_without_any_counters_has_no_section() -> None:
    info, repetitions = builders.gigablox()
    assert part_of(info, repetitions) is None


def test_a_repetition_that_was_not_measured_is_left_out() -> None:
    paper = Paper()
    found = part_of(paper.run(), [paper.repetition(), builders.failed(paper.cell, repetition=2)])
    assert found is not None
    assert len(rows_by_test(found)) == 1


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
    assert found is not None
    assert sentences(found)[0].endswith("a difference of less than 0.1 %.")


def test_counting_points_are_listed_in_the_order_of_the_path() -> None:
    rows = point_rows(made(Paper(pairs=(Pair("n1", "n2"),))))
    data = [(row["Interface or port"], row["Direction"]) for row in rows if row["Carries"] == "data"]
    assert data == [
        ("n1's interface", "out"),
        ("a p1", "in"),
        ("a up", "out"),
        ("b up", "in"),
        ("b p2", "out"),
        ("n2's interface", "in"),
    ]


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


def test_the_page_has_the_sentences_the_tables_and_the_chart() -> None:
    paper = Paper(losses={(0, "switch out"): 300})
    html = page(document(paper.run(), [paper.repetition()]))
    assert "Counters of switches and interfaces" in html
    assert "were lost at switch b, port p3" in html
    assert "Port by port, over the whole run" in html
    assert "trunk, a up out" in html
    without = page(document(*builders.gigablox(1.0)))
    assert "Counters of switches and interfaces" not in without


def test_counters_that_disagree_come_before_where_segments_were_lost() -> None:
    paper = Paper(losses={(0, "switch out"): 300}, foreign_octets={("up", "out"): 50_000_000})
    texts = documents.texts(paper.run(), [paper.repetition()])
    flagged, lost, shown = (
        next(at for at, text in enumerate(texts) if words in text)
        for words in ("differ by more than 1 %", "retransmits from the first byte", "The trunk's counters show")
    )
    assert flagged < lost < shown


def test_entries_have_their_values_in_the_units_of_their_columns() -> None:
    found = made(Paper())
    table = table_of(found, "Test by test")
    (counted,) = documents.entries(table, "Counted")
    assert counted.value == pytest.approx(1882, rel=0.01)
    octets = documents.entries(table_of(found, "Port by port"), "Counted")
    assert [entry.text for entry in octets] == [f"{entry.value:.1f}" for entry in octets]


def test_more_rows_than_a_page_shows_are_counted() -> None:
    info, repetitions = several(MOST_ROWS + 2, Paper(duration_s=0.5))
    found = part_of(info, repetitions)
    assert found is not None
    table = table_of(found, "Test by test")
    assert len(table.rows) == MOST_ROWS
    assert "2 more tests are in the export." in table.legend
