"""Host settings on a node: what a card takes is told before anything is changed, by `check` as by a run."""

from typing import Any, cast

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
    assert agent.asked == [
        ("mtu", "1400", None, "eth0", True),
        ("sysctl", "0", "net.ipv4.tcp_sack", None, True),
        ("rps", "00000006", None, "eth0", True),
    ]


async def test_the_words_of_the_agent_are_kept_and_each_condition_is_named() -> None:
    said = "set: rings rx of eth0: Invalid argument; 9000 was asked for (EINVAL)"
    assert await refused(HostSetting("rings", "9000", "rx")) == (f"condition one: {said}", f"condition two: {said}")


async def test_coalescing_that_the_driver_does_not_have_is_refused_with_what_it_has() -> None:
    text = (
        "condition one: set: coalesce rx_frames of eth0: Not supported; 20 was asked for, "
        "the card takes rx_usecs, adaptive_rx (EOPNOTSUPP)"
    )
    settings = (HostSetting("coalesce", "5", "rx_usecs"), HostSetting("coalesce", "20", "rx_frames"))
    assert await refused(*settings) == (text,)
    assert await refused(HostSetting("coalesce", "0", "tx_frames")) == ()  # that is so already


async def test_processors_that_the_node_does_not_have_are_refused_with_those_it_has() -> None:
    text = "condition one: set: rps of eth0: Invalid argument; 2-4 was asked for, the node has 0-3 (EINVAL)"
    assert (await refused(HostSetting("rps", "2-4")))[0] == text
    assert await refused(HostSetting("rps", "all"), HostSetting("rps", "off")) == ()


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
async def test_what_is_in_effect_stands_beside_what_was_asked_for(
    setting: HostSetting, got: tuple[str, str], text: str
) -> None:
    class Answering(FakeAgent):
        async def set(self, kind: str, value: str, **_: Any) -> Granted:
            return Granted(*got)

    assert granted_text(setting, await set_on(of(Answering()), run, setting, "eth0")) == text
