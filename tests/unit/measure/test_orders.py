"""From a cell to the orders of its agents."""

from dataclasses import replace
from itertools import count
from typing import Any

import builders
import pytest

from rigctl.measure.orders import burst, channels
from rigctl.measure.orders import sockets as channel_sockets
from rigctl.protocol.orders import Listen
from rigctl.records import Cell, Direction, Pair
from rigctl.settings import MAX_RATE, NO_SETTINGS

CELL = Cell(1, "tcp", (Pair("a", "b"), Pair("c", "d")), 10.0, 0.0, 5)


@pytest.mark.parametrize(
    ("direction", "ends"), [("forward", ["ab", "cd"]), ("reverse", ["ba", "dc"]), ("both", ["ab", "ba", "cd", "dc"])]
)
def test_every_pair_is_a_stream_or_two_each_with_a_token_of_its_own(direction: str, ends: list[str]) -> None:
    tokens = count(1)
    found = channels([replace(CELL, direction=Direction(direction))], lambda: f"token{next(tokens)}")
    numbers = [(channel.endpoint, "".join(channel.stream.ends), channel.token) for channel in found]
    assert numbers == [(at, each, f"token{at}") for at, each in enumerate(ends, 1)]


def asked_of(cell: Cell, *, sends: bool = False) -> dict[str, Any]:
    """Return the keys of the first channel's order that not every order has."""
    sockets = channel_sockets(cell, channels([cell], lambda: "token")[0], sends=sends, interval_ms=100, wait_ms=5000)
    order = Listen(1, "::1", replace(sockets, token="0" * 32)).to_line(1).decode()
    words = dict(word.split("=") for word in order.split()[2:])
    common = {"endpoint": "1", "address": "::1", "token": "0" * 32, "interval_ms": "100", "wait_ms": "5000"}
    assert words.items() >= common.items()
    return {name: value for name, value in words.items() if name not in common}


def test_what_was_not_asked_for_is_left_to_the_node() -> None:
    assert asked_of(CELL) == {"flows": "5"}


@pytest.mark.parametrize("nodelay", [True, False])
def test_what_was_asked_for_is_ordered(nodelay: bool) -> None:
    asked = builders.asking(CELL, window_bytes=65536, mss=8960, congestion="bbr", nodelay=nodelay)
    settings = {"window": "65536", "mss": "8960", "congestion": "bbr", "nodelay": str(int(nodelay))}
    assert asked_of(asked) == {"flows": "5"} | settings
    assert "window" not in asked_of(replace(asked, resize=True))  # its kernel resizes it


def test_each_end_of_a_stream_gets_its_own_order_to_copy_or_not() -> None:
    asked = builders.asking(CELL, zerocopy=True, copy=True)
    assert asked_of(asked, sends=True) == {"flows": "5", "zerocopy": "1"}
    assert asked_of(asked) == {"flows": "5", "copy": "1"}


@pytest.mark.parametrize(("test", "busy"), [("pingpong", True), ("pingpong", None), ("blast", None)])
def test_messages_have_their_size_and_the_stream_s_socket_settings(test: str, busy: bool | None) -> None:
    asked = builders.asking(CELL, test=test, nodelay=True, message_bytes=1024, iterations=9, busy_poll=busy)
    expected = {"flows": "5", "nodelay": "1", "test": test, "size": "1024"} | ({"busy": "1"} if busy else {})
    assert asked_of(asked) == expected


def test_a_ping_pong_may_go_in_datagrams() -> None:
    asked = builders.asking(CELL, test="pingpong", message_bytes=64, transport="udp")
    assert asked_of(asked)["transport"] == "udp"


def test_a_side_has_a_folder_only_where_it_has_a_disk() -> None:
    asked = builders.asking(CELL, test="file", message_bytes=9, read="disk", write="memory", folder="/var/a b")
    assert asked_of(asked, sends=True)["folder"] == "/var/a%20b"
    assert asked_of(asked) == {"flows": "5", "test": "file", "size": "9", "disk": "0"}


def test_a_search_bounds_its_bursts_to_a_millisecond_and_a_scenario_to_what_it_says() -> None:
    asked = builders.asking(CELL, test="udp", message_bytes=1250, transport="udp", rate=10**8)
    searching = builders.asking(asked, rate=MAX_RATE)
    assert burst(asked, 10**8) is None
    assert (burst(searching, 10**8), burst(searching, 10**5), burst(searching, None)) == (11, 1, None)
    assert burst(builders.asking(asked, burst=3), 10**8) == burst(builders.asking(searching, burst=3), 5) == 3
    assert burst(builders.asking(asked, rate="unlimited", burst=3), None) is None


def test_of_a_stream_of_datagrams_nothing_of_tcp_is_asked() -> None:
    asked = builders.asking(CELL, test="udp", message_bytes=1472, transport="udp", window_bytes=65536, rate=10**8)
    assert asked_of(asked) == {"flows": "5", "window": "65536", "transport": "udp", "size": "1472"}


def test_each_stream_has_its_probes_numbered_after_the_streams() -> None:
    cell = builders.cell(direction=Direction.BOTH, latency_ms=20, parallel=3)
    both = channels([cell], lambda: "a" * 32)
    assert [(channel.endpoint, channel.probing) for channel in both] == [(at, at > 4) for at in range(1, 9)]
    assert [channel.stream for channel in both[4:]] == [channel.stream for channel in both[:4]]
    assert not any(channel.probing for channel in channels([builders.cell()], lambda: "a" * 32))


def test_probes_are_one_flow_of_small_datagrams_with_the_nodes_own_buffers() -> None:
    cell = builders.cell(latency_ms=20)
    sockets = channel_sockets(cell, channels([cell], lambda: "")[-1], sends=True, interval_ms=100, wait_ms=1)
    assert (sockets.flows, sockets.transport, sockets.test, sockets.size) == (1, "udp", "probe", 64)
    assert (sockets.settings, sockets.interval_ms) == (NO_SETTINGS, 20)
