"""From the agents' reports to the record of a repetition."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import builders
import pytest
from known import known

from rigctl.measure.orders import channels
from rigctl.protocol.lines import Captured
from rigctl.protocol.report import EndpointReport
from rigctl.records import (
    Cell,
    Datagrams,
    Direction,
    GroupSent,
    MulticastCounts,
    NicCounters,
    NodeUsage,
    Pair,
    Repetition,
    Series,
    Side,
    Status,
    TcpInfo,
)
from rigctl.remote.clocks import ClockOffset, Clocks
from rigctl.runner.outcome import EndReport, Measurement, combine_status, make_repetition, measurement, write_captures
from rigctl.runner.schedule import MeasurementOrder
from rigctl.settings import ITERATIONS, Settings

SECOND = 10**9
CELL = builders.cell(pairs=(Pair("a", "b"),), duration_s=1.0)
ORDER = MeasurementOrder(CELL, 1, 1)
CLOCKS = Clocks({"a": ClockOffset(0, 1000), "b": ClockOffset(5000, 3000)})
FORKED = replace(CELL, pairs=(Pair("a", "b"), Pair("a", "c")))
OF_THREE = Clocks({**CLOCKS.offsets, "c": ClockOffset(0, 0)})


def report(first_ns: int = 0, last_ns: int = SECOND, sent: int = 125_000_000, **usage: Any) -> EndpointReport:
    """One flow that moved `sent` bytes evenly, sampled at both ends."""
    columns = {"t_ns": [first_ns, last_ns], "bytes": [0, sent]}
    side = Side(sent, first_ns, last_ns, tcp=TcpInfo(mss=1448), series=Series(columns))
    return EndpointReport(1, NodeUsage("", **{"span_us": SECOND // 1000, "cpus": 4} | usage), (side,))


def measured(
    reports: dict[tuple[str, int], EndpointReport], cell: Cell = CELL, clocks: Clocks | None = CLOCKS, at_ns: int = 0
) -> Measurement:
    return measurement(cell, channels([cell], lambda: "0" * 32), reports, clocks, at_ns=at_ns)


def record(found: Measurement, failure: str | None = None, order: MeasurementOrder = ORDER) -> Repetition:
    return make_repetition(order, found, Status.OK if failure is None else Status.FAILED, failure, 0.010)


BOTH = {("a", 1): report(), ("b", 1): report(5000, SECOND + 5000)}


def test_both_sides_of_a_flow_are_on_the_controllers_clock_and_a_silent_one_is_unknown() -> None:
    (flow,) = measured(BOTH).flows
    assert (known(flow.sender).first_byte_ns, known(flow.receiver).first_byte_ns) == (0, 0)
    assert (flow.pair, flow.number) == (Pair("a", "b"), 1)
    (half,) = measured({("a", 1): report()}).flows
    assert (half.sender, half.receiver) == (flow.sender, None)


def test_a_capture_replaces_a_link(tmp_path: Path) -> None:
    """The name of a capture can be guessed, and the folder of the report may be open to others."""
    precious, link = tmp_path / "precious", tmp_path / "run-a-to-b-at-a.pcap"
    precious.write_bytes(b"precious")
    link.symlink_to(precious)
    captured = replace(report(), capture=Captured(id=1, frames=1, lost=0, bytes=4, cut=True), pcap=b"pcap")
    (channel,) = channels([CELL], lambda: "0" * 32)
    (capture,) = write_captures([EndReport("a", channel, 5000, captured)], f"{tmp_path}/run")
    assert capture.file == link.name
    assert (link.is_symlink(), link.read_bytes(), precious.read_bytes()) == (False, b"pcap", b"precious")


def test_what_is_counted_is_cut_to_the_common_window() -> None:
    made = record(measured(BOTH))
    assert (made.status, made.reason, made.clock_error_us) == (Status.OK, None, 3.0)
    assert (made.window_start_ns, made.window_end_ns, made.flows[0].bytes) == (0, SECOND, 125_000_000)
    assert [(node.node, node.cpus) for node in made.nodes] == [("a", 4), ("b", 4)]


def test_a_failed_repetition_keeps_its_raw_counters_only_and_one_whose_flows_moved_nothing_is_invalid() -> None:
    failed = record(measured(BOTH), "b: gone")
    assert (failed.status, failed.reason, failed.window_start_ns) == (Status.FAILED, "b: gone", None)
    assert failed.flows[0].bytes is None
    idle = record(measured({end: replace(one, sides=()) for end, one in BOTH.items()}))
    assert (idle.status, idle.reason) == (Status.INVALID, "a flow transferred nothing in the measurement interval")


@pytest.mark.parametrize(("asked", "status"), [(10, Status.OK), (11, Status.FAILED)])
def test_messages_count_when_all_were_made(asked: int, status: Status) -> None:
    cell = replace(CELL, test="blast", message_bytes=100, settings=Settings({ITERATIONS: asked}))
    both = {end: report(sent=1000) for end in BOTH}
    made = record(measured(both, cell), order=MeasurementOrder(cell, 1, 1))
    assert (made.status, made.window_start_ns) == (status, None)


def test_a_node_is_described_by_its_endpoint_that_ran_longest() -> None:
    reports = {("a", 1): report(span_us=10, strangers=1), ("a", 2): report(span_us=20, strangers=2, agent_cpu_us=7)}
    found = measured(reports, FORKED, OF_THREE).usage
    assert [one.node for one in found] == ["a", "b", "c"]
    assert (found[0].span_us, found[0].agent_cpu_us, found[0].strangers) == (20, 7, 3)
    assert (found[1].span_us, found[1].strangers) == (None, 0)


def test_a_trial_of_a_search_keeps_its_load() -> None:
    order = MeasurementOrder(builders.asking(CELL, rate="max"), 1, 1, load=5)
    assert (record(measured(BOTH), order=order).load, order.rate_bps) == (5, 5)


def test_a_start_skew_that_is_not_known_is_neither_stored_nor_held_against_a_repetition() -> None:
    order, late = MeasurementOrder(FORKED, 1, 1), BOTH | {("a", 2): report(), ("c", 2): report(20_000_000, SECOND)}
    found = measured(late, FORKED, OF_THREE)
    assert record(found, order=order).status is Status.INVALID
    made = record(replace(found, skew_known=False), order=order)
    assert (made.status, made.start_skew_us) == (Status.OK, None)


def test_probes_are_kept_beside_the_flows_and_not_among_them() -> None:
    cell = replace(CELL, latency_ms=20)
    columns = {"t_ns": [100, 20_000_100], "answered": [1, 2], "rtt_ns": [500, 600]}
    side = Side(128, 100, 20_000_700, series=Series(columns))
    sent = EndpointReport(2, NodeUsage("", 9_000_000, busiest_cpu_us=77), (side,))
    came = replace(report(5000, SECOND, strangers=3), endpoint=2)
    made = record(measured(BOTH | {("a", 2): sent, ("b", 2): came}, cell, at_ns=7))
    (probes,) = made.probes
    assert (len(made.flows), probes.series.columns) == (1, columns)
    assert (probes.pair, probes.direction, probes.started_ns) == (Pair("a", "b"), Direction.FORWARD, 7)
    # The time of probes is longer than that of streams: what a node was busy is of the streams' time.
    used = [(usage.span_us, usage.busiest_cpu_us, usage.strangers) for usage in made.nodes]
    assert used == [(1_000_000, None, 0), (1_000_000, None, 3)]
    assert record(measured(BOTH, cell)).probes == ()  # their sender is silent


VOICE = replace(CELL, traffic_class="voice", group=1)
BULK = replace(CELL, number=2, traffic_class="bulk", group=1)


def test_each_class_counts_only_while_the_flows_of_all_ran() -> None:
    both = channels([VOICE, BULK], lambda: "0" * 32)
    times = {1: (0, SECOND), 2: (SECOND // 100, SECOND - SECOND // 50)}
    reports = {(node, at): replace(report(*times[at]), endpoint=at) for at in times for node in ("a", "b")}
    clocks = Clocks({"a": ClockOffset(0, 1000), "b": ClockOffset(0, 1000)})
    voice, bulk = (measurement(cell, both, reports, clocks) for cell in (VOICE, BULK))
    result = make_repetition(
        MeasurementOrder(VOICE, 1, 1), replace(voice, other_flows=bulk.flows), Status.OK, None, 1.0
    )
    assert result.window_ns == times[2]
    assert result.start_skew_us == 1e4
    assert [flow.bytes for flow in result.flows] == [pytest.approx(125_000_000 * 0.97, rel=1e-3)]


def test_a_class_that_starts_later_has_an_interval_of_its_own() -> None:
    load = replace(BULK, start_s=0.4, stop_s=0.9)
    both = channels([VOICE, load], lambda: "0" * 32)
    times = {1: (0, SECOND), 2: (SECOND // 2, SECOND)}
    reports = {(node, at): replace(report(*times[at]), endpoint=at) for at in times for node in ("a", "b")}
    clocks = Clocks({"a": ClockOffset(0, 1000), "b": ClockOffset(0, 1000)})
    voice, late = (measurement(cell, both, reports, clocks) for cell in (VOICE, load))
    made = [
        make_repetition(MeasurementOrder(cell, 1, 1), own, Status.OK, None, 1.0)
        for cell, own in ((VOICE, voice), (load, late))
    ]
    assert [one.window_ns for one in made] == [(0, SECOND), (SECOND // 2, 9 * SECOND // 10)]
    assert [own.lasts_whole_test for own in (voice, late)] == [True, False]


def test_the_counters_of_a_node_are_unknown_if_no_stream_covers_all_others() -> None:
    first, second = replace(VOICE, stop_s=0.5), replace(BULK, start_s=0.5)
    one_after_the_other = channels([first, second], lambda: "0" * 32)
    counted = NodeUsage("", 500_000, nic=NicCounters(rx_bytes=1))
    reports = {
        (node, at): replace(report(0, SECOND // 2), endpoint=at, usage=counted) for at in (1, 2) for node in ("a", "b")
    }
    clocks = Clocks({"a": ClockOffset(0, 1000), "b": ClockOffset(0, 1000)})
    assert [usage.nic for usage in measurement(first, one_after_the_other, reports, clocks).usage] == [None, None]
    alone = channels([first], lambda: "0" * 32)
    known = [usage.nic for usage in measurement(first, alone, reports, clocks).usage]
    assert known == [NicCounters(rx_bytes=1)] * 2


@pytest.mark.parametrize(
    ("each", "worst"),
    [
        ([(Status.OK, None), (Status.OK, None)], None),
        ([(Status.FAILED, "a: gone"), (Status.FAILED, "a: gone")], None),
        ([(Status.OK, None), (Status.INVALID, "too late")], (Status.INVALID, "class bulk: too late")),
        ([(Status.FAILED, "no message"), (Status.INVALID, "too late")], (Status.FAILED, "class voice: no message")),
        ([(Status.INVALID, "x"), (Status.INVALID, "y")], (Status.INVALID, "class voice: x; class bulk: y")),
    ],
)
def test_the_worst_class_decides(each: list[tuple[Status, str | None]], worst: tuple[Status, str] | None) -> None:
    failed = map(builders.failed, (VOICE, BULK))
    results = [replace(one, status=status, reason=reason) for one, (status, reason) in zip(failed, each, strict=True)]
    assert combine_status((VOICE, BULK), results) == worst


def test_the_one_sender_of_a_group_is_that_of_each_receiver_with_what_it_had_sent_at_a_leave() -> None:
    """The second receiver's clock is 5 µs ahead; it left after 0.5 s, and 20 ms before that 48 % were sent."""
    cell = replace(FORKED, test="multicast", transport="udp", message_bytes=1000)
    sent = report(sent=1_000_000)
    rows = {"t_ns": [SECOND * at // 100 for at in range(101)], "bytes": [10_000 * at for at in range(101)]}
    sender = replace(sent.sides[0], datagrams=Datagrams(1000), series=Series(rows))
    own: dict[str, Any] = {
        "group": "239.1.2.3",
        "joins": True,
        "ended_ns": SECOND,
        "first_ns": 10**8 + 10**6,
        "first_number": 101,
    }
    none: dict[str, Any] = dict.fromkeys(MulticastCounts.__slots__)
    counts = MulticastCounts(**none | own | {"joined_ns": 10**8, "left_ns": SECOND // 2, "last_ns": SECOND // 2})
    came = Side(300_000, 10**8 + 10**6 + 5000, SECOND // 2, datagrams=Datagrams(300, highest=470), kind_counts=counts)
    reports = {("a", 1): replace(sent, sides=(sender,)), ("a", 2): sent}
    reports |= {("b", 1): replace(sent, sides=(came,)), ("c", 2): replace(sent, sides=(Side(0, None, None),))}
    b, c = measured(reports, cell, OF_THREE).flows
    assert known(b.sender).bytes == known(c.sender).bytes == 1_000_000
    then = known(b.sender).counted(GroupSent)
    assert then == GroupSent(joined=100, left=480, until_ns=SECOND)
    assert b.datagrams_due == 480 - 101
    assert known(c.sender).counted(GroupSent) is None
