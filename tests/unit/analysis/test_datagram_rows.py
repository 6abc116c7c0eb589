"""The columns of datagrams: what was sent, what came, what was lost in a row; what is unknown stays so."""

from dataclasses import replace
from typing import Any

import builders
import pytest
from builders import BEGIN_NS, bucket_of, changing, datagram_flow

from rigctl.analysis.rows.flows import DATAGRAM_NAMES as NAMES
from rigctl.analysis.rows.flows import asked_mbps, datagram_values, flow_values
from rigctl.records import Cell, Copying, Datagrams, Direction, Flow, Pair, Repetition, Side, Status
from rigctl.settings import COPY, NODELAY, RATE, Settings

PAIR = Pair("a", "b")
CELL = Cell(1, "udp", (PAIR,), 1.0, 0.0, 1, transport="udp", message_bytes=1250, settings=Settings({RATE: 10**8}))


def flow(sent: int, came: int, burst: int = 1, **more: Any) -> Flow:
    """One in which `burst` datagrams at most are missing in a row."""
    counts = {"duplicates": 0, "reordered": 0, "overflow": 0, "jitter_ns": 5000, "jitter_max_ns": 9000} | more
    lost = ((bucket_of(burst), 1),) if came < sent else ()
    return changing(datagram_flow(sent, came, **counts), receiver={"histogram": lost})


def test_what_was_lost_is_what_was_sent_and_did_not_come() -> None:
    values = datagram_values([flow(10_000, 9990, burst=7, reordered=3, duplicates=2, overflow=4, refused=5)])
    assert (values["datagrams_sent"], values["datagrams_lost"], values["loss_burst_max"]) == (10_000, 10, 7)
    assert values["loss_pct"] == pytest.approx(0.1)
    assert (values["reordered"], values["duplicates"], values["sender_drops"], values["receiver_drops"]) == (3, 2, 5, 4)
    assert (values["jitter_us"], values["jitter_max_us"]) == (5.0, 9.0)
    assert values["sent_mbps"] == pytest.approx(100.0)


def test_what_is_missing_at_the_end_is_a_loss_in_a_row_too() -> None:
    assert datagram_values([flow(10_000, 9950, burst=10, highest=9960)])["loss_burst_max"] == 40
    assert datagram_values([flow(10_000, 9950, burst=45, highest=9960)])["loss_burst_max"] == 45


def test_without_a_loss_the_longest_is_0_and_duplicates_make_no_negative_one() -> None:
    values = datagram_values([flow(1000, 1000), flow(1000, 1003, duplicates=3)])
    assert (values["datagrams_lost"], values["loss_pct"], values["loss_burst_max"]) == (0, 0.0, 0)
    assert datagram_values([flow(1000, 1000, highest=1002)])["loss_burst_max"] == 0


def test_flows_are_summed_their_jitter_is_a_mean_and_the_worst_stays_the_worst() -> None:
    first = flow(1000, 990, 4, refused=1, reordered=2, overflow=3, jitter_ns=4000, jitter_max_ns=20_000)
    second = flow(3000, 2980, 6, refused=2, reordered=3, duplicates=1, overflow=4, jitter_ns=8000)
    values = datagram_values([first, second])
    assert (values["datagrams_sent"], values["datagrams_lost"], values["loss_pct"]) == (4000, 30, 0.75)
    assert (values["sender_drops"], values["receiver_drops"]) == (3, 7)
    assert (values["reordered"], values["duplicates"]) == (5, 1)
    assert (values["jitter_us"], values["jitter_max_us"], values["loss_burst_max"]) == (6.0, 20.0, 6)
    assert values["sent_mbps"] == pytest.approx(40.0)


def test_a_side_that_is_not_known_leaves_sums_unknown() -> None:
    whole = flow(1000, 1000)
    values = datagram_values([whole, replace(whole, receiver=None)])
    assert (values["datagrams_sent"], values["datagrams_lost"], values["loss_pct"]) == (2000, None, None)
    assert values["reordered"] is None
    assert (values["jitter_us"], values["loss_burst_max"]) == (5.0, 0)  # of those known
    values = datagram_values([whole, replace(whole, sender=None)])
    assert (values["datagrams_sent"], values["datagrams_lost"], values["sent_mbps"]) == (None, None, None)
    assert set(datagram_values([]).values()) == {None}


def test_a_receiver_that_got_nothing_has_an_unknown_burst_and_loses_all() -> None:
    nothing = {"first_byte_ns": None, "last_byte_ns": None, "histogram": (), "datagrams": Datagrams(0)}
    values = datagram_values([changing(flow(1000, 0), receiver=nothing)])
    assert (values["datagrams_lost"], values["loss_pct"], values["loss_burst_max"]) == (1000, 100.0, None)
    assert (values["jitter_us"], values["jitter_max_us"], values["duplicates"]) == (None, None, None)


def test_a_sender_that_sent_nothing_has_no_share_of_loss() -> None:
    values = datagram_values([flow(0, 0)])
    assert (values["datagrams_sent"], values["datagrams_lost"], values["loss_pct"]) == (0, 0, None)


@pytest.mark.parametrize("times", [{"first_byte_ns": None}, {"last_byte_ns": None}, {"last_byte_ns": BEGIN_NS}])
def test_a_time_that_is_unknown_or_nothing_gives_no_rate(times: dict[str, int | None]) -> None:
    values = datagram_values([changing(flow(1, 1), sender=times)])
    assert (values["sent_mbps"], values["datagrams_sent"]) == (None, 1)


def test_tcp_has_none_of_them() -> None:
    values = datagram_values(builders.flows(builders.cell(), (900, 900)))
    assert tuple(values) == NAMES
    assert set(values.values()) == {None}


def test_the_rate_of_a_trial_comes_before_what_the_scenario_says() -> None:
    plain = Repetition(1, 1, 1, Status.OK, None, 0.0, 1.0)
    assert asked_mbps(CELL, plain) == 100.0
    assert asked_mbps(CELL, replace(plain, rate_bps=25_000_000)) == 25.0
    for unbounded in ("max", "unlimited", None):
        assert asked_mbps(replace(CELL, settings=Settings({RATE: unbounded})), plain) is None


def copied(sent: Copying, copies: bool | None = None, nodelay: bool | None = None) -> Flow:
    sender = Side(9, 1, 2, copying=sent, granted=Settings({NODELAY: nodelay, COPY: False}))
    return Flow(Pair("a", "b"), Direction.FORWARD, 1, sender, Side(9, 1, 2, granted=Settings({COPY: copies})))


def together(*flows: Flow) -> dict[str, Any]:
    return flow_values(builders.cell(), flows, complete=True)


def test_the_effective_share_is_of_all_sends_of_all_flows() -> None:
    values = together(copied(Copying(300, 300), True, True), copied(Copying(100, 0), True, True))
    assert (values["copy_effective"], values["nodelay"], values["congestion"]) == (True, True, None)
    assert values["zerocopy_effective"] == 0.75
    assert together(copied(Copying(300, 0)))["zerocopy_effective"] == 0.0


def test_nothing_is_known_of_what_was_not_asked_for() -> None:
    for values in (together(copied(Copying(300))), together()):
        assert (values["zerocopy_effective"], values["copy_effective"]) == (None, None)


def test_receivers_that_differ_have_no_one_answer() -> None:
    assert together(copied(Copying(1), True), copied(Copying(1), False))["copy_effective"] is None
