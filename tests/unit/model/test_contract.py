"""What was asked against what was granted, and what makes a repetition invalid."""

from dataclasses import replace
from typing import Any

import builders

from rigctl.model.contract import (
    departures,
    impossible_reason,
    invalid_reason,
    link_departures,
    unfinished_reason,
)
from rigctl.model.window import CommonWindow
from rigctl.records import (
    Cell,
    Datagrams,
    Direction,
    Flow,
    Link,
    NodeUsage,
    Pair,
    Series,
    Side,
    TcpInfo,
)
from rigctl.settings import CONGESTION, ITERATIONS, NO_SETTINGS, RATE, Settings

S = 10**9
CELL = builders.cell(pairs=(Pair("pi1", "pi2"),), congestion="cubic")
SENDER = Side(
    9,
    1,
    2,
    sndbuf_bytes=131072,
    rcvbuf_bytes=131072,
    tcp=TcpInfo(mss=1448, timestamps=True),
    granted=Settings({CONGESTION: "cubic"}),
)
RECEIVER = Side(9, 1, 2, sndbuf_bytes=131072, rcvbuf_bytes=131072)
FLOW = Flow(Pair("pi1", "pi2"), Direction.FORWARD, 1, SENDER, RECEIVER)


def found(cell: Cell, flow: Flow) -> list[tuple[str, str, str]]:
    return [(d.setting, d.requested, d.effective) for d in departures(cell, [flow])]


def test_another_mss_or_congestion_control_is_a_departure_and_1448_plus_timestamps_is_none() -> None:
    assert found(CELL, FLOW) == []
    assert found(builders.asking(CELL, mss=8960), FLOW) == [("mss", "8960", "1448")]
    assert found(builders.asking(CELL, congestion="bbr"), FLOW) == [("congestion", "bbr", "cubic")]


def test_a_rate_is_held_in_whole_bytes_per_second() -> None:
    asked = builders.asking(CELL, rate=10**7 + 4)
    for bps, departs in ((10**7, False), (10**7 + 8, False), (10**8, True)):
        granted = SENDER.granted | {RATE: bps}
        held = replace(FLOW, sender=replace(SENDER, granted=granted))
        assert found(asked, held) == ([("rate", "10000004", "100000000")] if departs else [])


def test_a_window_cut_by_the_kernel_is_a_departure_on_either_side() -> None:
    cut = replace(FLOW, receiver=replace(RECEIVER, rcvbuf_bytes=65536))
    assert found(CELL, cut) == [("window", "65536", "32768")]
    cut = replace(FLOW, sender=replace(SENDER, sndbuf_bytes=65536))
    assert found(CELL, cut) == [("window", "65536", "32768")]


def test_a_departure_shared_by_many_flows_is_said_once() -> None:
    flows = [replace(FLOW, number=n) for n in range(1, 6)]
    assert len(list(departures(builders.asking(CELL, mss=8960), flows))) == 1


def test_what_was_not_asked_for_or_is_unknown_is_no_departure() -> None:
    assert found(builders.asking(CELL, window_bytes=None, mss=None, congestion=None), FLOW) == []
    unknown = replace(FLOW, sender=builders.counting(SENDER, mss=None, sndbuf_bytes=None, congestion=None))
    assert found(CELL, unknown) == []
    assert found(CELL, replace(FLOW, sender=None)) == []


def test_a_link_that_runs_slower_than_the_rig_file_says_is_a_departure() -> None:
    links = {"pi1": Link(10**9, 1500), "pi2": Link(10**9, 1500), "pi3": Link(None, None)}
    facts: dict[str, dict[str, Any]] = {
        "pi1": {"speed_bps": 10**8, "mtu": 1500},
        "pi2": {"speed_bps": None, "mtu": 9000},
    }
    texts = [str(d) for d in link_departures(links, facts)]
    assert texts == [
        "pi1: link speed 1000000000 requested, 100000000 effective",
        "pi2: mtu 1500 requested, 9000 effective",
    ]


def test_the_omitted_start_does_not_shorten_the_time_asked_for() -> None:
    cell = replace(CELL, omit_s=5.0)
    assert invalid_reason(cell, CommonWindow(0, round(4.9 * S), 0), [], 0.010) is None
    assert invalid_reason(cell, CommonWindow(0, 4 * S, 0), [], 0.010) is not None


def claimed(cell: Cell, sent: Side, received: Side) -> str | None:
    return impossible_reason(cell, [replace(FLOW, sender=sent, receiver=received)])


def test_a_receiver_that_claims_more_than_was_sent_is_not_believed() -> None:
    assert claimed(CELL, SENDER, replace(RECEIVER, bytes=9)) is None
    assert claimed(CELL, SENDER, replace(RECEIVER, bytes=4)) is None
    reason = claimed(CELL, SENDER, replace(RECEIVER, bytes=2**50))
    assert str(reason).startswith("pi2 reports 1,125,899,906,842,624 bytes received, pi1 sent 9. ")
    back = replace(FLOW, direction=Direction.REVERSE, receiver=replace(RECEIVER, bytes=10))
    assert str(impossible_reason(CELL, [FLOW, back])).startswith("pi1 reports 10 bytes received, pi2 sent 9. ")


def test_more_datagrams_received_than_sent_are_not_believed() -> None:
    cell = replace(CELL, test="udp", message_bytes=1000)
    sent = replace(SENDER, bytes=50_000, datagrams=Datagrams(50))
    assert claimed(cell, sent, replace(RECEIVER, bytes=50_000, datagrams=Datagrams(50))) is None
    reason = claimed(cell, sent, replace(RECEIVER, bytes=50_000, datagrams=Datagrams(51)))
    assert str(reason).startswith("pi2 reports 51 datagrams received, pi1 sent 50. ")
    reason = claimed(cell, sent, replace(RECEIVER, bytes=50_001, datagrams=Datagrams(50)))
    assert str(reason).startswith("pi2 reports 50,001 bytes received, pi1 sent 50,000. ")


def test_a_message_that_is_not_done_with_may_have_arrived() -> None:
    cell = replace(CELL, test="pingpong", message_bytes=1000)
    assert claimed(cell, replace(SENDER, bytes=5000), replace(RECEIVER, bytes=6000)) is None
    assert claimed(cell, replace(SENDER, bytes=5000), replace(RECEIVER, bytes=6001)) is not None
    unanswered = replace(SENDER, bytes=5000, datagrams=Datagrams(8))
    assert claimed(cell, unanswered, replace(RECEIVER, bytes=8000, datagrams=Datagrams(8))) is None
    cell = replace(CELL, test="file", message_bytes=10**9)
    assert claimed(cell, replace(SENDER, bytes=0), replace(RECEIVER, bytes=65536)) is None
    assert claimed(cell, replace(SENDER, bytes=0), replace(RECEIVER, bytes=65537)) is not None


PINGPONG = Cell(
    1,
    "pingpong",
    (Pair("a", "b"), Pair("c", "d")),
    0.5,
    0.0,
    1,
    message_bytes=64,
    settings=Settings({ITERATIONS: 1200}),
)


def sending(messages: int, datagrams: int | None = None, pair: Pair = PINGPONG.pairs[0]) -> Flow:
    counted = None if datagrams is None else Datagrams(datagrams)
    return Flow(pair, Direction.FORWARD, 1, Side(64 * messages + 63, 1, 2, datagrams=counted), None)


def test_fewer_messages_than_asked_for_are_no_measurement_and_say_what_to_do() -> None:
    last = "a -> b: 1,199 of 1,200 messages in its 0.5 s. Give it a longer duration, or request fewer"
    assert unfinished_reason(PINGPONG, [sending(1199)]) == last
    assert unfinished_reason(PINGPONG, [sending(1200), sending(1300)]) is None
    assert unfinished_reason(PINGPONG, [sending(1200), sending(1199)]) == last


def test_without_a_number_of_messages_one_is_enough_and_none_is_not() -> None:
    timed = replace(PINGPONG, settings=NO_SETTINGS)
    assert unfinished_reason(timed, [sending(1)]) is None
    assert unfinished_reason(timed, [sending(0)]) == "a -> b: 0 messages in its 0.5 s. Give it a longer duration"
    nothing = replace(sending(1), sender=Side(0, None, None, datagrams=Datagrams(5)))
    assert unfinished_reason(timed, [nothing]) is not None
    assert unfinished_reason(timed, [replace(nothing, sender=None)]) is not None


def test_over_udp_those_that_never_came_back_are_done_with_too() -> None:
    assert unfinished_reason(PINGPONG, [sending(1100, datagrams=1200)]) is None
    assert unfinished_reason(PINGPONG, [sending(1300, datagrams=1199)]) is not None


def test_messages_whose_size_the_plan_lacks_are_none() -> None:
    reason = unfinished_reason(replace(PINGPONG, message_bytes=None), [sending(1200)])
    assert reason == "the plan does not give the size of its messages"


def test_a_departure_says_where_what_was_asked_for_and_what_was_granted() -> None:
    (departure,) = departures(builders.asking(CELL, mss=8960), [FLOW])
    assert str(departure) == "pi1 -> pi2: mss 8960 requested, 1448 effective"


def test_the_reasons_of_an_invalid_repetition_in_full() -> None:
    assert invalid_reason(CELL, None, [], 0.010) == "a flow transferred nothing in the measurement interval"
    skewed, short = CommonWindow(0, 10 * S, 10_000_001), CommonWindow(0, 8_990_000_000, 0)
    assert invalid_reason(CELL, skewed, [], 0.010) == "start skew 10.000001 ms exceeds the limit of 10 ms"
    assert invalid_reason(CELL, skewed, [], 0.0099) == "start skew 10.0 ms exceeds the limit of 9.9 ms"
    assert invalid_reason(CELL, CommonWindow(0, 10 * S, 25_000), [], 1e-6) == (
        "start skew 0.025 ms exceeds the limit of 0.001 ms"
    )
    assert invalid_reason(CELL, CommonWindow(0, 10 * S, 10_000_000), [], 0.010) is None
    assert invalid_reason(CELL, short, [], 0.010) == "all flows ran together for only 8.99 s of 10 s, less than 9.00 s"
    assert invalid_reason(CELL, CommonWindow(0, 9 * S, 0), [], 0.010) is None
    hot = [NodeUsage("pi1", throttled=True), NodeUsage("pi2", throttled=True)]
    whole = CommonWindow(0, 10 * S, 0)
    assert invalid_reason(CELL, whole, hot, 0.010) == (
        "throttled during the repetition: pi1, pi2. Cool it or check its power supply"
    )


def test_how_late_a_flow_may_be_is_one_number_for_skew_and_interval() -> None:
    late = CommonWindow(2 * S, 10 * S, 2 * S)
    assert invalid_reason(CELL, late, [], 2.0) is None
    assert invalid_reason(CELL, late, [], 1.9) == "start skew 2000.0 ms exceeds the limit of 1900 ms"
    unknown = invalid_reason(CELL, late, [], 1.9, skew_known=False)
    assert unknown == "all flows ran together for only 8.00 s of 10 s, less than 8.10 s"
    assert invalid_reason(replace(CELL, duration_s=0.4), CommonWindow(0, 1, 0), [], 1.0) is None


def sampled(side: Side, counts: list[int]) -> Side:
    return replace(side, series=Series({"t_ns": list(range(len(counts))), "bytes": counts}))


def test_samples_rise_to_the_total_or_are_not_believed() -> None:
    assert claimed(CELL, sampled(SENDER, [0, 4, 9]), sampled(RECEIVER, [0, 4, 4])) is None
    fallen = claimed(CELL, SENDER, sampled(RECEIVER, [0, 7, 3]))
    assert str(fallen).startswith("pi2 reports 3 bytes after 7")
    beyond = claimed(CELL, sampled(SENDER, [5, 6, 10**9]), RECEIVER)
    assert str(beyond).startswith("pi1 reports a sample of 1,000,000,000 bytes, but 9 in all")
