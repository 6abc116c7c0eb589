"""Host settings: given once, changed by the least, restored; a refusal costs its cells and comes with a remedy."""

import re
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock

import builders
import pytest

from rigctl.base.errors import NodeError
from rigctl.paths.preparing import with_advice
from rigctl.records import Cell, Condition, HostSetting, Link, RunPlan
from rigctl.remote.agent import Grant, RefusedError
from rigctl.rig.inventory import Node
from rigctl.runner.conditions import Conditions, buffers_start_at, conditions_of
from rigctl.runner.nodes import Nodes

JUMBO = Condition("jumbo", (HostSetting("mtu", "8192"), HostSetting("sysctl", "0", "net.ipv4.tcp_sack")))
PLAIN = Condition("plain", (HostSetting("sysctl", "1", "net.ipv4.tcp_sack"),))
RESIZE = Condition("resize", (HostSetting("mtu", "8192"),), resize=True)
PLAN = builders.plan(conditions=(JUMBO, PLAIN, RESIZE))
NAMES = ("pi1", "pi2", "pi3", "pi4")


class FakeAgent:
    ended, killed_in = False, ""
    seen = True  # its end is known at once

    def __init__(self, node: str, log: list[str], refuses: str | None) -> None:
        self.node, self.log, self.refuses = node, log, refuses
        self.hello, self.now = SimpleNamespace(unrestored=None), dict[str, str]()

    async def set(self, kind: str, value: str, *, name: str | None, interface: str | None, dry: bool) -> Any:
        if self.killed_in == (name or kind):
            self.ended = self.seen
            raise NodeError(self.node, "the agent ended: killed by SIGKILL")
        if self.refuses == (name or kind):
            raise NodeError(self.node, f"set: {name or kind}: Operation not permitted (EPERM)")
        self.log.append(f"{self.node} set {name or kind}={value}{' on ' + interface if interface else ''}")
        old, self.now[name or kind] = self.now.get(name or kind, "before"), value
        return Grant(old, value)

    def fail(self, _: NodeError) -> None:
        self.ended = True

    async def restore(self) -> int:
        if self.killed_in and not self.seen:
            raise NodeError(self.node, "the connection to the agent was lost")
        self.log.append(f"{self.node} restore")
        self.now.clear()
        return 1


class FakeNodes:
    def __init__(self, refuses: dict[str, str] | None = None) -> None:
        self.log: list[str] = []
        self.refuses = refuses or {}
        self.agents = {name: self.new(name) for name in NAMES}
        self.remembered: dict[tuple[str, str], Any] = {}
        self.lost: dict[str, NodeError] = {}
        self.is_open, self.data_interface = lambda _: True, lambda _: "eth0"
        self.remember = lambda name, fact, value: self.remembered.update({(name, fact): value})
        self.shell = lambda _: AsyncMock(return_value="1\n")
        self.rig = SimpleNamespace(nodes={}, virtual=None)
        self.facts_of: Callable[[str], dict[str, Any]] = lambda _: {}

    def of(self, name: str) -> list[str]:
        """The lines of a node."""
        return [line for line in self.log if line.startswith(name)]

    def new(self, name: str) -> FakeAgent:
        return FakeAgent(name, self.log, self.refuses.get(name))

    async def open(self, names: Iterable[str]) -> dict[str, Any]:
        return {name: self.lost.get(name, (None, self.agents[name])) for name in names}


def cell(condition: str | None, **fields: Any) -> Cell:
    return builders.cell(condition=condition, **fields)


def of(nodes: FakeNodes, plan: RunPlan = PLAN) -> Conditions:
    return Conditions(plan, cast(Nodes, nodes), NAMES)


async def held(first: Cell, plan: RunPlan = PLAN) -> tuple[FakeNodes, Conditions]:
    """Nodes that have the settings of `first`; the log begins after it."""
    conditions = of(nodes := FakeNodes(), plan)
    await conditions.hold(first)
    nodes.log.clear()
    return nodes, conditions


@pytest.mark.parametrize("breaks", [False, True])
async def test_all_nodes_are_set_once_however_many_cells_follow_and_restored_at_the_end(breaks: bool) -> None:
    nodes = FakeNodes()
    end: Any = pytest.raises(RuntimeError, match="boom") if breaks else nullcontext()
    with end:
        async with conditions_of(PLAN, cast(Nodes, nodes), NAMES, nodes.log.append) as conditions:
            for _ in range(3):
                await conditions.hold(cell("jumbo"))
            if breaks:
                raise RuntimeError("boom")
    assert nodes.of("pi3") == ["pi3 set mtu=8192 on eth0", "pi3 set net.ipv4.tcp_sack=0", "pi3 restore"]
    assert len(nodes.log) == 3 * len(NAMES)
    assert nodes.remembered["pi1", "condition jumbo"] == {"mtu": "before -> 8192", "net.ipv4.tcp_sack": "before -> 0"}


async def test_the_next_condition_begins_from_the_old_values() -> None:
    nodes, conditions = await held(cell("jumbo"))
    await conditions.hold(cell("plain"))
    await conditions.hold(cell(None))
    for name in NAMES:
        assert nodes.of(name) == [f"{name} restore", f"{name} set net.ipv4.tcp_sack=1", f"{name} restore"]


async def test_the_link_is_waited_for_after_settings_are_set_and_after_they_are_restored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[tuple[str, bool]] = []

    async def wait(node: str, *_: object, renegotiates: bool) -> None:
        waited.append((node, renegotiates))

    monkeypatch.setattr("rigctl.runner.conditions.await_link", wait)
    awake = Condition("awake", (HostSetting("eee", "off"),))
    _, conditions = await held(cell("awake"), builders.plan(conditions=(awake, JUMBO, PLAIN)))
    assert sorted(waited) == [(name, True) for name in NAMES]
    for condition, renegotiates in (("jumbo", [True]), ("plain", [False]), (None, [])):
        waited.clear()
        await conditions.hold(cell(condition))
        assert sorted(waited) == [(name, each) for name in NAMES for each in renegotiates], condition


async def test_the_link_is_waited_for_where_a_refused_condition_was_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    waited = AsyncMock()
    monkeypatch.setattr("rigctl.runner.conditions.await_link", waited)
    awake = Condition("awake", (HostSetting("eee", "off"), HostSetting("sysctl", "0", "net.ipv4.tcp_sack")))
    nodes = FakeNodes({"pi1": "net.ipv4.tcp_sack"})
    with pytest.raises(NodeError, match="pi1: condition awake"):
        await of(nodes, builders.plan(conditions=(awake,))).hold(cell("awake"))
    assert nodes.of("pi1") == ["pi1 set eee=off on eth0", "pi1 restore"]
    assert waited.await_count == len(NAMES)


async def test_where_buffers_start_follows_the_window_and_nothing_else_is_set_again() -> None:
    nodes, conditions = await held(cell("resize", resize=True, window_bytes=32768))
    await conditions.hold(cell("resize", resize=True, window_bytes=65536))
    assert nodes.of("pi1") == [f"pi1 set net.ipv4.tcp_{way}mem=4096 131072 6291456" for way in "rw"]
    assert buffers_start_at(1024)[1].value == "4096 4096 6291456"  # never below the least nor above the most
    assert buffers_start_at(8 * 1024**2)[1].value == "4096 16777216 16777216"


async def test_what_follows_a_changed_setting_is_set_again() -> None:
    few, many = (
        Condition(name, (HostSetting("mtu", "8192"), HostSetting("channels", name, "rx"), HostSetting("rps", "off")))
        for name in ("2", "4")
    )
    nodes, conditions = await held(cell("2"), builders.plan(conditions=(few, many)))
    await conditions.hold(cell("4"))
    assert nodes.of("pi1") == ["pi1 set rx=4 on eth0", "pi1 set rps=00000000 on eth0"]  # of the new queues, too
    assert nodes.remembered["pi1", "condition 4"]["channels rx"] == "before -> 4"  # not what the last condition left


async def test_settings_whose_agent_ended_hold_no_more_until_its_successor_has_them() -> None:
    nodes, conditions = await held(cell("jumbo"))
    conditions.check(cell("jumbo"))
    nodes.agents["pi2"].ended = True
    nodes.agents["pi2"] = nodes.new("pi2")  # opened anew by somebody else, without the settings
    with pytest.raises(NodeError, match="pi2: condition jumbo: the agent that applied the settings ended"):
        conditions.check(cell("jumbo"))
    conditions.check(cell(None))
    await conditions.hold(cell("jumbo"))
    conditions.check(cell("jumbo"))
    assert nodes.log == ["pi2 set mtu=8192 on eth0", "pi2 set net.ipv4.tcp_sack=0"]


async def test_a_refusal_leaves_nothing_half_done_is_told_in_the_nodes_words_and_not_tried_again() -> None:
    conditions = of(nodes := FakeNodes({"pi4": "net.ipv4.tcp_sack"}))
    for _ in range(2):
        with pytest.raises(NodeError, match=r"pi4: condition jumbo: set: net.ipv4.tcp_sack: .*\(EPERM\)"):
            await conditions.hold(cell("jumbo"))
    assert nodes.of("pi4") == ["pi4 set mtu=8192 on eth0", "pi4 restore"]
    await of(FakeNodes({"pi4": "mtu"})).hold(cell("jumbo", pairs=builders.PAIRS[:1]))  # which do not need that node


async def test_a_node_whose_agent_ended_is_contacted_once_more_and_what_stays_changed_is_told() -> None:
    nodes, conditions = await held(cell("jumbo"))
    for name in NAMES[:3]:
        nodes.agents[name].ended = True
        nodes.agents[name] = nodes.new(name)
    nodes.agents["pi2"].hello.unrestored = "mtu of eth0: No such device"
    nodes.lost["pi3"] = NodeError("pi3", "no route to it")
    told = await conditions.release()
    assert [line.partition(":")[0] for line in told] == ["pi2", "pi3"]
    assert all(said in told[0] for said in ("mtu, net.ipv4.tcp_sack", "No such device", "rigctl check"))
    assert all(said in told[1] for said in ("no route to it", "rigctl check"))
    assert nodes.log == ["pi4 restore"]


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("setting", ["mtu", "net.ipv4.tcp_sack"])
async def test_a_node_whose_agent_is_killed_in_a_change_is_contacted_once_more(setting: str, seen: bool) -> None:
    conditions = of(nodes := FakeNodes())
    nodes.agents["pi2"].killed_in, nodes.agents["pi2"].seen = setting, seen
    with pytest.raises(NodeError, match=r"killed by SIGKILL|was lost"):
        await conditions.hold(cell("jumbo"))
    nodes.lost["pi2"] = NodeError("pi2", "no route to it")
    (line,) = await conditions.release()
    assert re.match(rf"pi2: no route to it\. It may still have the settings of a condition \(.*{setting}\)", line)


def nodes_with(*, sudo: bool = False, virtual: str | None = None, said: str = "reno cubic") -> Nodes:
    rig = SimpleNamespace(virtual=virtual, nodes={"pi1": Node("pi1", "pi1", Link(None, None), sudo=sudo)})
    return cast(
        Nodes,
        SimpleNamespace(rig=rig, facts_of=lambda _: {"sysctls": {"net.ipv4.tcp_available_congestion_control": said}}),
    )


ROOT = ". This needs root: log in as root, or give node pi1 `sudo: true` in the rig file"
THERE = ". Its net.ipv4.tcp_available_congestion_control is reno cubic."
LOAD = f"{THERE} Load bbr there as root: modprobe tcp_bbr"
ONLY = ". Only root may use bbr: see net.ipv4.tcp_allowed_congestion_control, or set `sudo: true`"


@pytest.mark.parametrize(
    ("nodes", "error", "said", "advice"),
    [
        (nodes_with(), "EPERM", "mtu of eth0: Operation not permitted", ROOT),
        (nodes_with(sudo=True), "EPERM", "mtu: no", ""),  # root would not help
        (nodes_with(virtual="namespaces"), "EPERM", "mtu: no", ""),
        (nodes_with(), "ENOENT", "sysctl net.ipv4.tcp_congestion_control: No such file", LOAD),
        (nodes_with(), "ENOENT", "TCP_CONGESTION: No such", LOAD),
        (nodes_with(said="reno cubic bbr"), "EPERM", "TCP_CONGESTION: not permitted", ONLY),
        (nodes_with(), "EINVAL", "mtu: Invalid argument", ""),
    ],
)
async def test_a_refusal_has_the_advice_that_helps(nodes: Nodes, error: str, said: str, advice: str) -> None:
    work = AsyncMock(side_effect=RefusedError("pi1", "set", error, said))
    with pytest.raises(NodeError, match=f"^{re.escape(f'pi1: set: {said} ({error}){advice}')}$"):
        asked, known = "bbr" if "CONGESTION" in said.upper() else None, nodes.facts_of("pi1")
        await with_advice(work(), nodes.rig.nodes["pi1"], known, asked, is_virtual=nodes.rig.virtual is not None)
