"""Figures, findings and the report of tests that send bursts, through ports whose size is known."""

from dataclasses import replace
from typing import Any

import documents
import pytest
from answers import answer_of, false_statements, untraced
from burst_runs import WIRE_BITS, Port, Sender, cell, measured, run

from rigctl.figures import FIGURES
from rigctl.model.contract import broken_bursts_reason
from rigctl.records import Cell, NicCounters, NodeUsage, Pair, PortSeries, Repetition, RunInfo
from rigctl.records import Port as SwitchPort
from rigctl.report.blocks import tables_in
from rigctl.settings import MAX

SLOW: dict[str, int] = {"n1": WIRE_BITS * 1000}
"""n1 has a link of 1,000 frames a second, the others of 100 Gbit/s."""
FRAME = 1504
PORT = Port(80)


def codes(info: RunInfo, *repetitions: Repetition) -> list[str]:
    return documents.codes(info, repetitions)


def figures(info: RunInfo, *repetitions: Repetition) -> dict[str, Any]:
    """Return the known figures of the first test."""
    values = documents.document(info, repetitions).figures()
    return next(dict(each.figures) for each in values if each.pair is None)


def one(length: int = 200, port: Port = PORT, **how: Any) -> tuple[Cell, Repetition]:
    the_cell = cell(length=length)
    return the_cell, measured(the_cell, port, Sender(length), **how)


def test_a_burst_with_loss_shows_the_buffer_in_frames_and_bytes() -> None:
    the_cell, repetition = one()
    found = figures(run(the_cell, rates_bps=SLOW), repetition)
    assert found["buffer_frames"] == pytest.approx(80, abs=1)
    assert found["buffer_bytes"] == pytest.approx(found["buffer_frames"] * FRAME)
    assert found["buffer_error_frames"] >= 1
    assert (found["bursts"], found["bursts_lossless"], found["burst_length"], found["burst_frames"]) == (3, 0, 200, 200)
    assert found["burst_loss_pct"] == pytest.approx(60, abs=0.6)
    assert found["burst_drain_mbps"] == pytest.approx(WIRE_BITS / 1000)
    assert "buffer_least_frames" not in found


def test_bursts_without_loss_show_a_least_buffer_only() -> None:
    the_cell, repetition = one(50)
    found = figures(run(the_cell, rates_bps=SLOW), repetition)
    assert found["buffer_least_frames"] == pytest.approx(50, abs=1)
    assert "buffer_frames" not in found
    assert found["burst_loss_pct"] == 0


PAUSED = {"rx_pause": 7}
CARRYING = SwitchPort("switch", "1/1", node="n2")
READ = PortSeries("switch", "1/1", "snmp", {"t_ns": [1, 2], "out_pause": [5, 9]})
ASKED = PortSeries("switch", "1/1", "snmp", {"t_ns": [1, 2], "in_pause": [5, 6]})


@pytest.mark.parametrize(
    ("how", "series", "code"),
    [
        ({"overflow": 3}, (), "bursts-socket-full"),
        ({"overflow": None}, (), None),
        ({"nic": {"rx_pause": 7}}, (), "bursts-paused"),
        ({"nic": {"tx_pause": 1}}, (), None),
        ({}, (READ,), "bursts-paused"),
        ({}, (ASKED,), None),
        ({"overflow": 9, "nic": {"rx_pause": 7}}, (), "bursts-paused"),
    ],
)
@pytest.mark.parametrize("length", [50, 200])
def test_no_buffer_is_claimed_where_something_else_may_lose_or_hold_back_frames(
    how: dict[str, Any], series: tuple[PortSeries, ...], code: str | None, length: int
) -> None:
    """A full socket, a socket that is not counted, pause frames to a sender or from a receiver, by card and by port."""
    the_cell, repetition = one(length, **how)
    info = run(the_cell, rates_bps=SLOW)
    info = replace(info, plan=replace(info.plan, ports=(CARRYING,)))
    repetition = replace(repetition, counters=series)
    found = figures(info, repetition)
    assert not {"buffer_frames", "buffer_bytes", "buffer_least_frames"} & found.keys()
    assert code is None or code in codes(info, repetition)


def test_counters_that_did_not_rise_hide_nothing() -> None:
    the_cell, repetition = one(nic={"rx_pause": 0, "tx_pause": 0})
    assert "buffer_frames" in figures(run(the_cell, rates_bps=SLOW), repetition)


def curve(*lengths: int, port: Port = PORT) -> tuple[RunInfo, list[Repetition]]:
    cells = [cell(number, length) for number, length in enumerate(lengths, 1)]
    return run(*cells, rates_bps=SLOW), [
        measured(own, port, Sender(own_length)) for own, own_length in zip(cells, lengths, strict=True)
    ]


def test_the_answer_is_the_buffer_and_the_longest_burst_without_loss() -> None:
    info, repetitions = curve(20, 60, 80, 90, 160)
    made = documents.document(info, repetitions)
    answer = answer_of(made)
    assert "80.0 ± 1.0 frames" in answer.text or "79.9 ± 1.0 frames" in answer.text
    assert "bursts of up to 80 lose nothing" in answer.text
    assert not false_statements(answer)
    assert not untraced(made, info.plan)
    shown = documents.finding(info, repetitions, "buffer-shown")
    assert "90–160 datagrams" in shown.text


@pytest.mark.parametrize(("gap_ns", "brief"), [(1_000, "buffer 117.1 KiB"), (500_000, "buffer ≥ 110.8 KiB")])
def test_in_few_words_a_buffer_with_a_large_error_is_what_it_holds_at_least(gap_ns: int, brief: str) -> None:
    lengths = (75, 300) if gap_ns < 500_000 else (150, 300)
    cells = [cell(number, length) for number, length in enumerate(lengths, 1)]
    repetitions = [measured(each, PORT, Sender(length, gap_ns)) for each, length in zip(cells, lengths, strict=True)]
    assert answer_of(documents.document(run(*cells, rates_bps=SLOW), repetitions)).brief == brief


def test_without_any_loss_the_answer_is_at_least_so_much() -> None:
    info, repetitions = curve(20, 40)
    assert "≥ 40.0 frames" in answer_of(documents.document(info, repetitions)).text
    assert "buffer-at-least" in codes(info, *repetitions)


def test_bursts_that_are_no_faster_than_the_port_say_so() -> None:
    the_cell = cell(length=50)
    info, repetition = run(the_cell), measured(the_cell, PORT, Sender(50, PORT.frame_ns))
    assert {"bursts-not-faster"} <= set(codes(info, repetition))


def test_senders_that_leave_gaps_say_so() -> None:
    the_cell = cell(length=300)
    info, repetition = run(the_cell, rates_bps=SLOW), measured(the_cell, PORT, Sender(300, 200_000))
    assert "bursts-spaced" in codes(info, repetition)


def test_a_search_has_the_buffer_of_its_trials_with_loss() -> None:
    the_cell = cell(length=MAX)
    lengths = (64, 256, 80, 81)
    trials = [
        replace(measured(the_cell, PORT, Sender(length), number=number), load=length)
        for number, length in enumerate(lengths, 1)
    ]
    info = run(the_cell, rates_bps=SLOW)
    made = documents.document(info, trials)
    assert "bursts of up to 80 lose nothing" in answer_of(made).text
    assert {(row["search_lower"], row["search_upper"], row["search_conditional_mbps"]) for row in made.pairs} == {
        (80, 81, None)
    }
    (table,) = tables_in(made.results[0].blocks)
    texts = {column.title: entry.text for column, entry in zip(table.columns, table.rows[0].entries, strict=True)}
    assert texts["Length"] == "80"
    assert float(texts["Buffer"]) == pytest.approx(80, abs=0.5)


def test_two_busy_ports_have_a_buffer_each() -> None:
    pairs = (Pair("n2", "n1"), Pair("n3", "n4"))
    the_cell = replace(cell(length=200), pairs=pairs)
    shared = measured(replace(the_cell, pairs=pairs[:1]), Port(40), Sender(200))
    other = measured(replace(the_cell, pairs=pairs[1:]), Port(60), Sender(200))
    repetition = replace(shared, flows=(*shared.flows, *other.flows))
    info = run(the_cell, rates_bps={**SLOW, "n4": SLOW["n1"]})
    assert figures(info, repetition)["buffer_frames"] == pytest.approx(50, abs=1)
    assert "2 ports at once (to n1 and n4): a buffer of" in answer_of(documents.document(info, [repetition])).text


@pytest.mark.parametrize(
    ("room", "said"), [(80, ", the same with 2 busy ports"), (40, "frames of 1504 bytes (58.5 KiB) with 2 busy ports")]
)
def test_a_buffer_that_busy_ports_share_is_told(room: int, said: str) -> None:
    alone, both = cell(1, 200), replace(cell(2, 200), pairs=(Pair("n2", "n1"), Pair("n3", "n4")))
    first = measured(replace(both, pairs=both.pairs[:1]), Port(room), Sender(200))
    other = measured(replace(both, pairs=both.pairs[1:]), Port(room), Sender(200))
    info = run(alone, both, rates_bps={**SLOW, "n4": SLOW["n1"]})
    made = documents.document(
        info, [measured(alone, PORT, Sender(200)), replace(first, flows=(*first.flows, *other.flows))]
    )
    assert said in answer_of(made).text
    assert not untraced(made, info.plan)


@pytest.mark.parametrize(("late_ns", "pct", "apart"), [(0, 100, False), (60_000, 70, False), (150_000, 25, True)])
def test_bursts_that_fill_ports_one_after_another_say_so(late_ns: int, pct: int, apart: bool) -> None:
    the_cell = replace(cell(length=200), pairs=(Pair("n2", "n1"), Pair("n3", "n4")))
    first = measured(replace(the_cell, pairs=the_cell.pairs[:1]), Port(40), Sender(200))
    other = measured(replace(the_cell, pairs=the_cell.pairs[1:]), Port(40), Sender(200, late_ns=late_ns))
    repetition = replace(first, flows=(*first.flows, *other.flows))
    info = run(the_cell, rates_bps={**SLOW, "n4": SLOW["n1"]})
    assert figures(info, repetition)["bursts_together_pct"] == pytest.approx(pct, abs=1)
    assert ("bursts-apart" in codes(info, repetition)) == apart
    assert "bursts_together_pct" not in figures(run(cell()), measured(cell(), Port(40), Sender(200)))


def test_a_stream_that_shares_its_port_has_no_buffer_of_its_own() -> None:
    the_cell = cell(length=200, pairs=2)
    repetition = measured(the_cell, PORT, Sender(200), Sender(200))
    values = documents.document(run(the_cell, rates_bps=SLOW), [repetition]).figures()
    by_pair = {each.pair: each.figures for each in values}
    assert "buffer_frames" in by_pair[None]
    assert all("buffer_frames" not in own for pair, own in by_pair.items() if pair is not None)


@pytest.mark.parametrize(
    ("nic", "refused", "reason"),
    [
        ({"tx_packets": 600, "queue_drops": 0, "tx_dropped": 0}, 0, None),
        ({}, 0, None),
        ({"tx_packets": 600}, 4, "n2: its own queue refused 4 datagrams. Send shorter bursts"),
        ({"tx_packets": 600, "queue_drops": 3}, 0, "n2: its own queue or card dropped 3 frames (queue_drops)"),
        ({"tx_packets": 600, "tx_dropped": 2}, 0, "n2: its own queue or card dropped 2 frames (tx_dropped)"),
        ({"tx_packets": 599}, 0, "n2: its card sent 599 frames of 600 datagrams"),
    ],
)
def test_bursts_that_their_sender_did_not_send_as_a_whole_are_invalid(
    nic: dict[str, int], refused: int, reason: str | None
) -> None:
    the_cell, repetition = one()
    (flow,) = repetition.flows
    assert flow.sender is not None
    assert flow.sender.datagrams is not None
    sender = replace(flow.sender, datagrams=replace(flow.sender.datagrams, refused=refused))
    usage = [NodeUsage("n2", nic=NicCounters(**nic)), NodeUsage("n1", nic=NicCounters(tx_packets=0))]
    found = broken_bursts_reason(the_cell, [replace(flow, sender=sender)], usage)
    assert (found is None) if reason is None else found is not None and found.startswith(reason)


def test_the_figures_of_bursts_are_of_their_kind_only() -> None:
    named = [figure for figure in FIGURES.values() if figure.name.startswith(("buffer_", "burst_loss", "burst_drain"))]
    assert len(named) == 6
    assert all(figure.kinds == ("burst",) for figure in named)
