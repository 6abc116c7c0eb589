"""Host settings on a node: what a card takes is told before anything is changed, by `check` as by a run."""

import asyncio
from types import SimpleNamespace
from unittest.mock import AsyncMock, call

import pytest

from rigctl.base.errors import NodeError
from rigctl.hosts import setting
from rigctl.hosts.setting import ask_refusals, await_link, set_on, setting_text
from rigctl.records import Condition, HostSetting
from rigctl.remote.agent import Grant, RefusedError

PI_4 = "2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq    link/ether dc:a6 minmtu 68 maxmtu 1500 addrgen"
COALESCING = "Adaptive RX: off  TX: n/a\nrx-usecs: 3\nrx-frames: n/a\ntx-usecs: n/a\n"


def fake() -> AsyncMock:
    """Return an agent that takes everything but rings."""

    async def answer(kind: str, value: str, **_: object) -> Grant:
        if kind == "rings":
            raise RefusedError("a", "set", "EINVAL", "rings rx of eth0: Invalid argument; 9000 was asked for")
        return Grant("0", value)

    return AsyncMock(node="a", ended=False, set=AsyncMock(side_effect=answer))


async def run(command: str) -> str:
    if "online" in command:
        return "@@rigctl files\n/sys/devices/system/cpu/online:0-3\n"
    if "governors" in command:
        return "@@rigctl files\n/sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors:performance ondemand\n"
    said = {
        "ip -d": PI_4,
        "tee": "tee: /proc/sys/net/ipv4/tcp_sack: Invalid argument",
        "tc": "Error: Specified qdisc kind is unknown.",
    }
    said |= {"ethtool -k": "large-receive-offload: off [fixed]\ngeneric-receive-offload: on"}
    return f"@@rigctl it\n{next((each for sign, each in said.items() if f'{sign} ' in command), COALESCING)}\n"


async def plain(command: str) -> str:
    return (await run(command)).replace("Invalid argument", "1")


async def refused(*settings: HostSetting, interface: str | None = "eth0") -> tuple[str, ...]:
    return await ask_refusals(fake(), run, (Condition("one", settings), Condition("two", settings[:1])), interface)


async def test_a_check_asks_for_every_setting_and_changes_none() -> None:
    agent = fake()
    settings = (HostSetting("mtu", "1400"), HostSetting("sysctl", "0", "net.ipv4.tcp_sack"), HostSetting("rps", "1-2"))
    assert await ask_refusals(agent, plain, (Condition("one", settings),), "eth0") == ()
    sack = call("sysctl", "0", name="net.ipv4.tcp_sack", interface=None, dry=True)
    mtu, rps = (call(*each, name=None, interface="eth0", dry=True) for each in (("mtu", "1400"), ("rps", "00000006")))
    assert agent.set.await_args_list == [mtu, sack, rps]


JUMBO = "set: mtu of eth0: Invalid argument; 9000 was asked for, the card takes 68 to 1500 (EINVAL)"
GOVERNOR = "set: governor: Invalid argument; fast was asked for, the node has performance ondemand (EINVAL)"
RINGS = "set: rings rx of eth0: Invalid argument; 9000 was asked for (EINVAL)"
TAKES = "Not supported; 20 was asked for, the card takes rx_usecs, adaptive_rx (EOPNOTSUPP)"
HAS = "set: rps of eth0: Invalid argument; 2-4 was asked for, the node has processors 0-3 (EINVAL)"
SACK, BACKLOG = "sysctl net.ipv4.tcp_sack", "sysctl net.core.somaxconn"
NO_FQ = "No such file or directory; this kernel has no fq"
OFF = HostSetting("offload", "off", "gro")
FEW, MANY = HostSetting("coalesce", "5", "rx_usecs"), HostSetting("coalesce", "20", "rx_frames")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ([HostSetting("mtu", "1500")], []),
        ([HostSetting("mtu", "9000")], [f"one: {JUMBO}", f"two: {JUMBO}"]),
        ([HostSetting("governor", "ondemand")], []),
        ([HostSetting("governor", "fast")], [f"one: {GOVERNOR}", f"two: {GOVERNOR}"]),
        ([HostSetting("rings", "9000", "rx")], [f"one: {RINGS}", f"two: {RINGS}"]),
        ([FEW, MANY], [f"one: set: coalesce rx_frames of eth0: {TAKES}"]),
        ([HostSetting("coalesce", "0", "tx_frames")], []),  # that is so already
        ([HostSetting("rps", "2-4")], [f"one: {HAS}", f"two: {HAS}"]),
        ([HostSetting("rps", "all"), HostSetting("rps", "off")], []),
        ([HostSetting("offload", "off", "lro"), HostSetting("offload", "off", "gro")], []),
        ([OFF, HostSetting("offload", "on", "lro")], ["one: set: offload lro of eth0: Not supported (EOPNOTSUPP)"]),
        ([OFF, HostSetting("sysctl", "99", "net.ipv4.tcp_sack")], [f"one: set: {SACK}: Invalid argument (EINVAL)"]),
        ([OFF, HostSetting("sysctl", "-5", "net.core.somaxconn")], [f"one: set: {BACKLOG}: Invalid argument (EINVAL)"]),
        ([OFF, HostSetting("qdisc", "fq limit 10")], [f"one: set: qdisc of eth0: {NO_FQ} (ENOENT)"]),
    ],
)
async def test_what_a_node_does_not_take_is_refused_in_its_words(settings: list[HostSetting], said: list[str]) -> None:
    assert await refused(*settings) == tuple(f"condition {each}" for each in said)


@pytest.mark.parametrize(
    "name", ["vm.swappiness", "net.core.netdev_max_backlog", "net.ipv4.tcp_allowed_congestion_control"]
)
async def test_a_check_writes_no_sysctl_that_networks_share(name: str) -> None:
    asked: list[str] = []

    async def listen(command: str) -> str:
        asked.append(command)
        return await plain(command)

    assert await ask_refusals(fake(), listen, (Condition("one", (HostSetting("sysctl", "9", name),)),), "eth0") == ()
    assert [command for command in asked if "tee" in command or "unshare -n " in command] == []


async def test_without_a_data_interface_a_setting_of_it_is_refused() -> None:
    found = await refused(HostSetting("qdisc", "fq"), HostSetting("governor", "performance"), interface=None)
    assert found[0] == "condition one: qdisc: the data interface is not known"


@pytest.mark.parametrize(
    ("setting", "got", "text"),
    [
        (HostSetting("mtu", "9000"), ("1500", "9000"), "1500 -> 9000"),
        (HostSetting("rings", "300", "rx"), ("256", "512"), "256 -> 512 (300 was asked for)"),
        (HostSetting("rps", "all"), ("0", "f"), "off -> 0-3"),
        (HostSetting("qdisc", "pfifo"), ("noqueue", "pfifo:7267:e8030000"), "noqueue (default) -> pfifo limit 1000"),
    ],
)
async def test_the_effect_stands_beside_the_request(setting: HostSetting, got: tuple[str, str], text: str) -> None:
    answering = AsyncMock(set=AsyncMock(return_value=Grant(*got)))
    assert setting_text(setting, await set_on(answering, run, setting, "eth0")) == text


class Cable:
    """A link whose state is that of the next look, and a clock that moves by 0.5 s with each look."""

    def __init__(self, states: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.states, self.looks = states, 0
        monkeypatch.setattr(setting, "time", SimpleNamespace(monotonic=lambda: self.looks / 2))
        monkeypatch.setattr(setting, "asyncio", SimpleNamespace(sleep=AsyncMock(), timeout=asyncio.timeout))

    async def __call__(self, _: str) -> str:
        self.looks += 1
        if self.looks > len(self.states):
            raise TimeoutError
        return f"@@rigctl files\n/sys/class/net/eth0/carrier:{self.states[self.looks - 1]}\n"


@pytest.mark.parametrize(
    ("states", "renegotiates", "looks"),
    [
        ("111111", False, 1),
        ("001111", False, 3),
        ("111111", True, 4),  # up for 2 s
        ("11100001111", True, 11),  # it goes down only after a moment
        ("110110110011111", True, 14),
    ],
)
async def test_a_link_that_negotiates_again_has_to_stay_up(
    states: str, renegotiates: bool, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await await_link("a", cable := Cable(states, monkeypatch), "eth0", renegotiates=renegotiates)
    assert cable.looks == looks


async def test_a_link_that_does_not_come_back_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NodeError, match="a: eth0 has no link 10 s after a change of its settings"):
        await await_link("a", Cable("1000", monkeypatch), "eth0", renegotiates=True)
