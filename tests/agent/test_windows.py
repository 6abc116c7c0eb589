"""The agent for Windows under Wine: traffic with Linux both ways, facts, refusals, the lock, kills, rubbish.

Wine has no SIO_TCP_INFO: what Windows tells by it stays unknown here. More tests run under Wine in `make torture`.
"""

import os
import re
import socket
import string
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from processes import all_commands, eventually, output_of
from talk import (
    LONG_MS,
    Report,
    Start,
    Talk,
    begin,
    close,
    flowing,
    joined,
    progressed,
    reports,
    served,
    settings,
    stopped,
)
from torture import SEED, TIMES, told, wait_at_random

KINDS = [
    ("", ""),
    ("transport=udp size=1400 dscp=46", "rate=20000000"),
    ("test=pingpong size=64", "iterations=20"),
    ("transport=udp test=pingpong size=64", "iterations=20"),
    ("test=blast size=4096", "iterations=20"),
    ("test=file size=3000001 disk=1 folder={}", ""),
    ("transport=udp test=probe size=64", ""),
]
Pair = dict[str, Talk]


@pytest.fixture(scope="module")
def agents(windows: Path, release: Path) -> Iterator[Pair]:
    with Talk([str(windows)]) as there, Talk([str(release)]) as here:
        yield {"windows": there, "linux": here}


@pytest.fixture
def pair(agents: Pair) -> Iterator[Pair]:
    """Yield an agent of each system; then close their endpoints and forget what they told."""
    yield agents
    for agent in agents.values():
        agent.ask("close endpoint=1")
        agent.forget_events()


@pytest.fixture
def starts(windows: Path) -> Iterator[Start]:
    with ExitStack() as stack:
        yield lambda *arguments, **how: stack.enter_context(Talk([str(windows)], *arguments, **how))


def measured(receiver: Talk, sender: Talk, what: str, how: str = "", **more: Any) -> tuple[Report, Report]:
    """Return the reports of traffic that ends after its iterations or its file, or else once bytes have arrived."""
    joined(receiver, sender, extra=what, **more)
    for agent in (receiver, sender):  # each at a time of its own clock: Wine's differs from that of Python
        begin(agent, how=how, at_ns=agent.ask("clock")["clock_ns"] + 30_000_000)
    if "iterations" in how or "file" in what:
        return reports(receiver, sender)
    progressed(receiver)
    return stopped(receiver, sender)


@pytest.mark.parametrize("to", ["windows", "linux"])
@pytest.mark.parametrize(("what", "how"), KINDS)
def test_what_a_sender_counts_comes_to_the_other_system(
    pair: Pair, tmp_path: Path, to: str, what: str, how: str
) -> None:
    receiver, sender = pair[to], pair["linux" if to == "windows" else "windows"]
    got, sent = measured(receiver, sender, what.format(tmp_path), how, flows=2)
    assert sum(total["bytes"] for total in got.totals.values()) > 0
    for flow in (0, 1):
        came, went = got.totals[flow]["bytes"], sent.totals[flow]["bytes"]
        if "udp" in what:  # a busy host loses datagrams; a sender that waits for answers counts those as its bytes
            assert got.datagrams[flow]["datagrams"] <= sent.datagrams[flow]["datagrams"]
        else:
            assert came == went
        last = [rows[-1][1] if rows else 0 for rows in (got.rows[flow], sent.rows[flow])]  # a late flow has none
        assert last == [came, went] or "probe" in what
    of_windows = got if to == "windows" else sent
    assert of_windows.totals[0]["retransmits"] is of_windows.totals[0]["mss"] is None
    assert of_windows.last["agent_cpu_us"] is not None
    for flow, counts in got.datagrams.items() if "dscp" in what else ():
        assert got.totals[flow]["marks"] == [[46 << 2, counts["datagrams"]]] or counts["datagrams"] == 0
    close(receiver, sender)
    assert list(tmp_path.iterdir()) == []


def ports_of_datagrams(sender: Talk) -> list[int]:
    """Return the receiver's port of each flow of datagrams."""
    lines = [line.split() for line in output_of(["ss", "-Huanp"]).splitlines()]
    return [int(words[4].rpartition(":")[2]) for words in lines if f",pid={sender.process.pid}," in words[-1]]


@pytest.mark.parametrize("flows", [1, 10])
@pytest.mark.parametrize(("what", "how"), [("", "rate=51200"), ("test=pingpong", "iterations=20"), ("test=probe", "")])
def test_each_flow_of_datagrams_to_windows_has_a_port_and_its_own_datagrams(
    pair: Pair, flows: int, what: str, how: str
) -> None:
    """Windows gives all datagrams of a port to one socket. The first flow has the port of the connections."""
    receiver, sender = pair["windows"], pair["linux"]
    port = joined(receiver, sender, flows=flows, extra=f"transport=udp size=64 {what}")
    ports = ports_of_datagrams(sender)
    assert (len(ports), len(set(ports)), port in ports) == (flows, flows, True)
    for agent, duration_ms in ((receiver, LONG_MS), (sender, 300)):  # the receiver takes what comes, however late
        begin(agent, duration_ms, how, agent.ask("clock")["clock_ns"] + 30_000_000)
    got, sent = reports(receiver, sender)
    for flow in range(flows):
        assert got.datagrams[flow]["datagrams"] == sent.datagrams[flow]["datagrams"] >= 1
        assert got.datagrams[flow]["strays"] == sent.datagrams[flow]["strays"] == 0


PORT = 10_000 + os.getpid() % 2500 * 8
"""The first of eight ports that no other test has. The kernel chooses higher ones. Wine has UDP at 127.0.0.1 only."""


@pytest.mark.parametrize(("what", "how"), [("", ""), ("transport=udp size=64", "rate=800000")])
def test_on_windows_a_test_can_follow_at_once_on_the_only_port(pair: Pair, what: str, how: str) -> None:
    """A stranger's connection, too, is reset, so that nothing is left at the port, which is bound exclusively."""
    receiver, sender = pair["windows"], pair["linux"]
    keys = f"endpoint=1 address=127.0.0.1 {settings(extra=what)}"
    for _ in range(3):
        assert receiver.ask(f"listen {keys} first_port={PORT} last_port={PORT}")["port"] == PORT
        with socket.create_connection(("127.0.0.1", PORT)) as stranger:
            stranger.sendall(bytes(20))
            with pytest.raises(ConnectionResetError):
                stranger.recv(1)
        assert sender.ask(f"connect {keys} port={PORT} bind=127.0.0.1")["ok"]
        assert receiver.ask("ready endpoint=1")["ok"]
        for agent in (receiver, sender):
            begin(agent, 100, how, agent.ask("clock")["clock_ns"] + 30_000_000)
        reports(receiver, sender)
        close(receiver, sender)


def test_flows_of_datagrams_to_windows_take_the_ports_of_the_receivers_range(pair: Pair) -> None:
    receiver, sender = pair["windows"], pair["linux"]
    keys = f"endpoint=1 address=127.0.0.1 {settings(flows=3, extra='transport=udp size=64')}"
    port = receiver.ask(f"listen {keys} first_port={PORT} last_port={PORT + 3}")["port"]
    assert sender.ask(f"connect {keys} port={port} bind=127.0.0.1")["ok"]
    assert set(ports_of_datagrams(sender)) <= set(range(PORT, PORT + 4))
    close(receiver, sender)
    port = receiver.ask(f"listen {keys} first_port={PORT} last_port={PORT + 1}")["port"]
    assert not sender.ask(f"connect {keys} port={port} bind=127.0.0.1")["ok"]
    ready = receiver.ask("ready endpoint=1")
    assert ready["error"] == "EADDRINUSE"
    told = rf"flow \d at 127\.0\.0\.1 port {PORT}: a port for its datagrams: Address already in use"
    assert re.fullmatch(told, ready["message"])


@pytest.mark.parametrize(
    ("order", "error", "message"),
    [
        ("listen mss=1000", "EOPNOTSUPP", "mss: "),
        ("listen congestion=cubic", "EOPNOTSUPP", "congestion: "),
        ("listen mptcp=1", "EOPNOTSUPP", "mptcp: "),
        ("listen placement=nic", "EINVAL", "placement: "),
        ("connect zerocopy=1", "EOPNOTSUPP", "zerocopy: "),
        ("set kind=mtu interface=Ethernet%202 value=9000", "EOPNOTSUPP", "mtu: "),
        ("set kind=sysctl name=net.ipv4.tcp_rmem value=1", "EOPNOTSUPP", "sysctl net.ipv4.tcp_rmem: "),
    ],
)
def test_what_windows_has_not_is_refused_by_its_name(pair: Pair, order: str, error: str, message: str) -> None:
    verb, _, keys = order.partition(" ")
    side = {"listen": "", "connect": "port=1 bind=127.0.0.1 "}.get(verb)
    flows = "" if side is None else f"endpoint=1 address=127.0.0.1 {settings()} {side}"
    answer = pair["windows"].ask(f"{verb} {flows}{keys}")
    assert (answer["error"], answer["message"][: len(message)]) == (error, message)


MODERATION = "*InterruptModeration"


@pytest.mark.parametrize(
    ("setting", "keyword", "value"),
    [
        ("kind=coalesce name=rx_usecs value=0", MODERATION, 0),
        ("kind=coalesce name=rx_usecs value=50", MODERATION, 1),
        ("kind=coalesce name=adaptive_rx value=on", MODERATION, 1),
        ("kind=coalesce name=adaptive_rx value=off", MODERATION, 0),
        ("kind=mtu value=9000", "*JumboPacket", 9014),
        ("kind=channels name=combined value=4", "*NumRssQueues", 4),
        ("kind=rings name=rx value=512", "*ReceiveBuffers", 512),
        ("kind=rings name=tx value=1024", "*TransmitBuffers", 1024),
    ],
)
def test_a_setting_of_the_card_is_refused_with_the_line_that_sets_it(
    pair: Pair, setting: str, keyword: str, value: int
) -> None:
    answer = pair["windows"].ask(f"set {setting} interface=LAN%202")
    line = f'Set-NetAdapterAdvancedProperty -Name "LAN 2" -RegistryKeyword "{keyword}" -RegistryValue {value}'
    assert answer["error"] == "EOPNOTSUPP"
    assert answer["message"].endswith(f"in PowerShell, as administrator: {line}")


@pytest.mark.parametrize(("name", "taken"), [("L" * 16, True), ("%C3%BC" * 256, True), ("L" * 770, False), ("", False)])
def test_an_interface_has_as_many_characters_as_windows_gives_it(pair: Pair, name: str, taken: bool) -> None:
    answer = pair["windows"].ask(f"listen endpoint=1 address=127.0.0.1 {settings()} interface={name}")
    assert (answer["ok"], "1 to 256 characters" in answer.get("message", "")) == (taken, not taken)


def test_a_folder_of_windows_is_taken_there_and_nowhere_else(pair: Pair, tmp_path: Path) -> None:
    file, folder = "test=file size=3000001 disk=1", "folder=C:\\windows"
    got, sent = measured(pair["windows"], pair["linux"], file, listen=folder, connect=f"folder={tmp_path}")
    assert got.totals[0]["bytes"] == sent.totals[0]["bytes"] == 3_000_001
    close(*pair.values())
    for system, refused in (("linux", folder), ("windows", "folder=temp"), ("linux", "folder=temp")):
        answer = pair[system].ask(f"listen endpoint=1 address=127.0.0.1 {settings(extra=file)} {refused}")
        assert answer["message"] == "folder: expected an absolute path of this system"


def test_the_load_is_that_of_all_processors(pair: Pair) -> None:
    got, _ = measured(pair["windows"], pair["linux"], "")
    assert got.last["cpus"] == pair["windows"].hello["cpus"]
    assert got.last["node_busy_us"] >= (got.last["busiest_cpu_us"] or 0) >= 0
    close(*pair.values())


def test_a_window_is_set_where_it_is_asked_for_and_nowhere_else(pair: Pair) -> None:
    asked = {}
    for extra in ("", "window=70000"):
        got, sent = measured(pair["windows"], pair["linux"], extra)
        asked[extra] = got.totals[0]["rcvbuf"]
        assert (got.totals[0]["buffers_doubled"], sent.totals[0]["buffers_doubled"]) == (False, True)
        close(*pair.values())
    assert asked == {"": None, "window=70000": 70_000}


def test_the_facts_of_the_host_are_told_and_what_is_unknown_is_null(pair: Pair) -> None:
    facts = pair["windows"].ask("facts")
    assert facts["system"].startswith("Windows ")
    assert facts["path"].endswith(".exe")
    assert facts["cpus"] == pair["windows"].hello["cpus"]
    assert facts["memory_bytes"] > 1 << 28
    assert facts["firewall"] == {"domain": None, "private": None, "public": None}
    assert facts["power_plan"] is None
    assert pair["linux"].ask("facts")["message"] == "facts: unknown verb"


def test_a_lock_goes_to_the_next_when_its_agent_is_killed(starts: Start) -> None:
    name = uuid4().hex
    first = starts("--lock", name, "anna", "now")
    second = starts("--lock", name, "bob", "wait", greets=False)
    assert second.event("busy")["place"] == 1
    third = starts("--lock", name, "carl", "now", greets=False)
    assert third.event("busy")["place"] == 2
    assert third.process.wait() == 3
    first.process.kill()
    assert second.event("hello")["protocol"] == first.hello["protocol"]


def test_a_receiver_sees_the_end_of_a_sender_that_is_killed(starts: Start, release: Path) -> None:
    """The sender runs on Linux: Wine 8.0 keeps connections of killed programs open (docs/reference/windows.md)."""
    with Talk([str(release)]) as sender:
        receiver = starts()
        joined(receiver, sender)
        for agent in (receiver, sender):
            begin(agent, at_ns=agent.ask("clock")["clock_ns"] + 30_000_000)
        progressed(receiver)
        sender.process.kill()
        assert receiver.event("ended")["endpoint"] == 1


def running_agents() -> set[int]:
    return {pid for pid, command in all_commands() if "rigctl-agent-windows" in command}


@pytest.mark.torture
@pytest.mark.timeout(900)
def test_nothing_is_left_of_agents_that_are_killed_or_lose_their_input(starts: Start) -> None:
    moments, before, name = Random(SEED), running_agents(), uuid4().hex
    for count in range(4 * TIMES):
        receiver, sender, _ = flowing(starts, flows=2, extra=moments.choice(["", "transport=udp size=1400"]))
        holder = starts("--lock", name, "anna", "wait")  # which a killed holder has left free
        wait_at_random(moments, 0, 0.2)
        ends: list[Callable[[Talk], object]] = [lambda agent: agent.process.kill(), lambda agent: agent.end()]
        for agent in moments.sample([receiver, sender, holder], 3):
            moments.choice(ends)(agent)
        eventually(lambda: running_agents() <= before)
        told("agents under Wine killed or without input", ends=3 * (count + 1))


@pytest.mark.torture
@pytest.mark.timeout(900)
def test_rubbish_is_answered_line_by_line(starts: Start) -> None:
    """Orders with words changed, lost, doubled and made up: each has one answer, and the agent lives."""
    agent, chance, count = starts(), Random(SEED), 350 * TIMES
    side = f"address=127.0.0.1 {settings(wait_ms=9)}"
    samples = [
        f"listen endpoint=1 {side}", f"listen endpoint=2 transport=udp size=99 {side}", "facts", "clock", "ping",
        f"connect endpoint=3 port=9 bind=127.0.0.1 {side}", "ready endpoint=1", "report endpoint=1", "close endpoint=1",
        f"probe target=1 source=1 address=127.0.0.1 port=9 bind=127.0.0.1 token={'0' * 32} sizes=20,9000 stream=1",
        "probed last=0", "start endpoint=1 at_ns=1 duration_ms=9", "stop endpoint=2", "set kind=mtu value=1500",
    ]  # fmt: skip
    for number in range(1_000_000, 1_000_000 + count):
        words = chance.choice(samples).split()
        for _ in range(chance.randrange(4)):
            word = "".join(chance.choices(string.printable[:94] + "\u00e9", k=chance.choice([1, 5, 40, 2000])))
            at = chance.randrange(len(words) + 1)
            words[at : at + chance.randrange(2)] = chance.choice([[], [word], words])
        agent.write(f"{number} {' '.join(words)}\n".encode())
        if number % 50 == 0:
            served(agent)
    served(agent)
    told("orders of rubbish under Wine", orders=count)
