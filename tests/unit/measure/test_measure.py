"""From a cell to the orders of its agents."""

from dataclasses import replace
from itertools import count

import builders
import pytest

from rigctl.measure import TESTS, channels, udp
from rigctl.records import Cell, Direction, Pair
from rigctl.settings import MAX_RATE

NO_COPYING = {"zerocopy": None, "copy": None}
NO_MESSAGES = {"transport": None, "test": None, "size": None, "busy": None, "disk": None, "folder": None, **NO_COPYING}
CELL = Cell(1, "tcp", (Pair("a", "b"), Pair("c", "d")), 10.0, 0.0, 5)


def numbered(cell: Cell) -> list[tuple[int, str, str, str]]:
    tokens = count()
    return [(c.endpoint, *c.stream.ends, c.token) for c in channels(cell, lambda: f"token{next(tokens)}")]


def test_every_pair_is_a_stream_with_a_token_of_its_own() -> None:
    assert numbered(CELL) == [(1, "a", "b", "token0"), (2, "c", "d", "token1")]


def test_reverse_sends_from_destination_to_source() -> None:
    assert [s[1:3] for s in numbered(replace(CELL, direction=Direction.REVERSE))] == [("b", "a"), ("d", "c")]


def test_both_is_two_streams_per_pair() -> None:
    sides = [s[1:3] for s in numbered(replace(CELL, direction=Direction.BOTH))]
    assert sides == [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")]
    assert len({s[0] for s in numbered(replace(CELL, direction=Direction.BOTH))}) == 4


def test_what_was_not_asked_for_is_left_to_the_node() -> None:
    assert TESTS["tcp"].settings(CELL) == {
        "flows": 5, "window": None, "mss": None, "congestion": None, "nodelay": None, **NO_MESSAGES
    }  # fmt: skip


@pytest.mark.parametrize("nodelay", [True, False])
def test_what_was_asked_for_is_ordered(nodelay: bool) -> None:
    asked = builders.asking(CELL, window_bytes=65536, mss=8960, congestion="bbr", nodelay=nodelay)
    assert TESTS["tcp"].settings(asked) == {
        "flows": 5, "window": 65536, "mss": 8960, "congestion": "bbr", "nodelay": nodelay, **NO_MESSAGES
    }  # fmt: skip


def test_each_end_of_a_stream_gets_its_own_order_to_copy_or_not() -> None:
    asked = builders.asking(CELL, zerocopy=True, copy=True)
    sender, receiver = TESTS["tcp"].settings(asked, sender=True), TESTS["tcp"].settings(asked)
    assert (sender["zerocopy"], sender["copy"]) == (True, None)
    assert (receiver["zerocopy"], receiver["copy"]) == (None, True)


@pytest.mark.parametrize(("test", "busy"), [("pingpong", True), ("pingpong", None), ("blast", None)])
def test_messages_have_their_size_and_the_stream_s_socket_settings(test: str, busy: bool | None) -> None:
    asked = builders.asking(CELL, test=test, nodelay=True, message_bytes=1024, iterations=9, busy_poll=busy)
    assert TESTS[test].settings(asked) == {
        "flows": 5, "window": None, "mss": None, "congestion": None, "nodelay": True,
        "transport": None, "test": test, "size": 1024, "busy": busy, "disk": None, "folder": None, **NO_COPYING,
    }  # fmt: skip


def test_a_ping_pong_may_go_in_datagrams() -> None:
    asked = builders.asking(CELL, test="pingpong", message_bytes=64, transport="udp")
    assert TESTS["pingpong"].settings(asked)["transport"] == "udp"


def test_a_search_bounds_its_bursts_to_a_millisecond_and_a_scenario_to_what_it_says() -> None:
    asked = builders.asking(CELL, test="udp", message_bytes=1250, transport="udp", rate=10**8)
    searching = builders.asking(asked, rate=MAX_RATE)
    assert udp.burst(asked, 10**8) is None
    assert (udp.burst(searching, 10**8), udp.burst(searching, 10**5), udp.burst(searching, None)) == (11, 1, None)
    assert udp.burst(builders.asking(asked, burst=3), 10**8) == udp.burst(builders.asking(searching, burst=3), 5) == 3
    assert udp.burst(builders.asking(asked, rate="unlimited", burst=3), None) is None


def test_of_a_stream_of_datagrams_nothing_of_tcp_is_asked() -> None:
    asked = builders.asking(CELL, test="udp", message_bytes=1472, transport="udp", window_bytes=65536, rate=10**8)
    assert TESTS["udp"].settings(asked) == {
        "flows": 5, "window": 65536, "mss": None, "congestion": None, "nodelay": None,
        "transport": "udp", "test": None, "size": 1472, "busy": None, "disk": None, "folder": None, **NO_COPYING,
    }  # fmt: skip
