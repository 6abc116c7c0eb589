"""From a cell to the orders of its agents."""

from dataclasses import replace
from itertools import count
from typing import Any

import builders
import pytest
from cases import from_file

from rigctl.measure.orders import burst, channels
from rigctl.measure.orders import sockets as channel_sockets
from rigctl.protocol.orders import Listen
from rigctl.records import Cell, Direction, Pair
from rigctl.settings import MAX, NO_SETTINGS

CELL = Cell(1, "tcp", (Pair("a", "b"), Pair("c", "d")), 10.0, 0.0, 5)


@pytest.mark.parametrize(("direction", "ends"), [("forward", "ab cd"), ("reverse", "ba dc"), ("both", "ab ba cd dc")])
def test_every_pair_is_a_stream_or_two_each_with_a_token_of_its_own(direction: str, ends: str) -> None:
    tokens = count(1)
    found = channels([replace(CELL, direction=Direction(direction))], lambda: f"token{next(tokens)}")
    numbers = [(channel.endpoint, "".join(channel.stream.ends), channel.token) for channel in found]
    assert numbers == [(at, each, f"token{at}") for at, each in enumerate(ends.split(), 1)]


@from_file
def test_an_end_is_ordered_what_was_asked_for(asked: dict[str, Any], sends: bool, ordered: str) -> None:
    cell = builders.asking(CELL, **asked)
    sockets = channel_sockets(cell, channels([cell], lambda: "token")[0], sends=sends, interval_ms=100, wait_ms=5000)
    order = Listen(1, "::1", replace(sockets, token="0" * 32)).to_line(1).decode()
    words = f"1 listen endpoint=1 address=::1 token={'0' * 32} flows=5 interval_ms=100 wait_ms=5000 {ordered}"
    assert sorted(order.split()) == sorted(words.split())


def test_a_search_bounds_its_bursts_to_a_millisecond_and_a_scenario_to_what_it_says() -> None:
    asked = builders.asking(CELL, test="udp", message_bytes=1250, transport="udp", rate=10**8)
    searching = builders.asking(asked, rate=MAX)
    assert burst(asked, 10**8) is None
    assert (burst(searching, 10**8), burst(searching, 10**5), burst(searching, None)) == (11, 1, None)
    assert burst(builders.asking(asked, burst=3), 10**8) == burst(builders.asking(searching, burst=3), 5) == 3
    assert burst(builders.asking(asked, rate="unlimited", burst=3), None) is None


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


def test_a_group_is_sent_to_once_and_known_by_one_token() -> None:
    """The first pair's sender sends, the others wait; the last destinations watch, as the scenario says."""
    tokens = count(1)
    pairs = tuple(Pair("a", node) for node in "bcd")
    cell = builders.asking(
        replace(CELL, test="multicast", pairs=pairs, parallel=1, transport="udp", message_bytes=100),
        **{"unjoined": 1, "join_at_ms": 500, "leave_before_ms": 700, "multicast_group": "239.1.2.3", "ttl": 4},
    )
    found = channels([cell, replace(cell, number=2)], lambda: f"token{next(tokens)}")
    assert [channel.token for channel in found] == ["token1"] * 3 + ["token2"] * 3
    ends = [
        [channel_sockets(cell, channel, sends=sends, interval_ms=100, wait_ms=1) for channel in found[:3]]
        for sends in (True, False)
    ]
    assert [[one.role for one in each] for each in ends] == [["send", "wait", "wait"], ["join", "join", "watch"]]
    listen, connect = (
        Listen(1, "::1", replace(one[0], token="0" * 32)).to_line(1).decode().split() for one in ends[::-1]
    )
    assert {"join_ms=500", "leave_ms=700", "group=239.1.2.3", "transport=udp", "test=multicast"} <= {*listen}
    assert {"ttl=4", "group=239.1.2.3"} <= {*connect}
    assert not {"ttl=4"} & {*listen} | {"join_ms=500"} & {*connect}
