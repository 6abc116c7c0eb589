"""What the counters of the data interfaces say of where the data of a repetition went."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from rigctl.base.errors import NodeError
from rigctl.records import Direction, Flow, NicCounters, NodeUsage, Pair, Side
from rigctl.runner.nodes import Nodes
from rigctl.runner.repetition import misrouted_reason

MB = 1_000_000
FLOW = Flow(Pair("a", "b"), Direction.FORWARD, 1, Side(100 * MB, 0, 1), Side(100 * MB, 0, 1))


class Route:
    """Nodes whose `ip route get` says what a test wants; `asked` are those that were asked."""

    def __init__(self, said: str) -> None:
        self.said, self.asked = said, list[str]()

    def data_address(self, name: str) -> str:
        if name == "gone":
            raise NodeError(name, "no address")
        return {"a": "10.0.0.1", "b": "10.0.0.2"}[name]

    def data_interface(self, _: str) -> str:
        return "eth1"

    def shell(self, name: str) -> Callable[[str], Awaitable[str]]:
        async def run(_: str) -> str:
            self.asked.append(name)
            return self.said

        return run


def verdict(
    out_bytes: int | None, in_bytes: int | None = 101 * MB, duration_s: float = 2.0, said: str = "", flow: Flow = FLOW
) -> tuple[str | None, list[str]]:
    nodes = Route(said)
    usage = (NodeUsage("a", nic=NicCounters(tx_bytes=out_bytes)), NodeUsage("b", nic=NicCounters(rx_bytes=in_bytes)))
    found = asyncio.run(misrouted_reason((flow,), usage, duration_s, cast("Nodes", nodes)))
    return found, nodes.asked


@pytest.mark.parametrize(("out_bytes", "in_bytes"), [(101 * MB, 101 * MB), (None, None), (60 * MB, 900 * MB)])
def test_interfaces_that_carried_the_payload_and_unknown_counters_ask_nothing_of_the_nodes(
    out_bytes: int | None, in_bytes: int | None
) -> None:
    assert verdict(out_bytes, in_bytes, 60.0) == (None, [])


def test_data_that_left_by_another_interface_are_named_with_it() -> None:
    reason, asked = verdict(12 * MB, said="@route 10.0.0.2 10.0.0.2 from 10.0.0.1 dev eth0 uid 0\n")
    assert asked == ["a"]
    assert reason == "a: eth1 carried 12 of 100 MB sent: data to b leave by eth0 (a: ip route get 10.0.0.2)"


def test_counters_alone_are_believed_of_tests_that_last_longer_than_drivers_take_to_update_them() -> None:
    right = "@route 10.0.0.2 10.0.0.2 from 10.0.0.1 dev eth1 uid 0\n"
    assert verdict(0, duration_s=1.0, said=right)[0] is None
    assert "a: eth1 carried 0 of 100 MB sent" in (verdict(0, duration_s=10.0, said=right)[0] or "")
    back = right.replace("10.0.0.2", "10.0.0.1")
    assert "b: eth1 carried 3 of 100 MB received" in (verdict(101 * MB, 3 * MB, 10.0, back)[0] or "")


def test_peers_on_the_same_host_and_interfaces_below_a_bond_have_no_verdict() -> None:
    same_host = "@route 10.0.0.2 local 10.0.0.2 dev lo\n@route 10.0.0.1 local 10.0.0.1 dev lo\n"
    assert verdict(0, 0, 10.0, same_host)[0] is None
    assert verdict(0, 0, 10.0, "@above bond0\n@route 10.0.0.2 10.0.0.2 dev bond0\n")[0] is None


def test_little_data_have_no_verdict() -> None:
    little = Flow(Pair("a", "b"), Direction.FORWARD, 1, Side(9000, 0, 1), Side(9000, 0, 1))
    assert verdict(0, 0, 10.0, flow=little) == (None, [])
