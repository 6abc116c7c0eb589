"""Ping-pong and blast in the form of a lab's page: its table, its findings, its chart."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import builders
import pytest
from message_runs import BLAST, PING, Rows, finding, measured, results, rows_of, said

from rigctl.analysis.views.messages import MessageResult, message_results
from rigctl.findings import Severity, Weight
from rigctl.records import Datagrams, Pair, Repetition, Retest, RunInfo, Status
from rigctl.report.blocks import Chart, Charts, Document
from rigctl.report.charts.plot import Line
from rigctl.report.document import document
from rigctl.report.printers.html import page
from rigctl.report.sections.messages import keys, lines, message_chart, table

BACK = Pair("cork", "dublin")


def varied(rows: Rows, *settings: dict[str, Any]) -> tuple[RunInfo, list[Repetition]]:
    """A ping-pong whose tests have other settings, one for each row."""
    info, repetitions = measured("pingpong", rows)
    cells = tuple(builders.asking(cell, **own) for cell, own in zip(info.plan.cells, settings, strict=True))
    return replace(info, plan=replace(info.plan, cells=cells)), repetitions


def charts_of(of: Document) -> list[Chart]:
    blocks = [block for section in of.sections for block in section.blocks if isinstance(block, Charts)]
    return [chart for block in blocks for chart in block.charts]


class TestTable:
    def test_the_ping_pong_table_of_the_page_comes_out(self) -> None:
        first, second = rows_of(results("pingpong", PING))
        assert [first[f"Elapsed {nth}"] for nth in ("1st", "2nd", "3rd", "4th", "5th")] == [
            "14.19", "14.18", "14.12", "14.23", "14.14",
        ]  # fmt: skip
        assert (first["Size"], first["Iterations"], first["Mean"], first["RTT mean"]) == ("1", "100000", "14.17", "142")
        assert (second["Mean"], second["RTT mean"]) == ("10.33", "10330")
        assert (first["Variation"], second["Variation"]) == ("34", "496")

    def test_a_number_keeps_its_value_beside_its_text(self) -> None:
        # The page has AVG 14.172, Variation 0.034, RTT 141.72.
        made = table(results("pingpong", PING))
        by_title = dict(zip((column.title for column in made.columns), made.rows[0].entries, strict=True))
        assert by_title["RTT mean"].value == pytest.approx(141.72)
        assert by_title["Variation"].value == pytest.approx(33.6)
        assert by_title["Mean"].value == pytest.approx(14.172)

    def test_a_column_of_numbers_has_one_number_of_decimals(self) -> None:
        for test, rows in (("pingpong", PING), ("blast", BLAST)):
            made = table(results(test, rows))
            for number, column in enumerate(made.columns):
                texts = [row.entries[number].text for row in made.rows]
                assert len({len(text.partition(".")[2]) for text in texts}) == 1, (column.title, texts)

    def test_the_blast_table_of_the_page_comes_out(self) -> None:
        first, second = rows_of(results("blast", BLAST))
        assert (first["log2(size)"], second["log2(size)"]) == ("0.000", "16.585")
        assert (first["Mean"], first["Throughput"]) == ("1.692", "591,017")
        assert (second["Mean"], second["Throughput"]) == ("835.742", "11,762,482")
        assert second["Ceiling"] == f"{12_500_000 * 1448 / 1538:,.0f}"
        assert second["Efficiency"] == "99.9"

    def test_messages_that_may_not_share_a_frame_have_a_ceiling_of_their_own(self) -> None:
        info, repetitions = measured("blast", BLAST[:1])
        cell = builders.asking(info.plan.cells[0], nodelay=True)
        (result,) = message_results(replace(info, plan=replace(info.plan, cells=(cell,))), repetitions)
        assert result.ceiling_bps == pytest.approx(1e8 * 1 / 91)  # 1 + 52 + 18 + 20 bytes of wire for each

    def test_a_single_repetition_has_its_time_alone(self) -> None:
        made = table(results("blast", [(1024, 1000, (0.0872,)), (65536, 1000, (5.573,))]))
        assert [column.title for column in made.columns][4:6] == ["Elapsed", "Throughput"]
        assert made.legend == ()

    def test_of_more_repetitions_than_fit_a_page_the_mean_stays(self) -> None:
        titles = rows_of(results("pingpong", [(1, 100, (1.0, 1.1) * 8)]))[0].keys()
        assert not [title for title in titles if title.startswith("Elapsed")]
        assert {"Mean", "Variation"} <= titles

    def test_what_failed_is_a_dash_with_its_reason(self) -> None:
        info, repetitions = measured("pingpong", PING)
        why = "dublin -> cork: 7 of 1,000 messages in its 60 s. Give it a longer duration, or request fewer"
        failed = [
            replace(repetition, status=Status.FAILED, reason=why) if repetition.cell == 2 else repetition
            for repetition in repetitions
        ]
        made = table(message_results(info, failed))
        assert (made.rows[1].entries[-1].text, made.rows[1].entries[-1].value) == ("–", None)
        assert not made.rows[1].counted
        assert made.notes[0] == f"Test 2, repetition 1: failed: {why}."
        assert made.rows[1].notes == (1, 2, 3, 4, 5)
        lacking = finding(info, failed, "1 of 2 tests failed")
        assert why in lacking.text
        assert (lacking.weight, lacking.subject.names) == (Weight.FAILED, ("2",))
        assert table(message_results(info, [])).notes[0] == "Test 1 was not measured."

    def test_a_run_without_any_result_says_so_first(self) -> None:
        info, _ = measured("pingpong", PING)
        made = document(info, [])
        assert made.answer == "No test was measured."
        assert made.findings[0].level is Severity.ERROR


class TestFindings:
    def test_the_first_is_what_a_ping_pong_takes(self) -> None:
        info, repetitions = measured("pingpong", PING)
        first = document(info, repetitions).findings[0]
        assert first.text == (
            "A round trip of 1 byte takes 142 µs on average (median 142 µs, 99 % within 142 µs); one of 2K takes "
            "10.3 ms (median 10 ms, 99 % within 11.6 ms)."
        )
        assert first.numbers["app_rtt_mean_us"] == pytest.approx(141.72)
        assert (first.weight, first.subject.names) == (Weight.ANSWER, ("1",))

    def test_of_several_variants_the_fastest_is_named_and_the_others_follow(self) -> None:
        rows = [(1, 100, (0.02,)), (1, 100, (0.01,)), (1, 100, (0.03,))]
        info, repetitions = varied(rows, {}, {"busy_poll": True}, {"busy_poll": False})
        first, *rest = document(info, repetitions).findings
        assert first.text.startswith("A round trip of 1 byte takes 100 µs on average (busy polling) (median 100 µs")
        assert first.subject.names == ("2",)
        beside = [made for made in rest if made.weight is Weight.COMPARISON]
        assert [(made.text, made.subject.names) for made in beside] == [
            ("With polling default, a round trip of 1 byte takes 200 µs.", ("1",)),
            ("With no busy polling, a round trip of 1 byte takes 300 µs.", ("3",)),
        ]

    def test_sizes_whose_repetitions_differ_are_named(self) -> None:
        info, repetitions = measured(
            "pingpong", [(1024, 100, (1.0, 1.0)), (65536, 100, (1.0, 2.0)), (1, 9, (0.1, 0.13))]
        )
        noisy = finding(info, repetitions, "vary")
        assert noisy.text == "Repetitions vary by more than 5 % of their mean in test 2 (33 %) and test 3 (13 %)."
        assert noisy.remedy == "Measure them again with `retest: {when: variation > 5%}`."
        assert (noisy.weight, noisy.subject.names) == (Weight.SUSPECT, ("2", "3"))

    def test_of_many_the_worst_three_are_named(self) -> None:
        rows = [(size, 100, (1.0, 1.0 + size / 10)) for size in range(2, 8)]
        text = finding(*measured("pingpong", rows), "vary").text
        assert text == (
            "Repetitions vary by more than 5 % of their mean in 6 tests, most in test 6 (26 %), test 5 (23 %) and "
            "test 4 (20 %)."
        )

    def test_a_run_that_measures_them_again_has_no_such_finding(self) -> None:
        info, repetitions = measured("pingpong", [(1, 9, (0.1, 0.13))])
        again = replace(info, plan=replace(info.plan, retest=Retest(0.05, 3)))
        assert not [text for text in said(again, repetitions) if "vary" in text]

    def test_where_a_blast_converges(self) -> None:
        rows = [(1, 1000, (1.0, 1.0)), (1024, 1000, (0.0872, 0.0872)), (65536, 1000, (5.573, 5.573))]
        assert said(*measured("blast", rows))[0] == (
            "The highest throughput is 11,759,555 byte/s, with messages of 64K, 99.9 % of the ceiling; from 1K on it "
            "stays within 1 % of that."
        )

    def test_datagrams_that_did_not_come_back_are_counted(self) -> None:
        info, repetitions = varied([(64, 100, (0.01,))], {"transport": "udp"})
        flow = repetitions[0].flows[0]
        assert flow.sender is not None
        lossy = replace(flow, sender=replace(flow.sender, datagrams=Datagrams(102)))
        lost = finding(info, [replace(repetitions[0], flows=(lossy,))], "come back")
        assert lost.text == (
            "Test 1: 2 datagrams of 64 bytes did not come back within a second; the round trips are of those that did."
        )
        assert (lost.weight, lost.numbers) == (Weight.LOSS, {"unanswered": 2})


class TestChart:
    @pytest.mark.parametrize(("test", "rows"), [("pingpong", PING), ("blast", BLAST)])
    def test_the_page_has_table_chart_and_method(self, test: str, rows: Rows) -> None:
        text = page(document(*measured(test, rows)))
        assert text.count("<svg") == 1
        assert ("Round-trip time against message size" in text) == (test == "pingpong")
        assert ("log2(size)" in text) == (test == "blast")
        assert "on the sender's clock" in text or "on the sender&#39;s clock" in text

    def test_one_size_alone_is_not_drawn(self) -> None:
        assert message_chart(lines(results("pingpong", PING[:1])), trips=True) is None

    def test_one_line_needs_no_legend(self) -> None:
        drawn = lines(results("pingpong", PING))
        assert [line.name for line in drawn] == [""]
        assert keys(drawn) == ()

    def test_each_setting_that_varies_besides_the_size_has_a_line_and_a_key_of_its_own(self) -> None:
        rows = [(1, 100, (0.01,)), (1, 100, (0.02,)), (1024, 100, (0.03,)), (1024, 100, (0.04,))]
        own = {"transport": "udp", "nodelay": True}
        info, repetitions = varied(rows, {}, own, {}, own)
        drawn = lines(message_results(info, repetitions))
        assert [line.name for line in drawn] == ["TCP, nodelay default", "UDP, nodelay"]
        assert [sizes(line.results) for line in drawn] == [[1, 1024], [1, 1024]]
        assert [key.name for key in keys(drawn)] == [line.name for line in drawn]
        chart = message_chart(drawn, trips=True)
        assert chart is not None
        means = [mark for mark in chart.plot.panels[0].marks if isinstance(mark, Line) and mark.dots]
        assert [(mark.colour, [size for size, _ in mark.points]) for mark in means] == [
            ("s1", [1, 1024]), ("s2", [1, 1024]),
        ]  # fmt: skip

    def test_a_line_goes_through_its_sizes_in_rising_order(self) -> None:
        (line,) = lines(results("pingpong", [(64, 9, (1.0,)), (1, 9, (1.0,)), (8, 9, (1.0,))]))
        assert sizes(line.results) == [1, 8, 64]

    def test_pairs_and_directions_are_lines(self) -> None:
        info, repetitions = measured("pingpong", PING)
        cells = tuple(replace(cell, pairs=(*cell.pairs, BACK)) for cell in info.plan.cells)
        both = [
            replace(repetition, flows=(*repetition.flows, replace(repetition.flows[0], pair=BACK)))
            for repetition in repetitions
        ]
        found = message_results(replace(info, plan=replace(info.plan, cells=cells)), both)
        assert [line.name for line in lines(found)] == ["dublin → cork", "cork → dublin"]

    def test_a_legend_of_more_lines_than_colours_is_left_out(self) -> None:
        rows = [(1, 9, (1.0,)) for _ in range(40)]
        info, repetitions = varied(rows, *({"window_bytes": 1024 * number} for number in range(1, 41)))
        assert keys(lines(message_results(info, repetitions))) == ()

    def test_its_text_alternative_names_both_ends(self) -> None:
        (chart,) = charts_of(document(*measured("pingpong", PING)))
        assert chart.label == "Mean round trip against message size: 142 µs at 1, 10330 µs at 2K"


def sizes(of: Sequence[MessageResult]) -> list[int]:
    return [result.size for result in of]
