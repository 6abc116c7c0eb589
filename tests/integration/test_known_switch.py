"""The known switch does with real frames what its model says, answers SNMP, and is a switch that rigctl can measure."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from known_switch.model import Design, Link
from known_switch.multicast import Snooping
from known_switch.rig import KnownSwitch, Nodes, known_switch, nodes_up
from processes import DEADLINE_S, all_commands, eventually, paused, running
from user import User
from virtual_rigs import survivors

from rigctl.rig.inventory import Secrets, Switch
from rigctl.rig.load import load_rig
from rigctl.switches.reading import PortCounters
from rigctl.switches.snmp import snmp_reader, snmp_session

RATE = 20_000_000
SIZE = 1518  # bytes of a full frame, with its check
GROUP = "239.1.2.3"
SUPPORT = Path(__file__).parents[1] / "support"
SEND = """
import socket, sys, time
to, count, at_once = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.IPPROTO_UDP, 103, 1472)  # UDP_SEGMENT, udp(7)
print(time.time_ns(), flush=True)
for first in range(0, count, at_once):
    datagrams = [number.to_bytes(2, "big") + bytes(1470) for number in range(first, first + at_once)]
    sender.sendto(b"".join(datagrams), (to, 7000))
"""
RECEIVE = """
import socket, sys, time
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.setsockopt(socket.SOL_SOCKET, 33, 1 << 22)  # SO_RCVBUFFORCE, socket(7)
receiver.bind(("", 7000))
if len(sys.argv) > 2:
    receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(sys.argv[2]) + bytes(4))
print("ready", flush=True)
for _ in range(int(sys.argv[1])):
    print(int.from_bytes(receiver.recv(2048)[:2], "big"), time.time_ns(), flush=True)
"""
KILLED = """
import sys
from pathlib import Path
from known_switch.model import Design, Link
from known_switch.rig import known_switch, nodes_up
design = Design({port: Link(10_000_000) for port in "ab"}, 100_000)
with nodes_up(Path(sys.argv[1]), "a", "b") as nodes, known_switch(nodes, design):
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Nodes that send nothing by themselves: no ARP and no IPv6."""
    with nodes_up(tmp_path_factory.mktemp("nodes"), "a", "b", "c", "d") as made:
        places = {node: number for number, node in enumerate("abcd", 1)}
        lines: dict[str, list[str]] = {node: ["sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1"] for node in places}
        for node, other in permutations(places, 2):
            mac = f"02:77:00:00:00:0{places[other]}"
            lines[node].append(f"ip neigh add {address(made, other)} lladdr {mac} dev eth0")
        for node in places:
            made.namespace(node).run_lines(*lines[node], f"ip route add {GROUP} dev eth0")
        yield made


def address(nodes: Nodes, node: str) -> str:
    data_address = nodes.rig.nodes[node].data_address
    assert data_address is not None
    return data_address


def design(ports: str = "abcd", links: "dict[str, Link] | None" = None, **fields: Any) -> Design:
    return Design({port: Link(RATE) for port in ports} | (links or {}), **({"buffer_bytes": 60_000} | fields))


@contextmanager
def receiving(nodes: Nodes, node: str, count: int, *group: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a program that receives `count` datagrams."""
    command = [*nodes.namespace(node).enter, sys.executable, "-c", RECEIVE, str(count), *group]
    with running(command, stdout=subprocess.PIPE) as receiver:
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == b"ready\n"
        yield receiver


def arrivals(receiver: "subprocess.Popen[bytes]") -> tuple[list[int], list[int]]:
    """Return the numbers of all datagrams that a program has received, and when."""
    out, _ = receiver.communicate(timeout=DEADLINE_S)
    words = list(map(int, out.split()))
    return words[::2], words[1::2]


def send(nodes: Nodes, source: str, to: str, count: int, at_once: int = 1) -> int:
    """Send datagrams of full frames; return the time before the first."""
    return int(nodes.namespace(source).run(sys.executable, "-c", SEND, to, str(count), str(at_once)))


def meet(nodes: Nodes, one: str, other: str) -> None:
    """Let the switch learn the ports of two nodes."""
    nodes.namespace(one).run("ping", "-c", "1", "-W", f"{DEADLINE_S:g}", address(nodes, other))


@pytest.mark.parametrize("stopped", [False, True])
def test_drops_and_delays_are_those_of_the_model_even_if_the_switch_runs_late(nodes: Nodes, stopped: bool) -> None:
    slow = {"a": Link(1_000_000), "b": Link(1_000_000, out_bps=550_000)}
    with known_switch(nodes, design(links=slow, buffer_bytes=3 * SIZE + 1000)) as switch:
        meet(nodes, "b", "a")
        with receiving(nodes, "b", 6) as receiver:
            with paused(switch.process) if stopped else nullcontext():
                sent_ns = send(nodes, "a", address(nodes, "b"), 8, at_once=8)
            numbers, times_ns = arrivals(receiver)
        # A frame comes every 12.3 ms and leaves after 22.4 ms: 1, 1.8, 3.6 … of 12.3 ms later. When the 6th and the 8th
        # have come, 3 others are there.
        assert numbers == [0, 1, 2, 3, 4, 6]
        step_ns = 1538 * 8 * 1000
        assert times_ns[-1] - sent_ns >= step_ns + 6 * step_ns / 0.55
        assert switch.counted()["drops"] == {"b output": 2}


def _send_into_back_pressure(nodes: Nodes, switch: KnownSwitch, count: int) -> None:
    """Send four times as fast as port b sends on; all frames arrive in order."""
    meet(nodes, "b", "a")
    with receiving(nodes, "b", count) as receiver:
        send(nodes, "a", address(nodes, "b"), count)
        assert arrivals(receiver)[0] == list(range(count))
    assert switch.counted()["drops"] == {}


BACK_PRESSURE = design(links={"b": Link(RATE, out_bps=RATE // 4)}, buffer_bytes=12 * SIZE, pause=(10 * SIZE, 5 * SIZE))


def test_a_paused_port_leaves_frames_with_their_sender_which_loses_none(nodes: Nodes) -> None:
    with known_switch(nodes, BACK_PRESSURE) as switch:
        _send_into_back_pressure(nodes, switch, 600)
        asked = switch.counted()["ports"]["a"]["out"]["pause"]
        assert asked >= 2
        assert asked % 2 == 0  # each stop has its release
        (queue,) = json.loads(nodes.namespace("a").run("tc", "-s", "-j", "qdisc", "show", "dev", "eth0"))
        assert (queue["kind"], queue["drops"]) == ("tbf", 0)


def asked_switch(switch: KnownSwitch) -> Switch:
    (found,) = load_rig(str(switch.file)).switches.values()
    return replace(found, secrets=Secrets(community=switch.environment["RIGCTL_KNOWN_COMMUNITY"]))


async def by_snmp(switch: KnownSwitch, *oids: str) -> tuple[dict[str, PortCounters], dict[str, int | None]]:
    """Return the counters that rigctl reads, and the values of further OIDs."""
    asked = asked_switch(switch)
    assert asked.secrets is not None
    async with snmp_reader(asked, asked.secrets, ["a", "b", "c", "d"]) as reader:
        read = await reader.read()
    async with snmp_session(asked, asked.secrets) as session:
        return read, await session.get(oids)


def test_snmp_has_the_counters_of_the_model(nodes: Nodes) -> None:
    pause = "1.3.6.1.2.1.10.7.10.1"
    names = {f"{pause}.{column}.1": way for column, way in ((3, "in"), (4, "out"), (5, "in"), (6, "out"))}
    never = [f"1.3.6.1.2.1.10.7.2.1.{column}.{port}" for column in (2, 3, 8) for port in (1, 4)]
    high_speed, absent = "1.3.6.1.2.1.31.1.1.1.15.2", "1.3.6.1.2.1.2.2.1.10.5"
    with known_switch(nodes, BACK_PRESSURE) as switch:
        _send_into_back_pressure(nodes, switch, 40)
        read, values = asyncio.run(by_snmp(switch, *names, *never, high_speed, absent))
        ports = switch.counted()["ports"]
    assert ports["a"]["in"]["unicast"] >= 40
    for name, counters in read.items():
        for way in ("in", "out"):
            counted = ports[name][way]
            packets = counted["unicast"] + counted["multicast"] + counted["broadcast"]
            expected = (counted["octets"], packets, counted["discards"], 0)
            kinds = ("octets", "packets", "discards", "errors")
            assert tuple(getattr(counters, f"{way}_{kind}") for kind in kinds) == expected
        assert counters.discontinuity == 0
    assert {oid: values[oid] for oid in names} == {oid: ports["a"][way]["pause"] for oid, way in names.items()}
    assert ports["a"]["out"]["pause"] > 0
    assert [values[oid] for oid in never] == [0] * 6
    assert (values[high_speed], values[absent]) == (20, None)


def test_a_host_that_joins_a_group_gets_it_and_another_does_not(nodes: Nodes) -> None:
    with known_switch(nodes, design(multicast=Snooping())) as switch:
        with receiving(nodes, "b", 3, GROUP) as receiver:
            eventually(lambda: switch.counted()["members"]["known"] == {GROUP: ["b"]})
            send(nodes, "a", GROUP, 3)
            assert arrivals(receiver)[0] == [0, 1, 2]
        assert switch.counted()["groups"]["known"][GROUP] == {"b": 3}


def test_two_switches_are_connected_by_a_trunk(nodes: Nodes) -> None:
    designs = {
        "left": design("ac", {"up": Link(RATE // 2)}),
        "right": design("bd", {"down": Link(RATE // 2)}),
    }
    with known_switch(nodes, designs, ("up", "down")) as switch:
        meet(nodes, "a", "b")
        with receiving(nodes, "b", 10) as receiver:
            send(nodes, "a", address(nodes, "b"), 10)
            assert arrivals(receiver)[0] == list(range(10))
        rig = load_rig(str(switch.file))
        ports = switch.counted()["ports"]
    assert rig.trunk is not None
    assert rig.trunk.rate_bps == RATE // 2
    assert {(port.switch, port.name) for port in rig.ports if port.peer} == {("left", "up"), ("right", "down")}
    assert ports["up"]["out"] == ports["down"]["in"]
    assert ports["up"]["out"]["unicast"] >= 11


def test_rigctl_measures_over_the_switch_and_reads_its_counters(nodes: Nodes, tmp_path: Path) -> None:
    user = User(tmp_path)
    with known_switch(nodes, design()) as switch:
        user.environment |= switch.environment
        traffic = "pairs: [a -> b, c -> d]\nduration: 2s\nmax_skew: 60s\n"
        before = switch.counted()["ports"]
        options = ("--rig", str(switch.file), "--no-report")
        user.rigctl("run", user.scenario(f"{traffic}test: udp\nrate: 10M\nsize: 1472\n"), *options)
        counted = switch.counted()
        datagrams = user.rows()
        user.rigctl("run", user.scenario(f"{traffic}test: tcp\n"), *options)
        late_s = switch.counted()["process"]["late_s"]
        streams = user.rows()
    assert counted["drops"] == {}
    assert [row["status"] for row in datagrams + streams] == ["ok"] * 4
    for row in datagrams:
        assert row["datagrams_lost"] == row["receiver_drops"]  # those of a receiver that gets no processor
        assert row["datagrams_sent"] > 0
        for node, way, read in (
            ("source", "in", "source_port_octets"),
            ("destination", "out", "destination_port_octets"),
        ):
            port = row[node]
            passed = counted["ports"][port][way]["octets"] - before[port][way]["octets"]
            assert row["datagrams_sent"] * SIZE <= row[read] <= passed
    for row in streams:
        assert row["ceiling_mbps"] == pytest.approx(20 * 1448 / 1538)
        # A switch that was late sends at once what is due.
        assert 0 < row["goodput_mbps"] * row["duration_s"] <= row["ceiling_mbps"] * (row["duration_s"] + late_s + 0.1)


def test_nothing_is_left_of_a_test_that_is_killed(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": f"{SUPPORT}:{SUPPORT.parents[1]}"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with running([sys.executable, "-c", KILLED, str(tmp_path)], env=environment, **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"

        def left() -> list[str]:
            own = [words for pid, words in all_commands() if str(tmp_path) in words and pid != process.pid]
            return own + survivors(f"test{process.pid}-")

        assert any("known_switch.ports" in words for words in left())
        assert any("snmpd" in words for words in left())
        process.kill()
        eventually(lambda: not left(), "the switch, its agent and its nodes end")
