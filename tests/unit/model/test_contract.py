"""What was asked against what was granted, and what makes a repetition invalid."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import builders
import pytest

from rigctl.model.contract import departures, impossible_reason, invalid_reason, link_departures, reason_unfinished
from rigctl.model.window import CommonWindow
from rigctl.records import (
    Cell,
    Datagrams,
    Direction,
    Flow,
    Link,
    NodeUsage,
    Pair,
    RequestCounts,
    Series,
    Side,
    TcpInfo,
)
from rigctl.settings import CONGESTION, ITERATIONS, NO_SETTINGS, RATE, Settings

S = 10**9
CELL = builders.cell(pairs=(Pair("pi1", "pi2"),), congestion="cubic")
RECEIVER = Side(9, 1, 2, sndbuf_bytes=131072, rcvbuf_bytes=131072)
SENDER = replace(RECEIVER, tcp=TcpInfo(mss=1448, timestamps=True), granted=Settings({CONGESTION: "cubic"}))
FLOW = Flow(Pair("pi1", "pi2"), Direction.FORWARD, 1, SENDER, RECEIVER)


def rated(bps: int) -> Side:
    return replace(SENDER, granted=SENDER.granted | {RATE: bps})


UNREPORTED = builders.counting(SENDER, mss=None, sndbuf_bytes=None, congestion=None)
RATED = {"rate": 10**7 + 4}


@pytest.mark.parametrize(
    ("asked", "sender", "receiver", "found"),
    [
        ({}, SENDER, RECEIVER, []),  # 1448 are 1460 less timestamps
        ({"mss": 8960}, SENDER, RECEIVER, ["mss 8960 requested, 1448 effective"]),
        # A window that one kernel cut, and one that is to be resized.
        ({}, SENDER, replace(RECEIVER, rcvbuf_bytes=65536), ["window 65536 requested, 32768 effective"]),
        ({}, replace(SENDER, sndbuf_bytes=65536), RECEIVER, ["window 65536 requested, 32768 effective"]),
        ({"resize": True}, replace(SENDER, sndbuf_bytes=65536), RECEIVER, []),
        # A rate is held in whole bytes per second.
        (RATED, rated(10**7 + 8), RECEIVER, []),
        (RATED, rated(10**8), RECEIVER, ["rate 10000004 requested, 100000000 effective"]),
        # What was not requested, or is unknown.
        ({"window_bytes": None, "mss": None, "congestion": None}, SENDER, RECEIVER, []),
        ({}, UNREPORTED, RECEIVER, []),
        ({"mss": 8960}, None, RECEIVER, []),
        ({"mss": 8960}, SENDER, None, []),
    ],
)
def test_what_a_kernel_granted_otherwise_than_requested_is_a_departure_said_once(
    asked: dict[str, Any], sender: Side | None, receiver: Side | None, found: list[str]
) -> None:
    flows = [replace(FLOW, number=n, sender=sender, receiver=receiver) for n in range(1, 6)]
    departed = departures(builders.asking(CELL, **asked), flows)
    assert [str(each) for each in departed] == [f"pi1 -> pi2: {text}" for text in found]


def test_a_link_that_runs_slower_than_the_rig_file_says_is_a_departure() -> None:
    links = {"pi1": Link(10**9, 1500), "pi2": Link(10**9, 1500), "pi3": Link(None, None), "pi4": Link(10**9, 1500)}
    facts: dict[str, dict[str, Any]] = {"pi1": {"speed_bps": 10**8, "mtu": 1500}, "pi2": {"mtu": 9000}}
    facts |= {"pi3": {"speed_bps": 10**8, "mtu": 1500}}
    assert [str(departure) for departure in link_departures(links, facts)] == [
        "pi1: link speed 1000000000 requested, 100000000 effective",
        "pi2: mtu 1500 requested, 9000 effective",
    ]


UDP = {"test": "udp", "message_bytes": 1000}
PINGS = {"test": "pingpong", "message_bytes": 1000}
FILE = {"test": "file", "message_bytes": 10**9}


def side(count: int, datagrams: int | None = None, samples: Sequence[int] = ()) -> Side:
    """Return a side that counted `count` bytes, and `samples` of them before."""
    series = Series({"t_ns": list(range(len(samples))), "bytes": list(samples)})
    return Side(count, 1, 2, datagrams=None if datagrams is None else Datagrams(datagrams), series=series)


@pytest.mark.parametrize(
    ("cell", "sent", "received", "reason"),
    [
        (UDP, side(50_000, 50), side(50_000, 51), "pi2 reports 51 datagrams received, pi1 sent 50. "),
        (UDP, side(50_000, 50), side(50_001, 50), "pi2 reports 50,001 bytes received, pi1 sent 50,000. "),
        # A message, or a piece of a file, that is not done with may have arrived.
        (PINGS, side(5000), side(6000), None),
        (PINGS, side(5000), side(6001), "pi2 reports 6,001 bytes received, pi1 sent 6,000. "),
        (PINGS, side(5000, 8), side(8000, 8), None),
        (FILE, side(0), side(65536), None),
        (FILE, side(0), side(65537), "pi2 reports 65,537 bytes received, pi1 sent 65,536. "),
        # Samples rise to the total.
        ({}, side(9, samples=[0, 4, 9]), side(9, samples=[0, 4, 4]), None),
        ({}, side(9, samples=[5, 6, 10**6]), side(9), "pi1 reports 1,000,000 bytes in a sample, but only 9 in total. "),
        ({}, None, side(9, samples=[0, 7, 3]), "pi2 reports 3 bytes after 7: "),
        ({}, side(9), None, None),
    ],
)
def test_a_report_that_cannot_be_is_not_believed(
    cell: dict[str, Any], sent: Side | None, received: Side | None, reason: str | None
) -> None:
    found = impossible_reason(replace(CELL, **cell), [FLOW, replace(FLOW, sender=sent, receiver=received)])
    assert found is reason or str(found).startswith(str(reason))


def test_in_the_reverse_direction_the_other_node_receives() -> None:
    back = replace(FLOW, direction=Direction.REVERSE, receiver=replace(RECEIVER, bytes=10))
    assert str(impossible_reason(CELL, [FLOW, back])).startswith("pi1 reports 10 bytes received, pi2 sent 9. ")


AB = Pair("a", "b")
PINGPONG = Cell(1, "pingpong", (AB,), 0.5, 0.0, 1, message_bytes=64, settings=Settings({ITERATIONS: 1200}))
TIMED, UNSIZED = replace(PINGPONG, settings=NO_SETTINGS), replace(PINGPONG, message_bytes=None)
LONGER = "messages in its 0.5 s. Give it a longer duration"


def sending(messages: int, datagrams: int | None = None) -> Side:
    return side(64 * messages + 63, datagrams)


@pytest.mark.parametrize(
    ("cell", "senders", "reason"),
    [
        (PINGPONG, [sending(1200), sending(1300)], None),
        (PINGPONG, [sending(1200), sending(1199)], f"a -> b: 1,199 of 1,200 {LONGER}, or request fewer"),
        # Without a number of messages one is enough.
        (TIMED, [sending(1)], None),
        (TIMED, [side(0, 5)], f"a -> b: 0 {LONGER}"),
        (TIMED, [None], f"a -> b: 0 {LONGER}"),
        # Over UDP those that never came back are done with too.
        (PINGPONG, [sending(1100, 1200)], None),
        (PINGPONG, [sending(1300, 1199)], f"a -> b: 1,199 of 1,200 {LONGER}, or request fewer"),
        (UNSIZED, [sending(1200)], "the plan does not give the message size"),
    ],
)
def test_fewer_messages_than_asked_for_are_no_measurement_and_say_what_to_do(
    cell: Cell, senders: list[Side | None], reason: str | None
) -> None:
    assert reason_unfinished(cell, [Flow(AB, Direction.FORWARD, 1, own, None) for own in senders]) == reason


REQUESTS = replace(PINGPONG, test="requests")
WHENEVER = replace(REQUESTS, settings=NO_SETTINGS)


def asking(answered: int, unanswered: int = 0, unsent: int = 0) -> Side:
    counts = RequestCounts(0, 0, 0, 0, 1, unanswered, unsent)
    return replace(side(64 * answered), kind_counts=counts)


@pytest.mark.parametrize(
    ("cell", "senders", "reason"),
    [
        (REQUESTS, [asking(1200), asking(1000, 150, 50)], None),  # a request without an answer is a result, too
        (REQUESTS, [asking(1199)], "a -> b: 1,199 of 1,200 requests were due in 0.5 s. Give it longer"),
        (WHENEVER, [asking(1, 900)], None),
        (WHENEVER, [asking(1), asking(0, 8, 2)], "a -> b: none of 10 requests was answered within 0.5 s, or 2 s later"),
        (WHENEVER, [None], "a -> b: none of 0 requests was answered within 0.5 s, or 2 s later"),
    ],
)
def test_requests_are_a_measurement_if_they_were_due_and_some_were_answered(
    cell: Cell, senders: list[Side | None], reason: str | None
) -> None:
    assert reason_unfinished(cell, [Flow(AB, Direction.FORWARD, 1, own, None) for own in senders]) == reason


@pytest.mark.parametrize(("came", "believed"), [(0, True), (11, True), (12, False)])
def test_a_receiver_gets_at_most_the_requests_that_were_begun(came: int, believed: bool) -> None:
    flow = Flow(AB, Direction.FORWARD, 1, asking(4, 7), side(64 * came))
    assert (impossible_reason(WHENEVER, [flow]) is None) is believed


@pytest.mark.parametrize(
    ("cell", "start_s", "end_s", "skew_ns", "limit_s", "reason"),
    [
        ({}, 0, 10, 10_000_001, 0.010, "start skew 10.000001 ms exceeds the limit of 10 ms"),
        ({}, 0, 10, 25_000, 1e-6, "start skew 0.025 ms exceeds the limit of 0.001 ms"),
        ({}, 0, 10, 10_000_000, 0.010, None),
        ({}, 0, 8.99, 0, 0.010, "all flows ran together for 8.99 s of 10 s (minimum 9.00 s)"),
        ({}, 0, 9, 0, 0.010, None),
        # The omitted start does not shorten the time asked for.
        ({"omit_s": 5.0}, 0, 4, 0, 0.010, "all flows ran together for 4.00 s of 5 s (minimum 4.50 s)"),
        # How late a flow may be is one number for skew and interval.
        ({}, 2, 10, 2 * S, 2.0, None),
    ],
)
def test_a_repetition_that_starts_or_ends_too_unevenly_is_invalid(
    cell: dict[str, Any], start_s: float, end_s: float, skew_ns: int, limit_s: float, reason: str | None
) -> None:
    window = CommonWindow(round(start_s * S), round(end_s * S), skew_ns)
    assert invalid_reason(replace(CELL, **cell), window, [], limit_s) == reason


def test_a_repetition_without_traffic_of_unknown_skew_or_on_a_hot_node_may_be_invalid() -> None:
    assert invalid_reason(CELL, None, [], 0.010) == "a flow transferred nothing in the measurement interval"
    unknown = invalid_reason(CELL, CommonWindow(2 * S, 10 * S, 2 * S), [], 1.9, skew_known=False)
    assert unknown == "all flows ran together for 8.00 s of 10 s (minimum 8.10 s)"
    hot = [NodeUsage("pi1", throttled=True), NodeUsage("pi2", throttled=True), NodeUsage("pi3", throttled=False)]
    throttled = "the firmware throttled the CPU of pi1, pi2. Cool the node or check its power supply"
    assert invalid_reason(CELL, CommonWindow(0, 10 * S, 0), hot, 0.010) == throttled
