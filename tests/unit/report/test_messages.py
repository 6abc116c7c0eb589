"""Ping-pong and blast in the form of a lab's page: its table, its words, its chart."""

from dataclasses import replace

import builders
import pytest
from message_runs import BLAST, PING, measured, results, rows_of

from rigctl.records import Status
from rigctl.report.printers.html import render
from rigctl.report.sections.messages.chart import message_legend, message_svg
from rigctl.report.sections.messages.table import message_results, message_table, message_words


def test_the_ping_pong_table_of_the_page_comes_out() -> None:
    one, two = rows_of(results("pingpong", PING))
    assert [one[f"Elapsed {nth}"] for nth in ("1st", "2nd", "3rd", "4th", "5th")] == [
        "14.190", "14.180", "14.120", "14.230", "14.140",
    ]  # fmt: skip
    # The page has the sums right and cuts the rest: AVG 14.172, Variation 0.034, RTT 141.72.
    assert (one["Size"], one["Iterations"], one["AVG"], one["RTT"]) == ("1", "100000", "14.172", "141.7")
    assert float(one["Variation"]) == pytest.approx(0.034, abs=0.0006)
    assert (two["AVG"], two["RTT"]) == ("10.330", "10330")
    assert float(two["Variation"]) == pytest.approx(0.496, abs=0.0005)


def test_the_blast_table_of_the_page_comes_out() -> None:
    one, two = rows_of(results("blast", BLAST))
    assert (one["log2(size)"], two["log2(size)"]) == ("0", "16.585")
    assert (one["AVG"], one["Throughput"]) == ("1.692", "591,017")
    assert (two["AVG"], two["Throughput"]) == ("835.742", "11,762,482")
    assert two["Ceiling"] == f"{12_500_000 * 1448 / 1538:,.0f}"
    assert two["Efficiency"] == "99.9"


def test_sizes_whose_repetitions_differ_are_named() -> None:
    said = message_words(results("pingpong", [(1024, 100, (1.0, 1.0)), (65536, 100, (1.0, 2.0)), (1, 9, (0.1, 0.13))]))
    assert said[-1] == (
        "Repetitions of sizes 64K (33 %) and 1 (13 %) vary by more than 5 % of their mean: measure them again before "
        "drawing conclusions."
    )


def test_what_a_ping_pong_takes_is_said_first() -> None:
    said = message_words(results("pingpong", PING[:1]))
    assert said[0].startswith("The round trip of 1 byte takes 141.7 µs on average: half of them up to 141.")


def test_where_a_blast_converges_is_said() -> None:
    rows = [(1, 1000, (1.0, 1.0)), (1024, 1000, (0.0872, 0.0872)), (65536, 1000, (5.573, 5.573))]
    said = message_words(results("blast", rows))
    assert said[0] == "The highest throughput is 11,759,555 byte/s, with messages of 64K, 99.9 % of the ceiling."
    assert said[1] == "From 1K on it stays within 1 % of that."


def test_messages_that_may_not_share_a_frame_have_a_ceiling_of_their_own() -> None:
    info, repetitions = measured("blast", BLAST[:1])
    cell = builders.asking(info.plan.cells[0], nodelay=True)
    (one,) = message_results(replace(info, plan=replace(info.plan, cells=(cell,))), repetitions)
    assert one.ceiling_bps == pytest.approx(1e8 * 1 / 91)  # 1 + 52 + 18 + 20 bytes of wire for each


def test_what_failed_is_a_dash_with_its_reason() -> None:
    info, repetitions = measured("pingpong", PING)
    why = "dublin -> cork: 7 of 1,000 messages in its 60 s. Give it a longer duration, or ask for fewer"
    failed = [replace(one, status=Status.FAILED, reason=why) if one.cell == 2 else one for one in repetitions]
    table = message_table(message_results(info, failed))
    assert table.rows[1].cells[-1] == "–"
    assert not table.rows[1].counted
    assert table.notes[0] == f"Test 2: failed: {why}."
    assert message_words(message_results(info, failed))[-1] == "1 test gave no result that counts; the notes say why."
    assert message_table(message_results(info, [])).notes[0] == "Test 1 was not measured."


@pytest.mark.parametrize(("test", "rows"), [("pingpong", PING), ("blast", BLAST)])
def test_the_page_has_table_chart_and_method(test: str, rows: list[tuple[int, int, tuple[float, ...]]]) -> None:
    info, repetitions = measured(test, rows)
    page = render(info, repetitions)
    assert page.count("<svg") == 1
    assert ("Round-trip time against message size" in page) == (test == "pingpong")
    assert ("log2(size)" in page) == (test == "blast")
    assert "on the sender's clock" in page or "on the sender&#39;s clock" in page


def test_one_size_alone_is_not_drawn() -> None:
    assert message_svg(results("pingpong", PING[:1])) is None
    assert message_legend(results("pingpong", PING)) == []
