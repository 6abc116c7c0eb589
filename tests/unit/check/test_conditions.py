"""Host settings on a node: what a card takes is told before anything is changed, by `check` as by a run."""

from typing import cast
from unittest.mock import AsyncMock

import pytest

from rigctl.check.conditions import granted_text, refusals, set_on
from rigctl.records import Condition, HostSetting
from rigctl.remote.agent import Agent, Granted, RefusedError

COALESCING = "Adaptive RX: off  TX: n/a\nrx-usecs: 3\nrx-frames: n/a\ntx-usecs: n/a\n"


class FakeAgent:
    def __init__(self) -> None:
        self.node, self.ended = "a", False
        self.asked: list[tuple[str, str, str | None, str | None, bool]] = []

    async def set(self, kind: str, value: str, *, name: str | None, interface: str | None, dry: bool) -> Granted:
        self.asked.append((kind, value, name, interface, dry))
        if kind == "rings":
            raise RefusedError("a", "set", "EINVAL", "rings rx of eth0: Invalid argument; 9000 was asked for")
        return Granted("0", value)


def of(agent: FakeAgent) -> Agent:
    return cast(Agent, agent)


async def run(command: str) -> str:
    return COALESCING if "ethtool -c eth0" in command else "0-3\n"


async def refused(*settings: HostSetting, interface: str | None = "eth0") -> tuple[str, ...]:
    return await refusals(of(FakeAgent()), run, (Condition("one", settings), Condition("two", settings[:1])), interface)


async def test_a_check_asks_for_every_setting_and_changes_none() -> None:
    agent = FakeAgent()
    settings = (HostSetting("mtu", "1400"), HostSetting("sysctl", "0", "net.ipv4.tcp_sack"), HostSetting("rps", "1-2"))
    assert await refusals(of(agent), run, (Condition("one", settings),), "eth0") == ()
    sack = ("sysctl", "0", "net.ipv4.tcp_sack", None, True)
    assert agent.asked == [("mtu", "1400", None, "eth0", True), sack, ("rps", "00000006", None, "eth0", True)]


RINGS = "set: rings rx of eth0: Invalid argument; 9000 was asked for (EINVAL)"
TAKES = "Not supported; 20 was asked for, the card takes rx_usecs, adaptive_rx (EOPNOTSUPP)"
HAS = "set: rps of eth0: Invalid argument; 2-4 was asked for, the node has 0-3 (EINVAL)"
FEW, MANY = HostSetting("coalesce", "5", "rx_usecs"), HostSetting("coalesce", "20", "rx_frames")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ([HostSetting("rings", "9000", "rx")], [f"one: {RINGS}", f"two: {RINGS}"]),
        ([FEW, MANY], [f"one: set: coalesce rx_frames of eth0: {TAKES}"]),
        ([HostSetting("coalesce", "0", "tx_frames")], []),  # that is so already
        ([HostSetting("rps", "2-4")], [f"one: {HAS}", f"two: {HAS}"]),
        ([HostSetting("rps", "all"), HostSetting("rps", "off")], []),
    ],
)
async def test_what_a_node_does_not_take_is_refused_in_its_words(settings: list[HostSetting], said: list[str]) -> None:
    assert await refused(*settings) == tuple(f"condition {each}" for each in said)


async def test_without_a_data_interface_a_setting_of_it_is_refused() -> None:
    found = await refused(HostSetting("qdisc", "fq"), HostSetting("governor", "performance"), interface=None)
    assert found[0] == "condition one: qdisc: its data interface is not known"


@pytest.mark.parametrize(
    ("setting", "got", "text"),
    [
        (HostSetting("mtu", "9000"), ("1500", "9000"), "1500 -> 9000"),
        (HostSetting("rings", "300", "rx"), ("256", "512"), "256 -> 512 (300 was asked for)"),
        (HostSetting("rps", "all"), ("0", "f"), "off -> 0-3"),
        (HostSetting("qdisc", "pfifo"), ("noqueue", "pfifo:7267:e8030000"), "noqueue (default) -> pfifo limit 1000"),
    ],
)
async def test_what_is_in_effect_stands_beside_the_request(
    setting: HostSetting, got: tuple[str, str], text: str
) -> None:
    answering = AsyncMock(set=AsyncMock(return_value=Granted(*got)))
    assert granted_text(setting, await set_on(answering, run, setting, "eth0")) == text
