"""The balance of octets in a real small lab: exact without drops; drops injected at a known port are found there."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from processes import running
from talk import Report, Talk, joined, report_of, started

from rigctl.model.counters.balance import Framing, Reconciliation, reconcile
from rigctl.model.counters.losses import Attribution, Where, attribute
from rigctl.model.counters.points import CountingPoint, Known, PointKind, Wiring, counts, traffic_of
from rigctl.records import (
    Direction,
    Flow,
    NicCounters,
    NodeUsage,
    Pair,
    Port,
    PortSeries,
    Repetition,
    Side,
    Status,
    TcpInfo,
)
from rigctl.remote.build import build, host_machine

SWITCH_PORTS = {"n1": "p1", "n2": "p2"}
PORTS = tuple(Port("sw", port, node=node) for node, port in SWITCH_PORTS.items())
ADDRESSES = {"n1": "10.99.0.1", "n2": "10.99.0.2"}
PAIR = Pair("n1", "n2")
Counters = dict[str, dict[str, int]]


@dataclass(frozen=True)
class Measured:
    flows: tuple[Flow, ...]
    nodes: tuple[NodeUsage, ...]
    counters: tuple[PortSeries, ...]


@dataclass(frozen=True)
class Lab:
    """`names` maps n1, n2 and sw to their namespaces."""

    names: dict[str, str]

    def run(self, where: str, *command: str, text: str | None = None) -> str:
        done = subprocess.run(
            ["ip", "netns", "exec", self.names[where], *command],
            check=True,
            input=text,
            capture_output=True,
            text=True,
            timeout=10,
        )
        return done.stdout

    def shape(self, node: str, rate: str, burst: str = "128kb") -> None:
        """What a node may send: the machine has other things to do."""
        bucket = ("rate", rate, "burst", burst, "limit", "1mb")
        self.run(node, "tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", *bucket)

    def drop_one_percent(self, where: str, chain: str) -> None:
        """Of the TCP packets with data that pass `chain`, from now on. A chain has its table's family in front."""
        family, hook = chain.split(" ", 1)
        rule = "ip protocol tcp ip length > 500 numgen random mod 100 < 1 counter drop"
        self.run(where, "nft", "-f", "-", text=f"table {family} loss {{ chain some {{ {hook} {rule}\n}}\n}}\n")

    @contextmanager
    def pinging(self, source: str, destination: str) -> Iterator[None]:
        """Large pings meanwhile, 100 a second, for 10 s at most."""
        command = ["ping", "-q", "-i", "0.01", "-c", "1000", "-s", "1400", ADDRESSES[destination]]
        with running(["ip", "netns", "exec", self.names[source], *command], stdout=subprocess.DEVNULL):
            yield

    def counters(self, where: str) -> Counters:
        """/proc/net/dev: rx and tx bytes, packets, errors, drops by interface."""
        found: Counters = {}
        for line in self.run(where, "cat", "/proc/net/dev").splitlines()[2:]:
            name, _, rest = line.partition(":")
            numbers = [int(word) for word in rest.split()]
            keys = ("bytes", "packets", "errors", "dropped")
            found[name.strip()] = {f"rx_{key}": numbers[at] for at, key in enumerate(keys)} | {
                f"tx_{key}": numbers[8 + at] for at, key in enumerate(keys)
            }
        return found

    def measure(self, agent: Path, duration_ms: int = 1500, flows: int = 2) -> Measured:
        """Traffic from n1 to n2, and what every place on its way counted."""
        nodes = {node: self.counters(node) for node in ADDRESSES}
        readings = [(time.monotonic_ns(), self.counters("sw"))]
        with ExitStack() as stack:
            receiver, sender = (
                stack.enter_context(Talk(["ip", "netns", "exec", self.names[node], str(agent)]))
                for node in ("n2", "n1")
            )
            joined(receiver, sender, ADDRESSES["n2"], ADDRESSES["n1"], flows=flows)
            readings.append((time.monotonic_ns(), self.counters("sw")))
            started([receiver, sender], duration_ms)
            until_s = time.monotonic() + duration_ms / 1000
            while time.monotonic() < until_s:
                time.sleep(0.3)
                readings.append((time.monotonic_ns(), self.counters("sw")))
            for agent_of in (receiver, sender):
                assert agent_of.event("ended")["error"] is None
            sent, received = report_of(sender), report_of(receiver)
        time.sleep(0.05)
        readings += [(time.monotonic_ns(), self.counters("sw"))]
        usages = tuple(
            NodeUsage(node, nic=NicCounters(**_rise(before["eth0"], self.counters(node)["eth0"]), queue_drops=0))
            for node, before in nodes.items()
        )
        return Measured(
            _flows(sent, received), usages, tuple(_series(port, readings) for port in SWITCH_PORTS.values())
        )


def _rise(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {name: after[name] - before[name] for name in before}


def _series(port: str, readings: list[tuple[int, Counters]]) -> PortSeries:
    columns = {"t_ns": [t_ns for t_ns, _ in readings]}
    for way, side in (("in", "rx"), ("out", "tx")):
        for ours, theirs in (
            ("octets", "bytes"),
            ("packets", "packets"),
            ("discards", "dropped"),
            ("errors", "errors"),
        ):
            columns[f"{way}_{ours}"] = [counters[port][f"{side}_{theirs}"] for _, counters in readings]
    return PortSeries("sw", port, "snmp", columns)


def _flows(sent: Report, received: Report) -> tuple[Flow, ...]:
    return tuple(
        Flow(PAIR, Direction.FORWARD, number + 1, _side(sent, number), _side(received, number))
        for number in sorted(sent.totals)
    )


def _side(report: Report, number: int) -> Side:
    totals = report.totals[number]
    names = ("mss", "retransmits", "retransmitted_bytes", "timestamps", "segs_out", "segs_in")
    return Side(
        totals["bytes"],
        totals["first_byte_ns"],
        totals["last_byte_ns"],
        tcp=TcpInfo(**{name: totals.get(name) for name in names}),
    )


@contextmanager
def counted_lab(rate: str = "300mbit") -> Iterator[Lab]:
    """The lab; its namespaces, and all that is in them, are gone afterwards."""
    names = {name: f"rigctl-{os.getpid()}-{name}" for name in ("n1", "n2", "sw")}
    with ExitStack() as stack:
        for name in names.values():
            subprocess.run(["ip", "netns", "add", name], check=True)
            stack.callback(subprocess.run, ["ip", "netns", "del", name], check=True)
        lab = Lab(names)
        for name in names:
            lab.run(name, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
            lab.run(name, "ip", "link", "set", "lo", "up")
        lab.run("sw", "ip", "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
        for node, port in SWITCH_PORTS.items():
            lab.run("sw", "ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", names[node])
            lab.run("sw", "ip", "link", "set", port, "master", "br0", "up")
            lab.run(node, "ip", "address", "add", f"{ADDRESSES[node]}/24", "dev", "eth0")
            lab.run(node, "ip", "link", "set", "eth0", "up")
            lab.shape(node, rate)
        lab.run("sw", "ip", "link", "set", "br0", "up")
        lab.run("n1", "ping", "-c1", "-W2", ADDRESSES["n2"])
        yield lab


@pytest.fixture(scope="module")
def agent() -> Path:
    return build([host_machine()])[0].path


@pytest.fixture
def lab() -> Iterator[Lab]:
    with counted_lab() as made:
        yield made


def judged(measured: Measured) -> tuple[dict[CountingPoint, Reconciliation], list[Attribution]]:
    repetition = Repetition(
        1, 1, 1, Status.OK, None, 0.0, 1.0, flows=measured.flows, nodes=measured.nodes, counters=measured.counters
    )
    wiring = Wiring(PORTS, None)
    traffic = traffic_of(repetition.flows)
    assert traffic is not None
    crossings, framing = wiring.crossings(repetition.flows), Framing(4, virtual_switch=True)
    counted = counts(repetition, traffic, wiring, crossings, Known())
    traffic_s = (traffic[1] - traffic[0]) / 1e9
    balance = {point: reconcile(point, crossings, counted, traffic_s, framing) for point in counted}
    return balance, attribute(repetition.flows, wiring, counted, balance)


def sent_again(measured: Measured) -> int:
    return sum(flow.sender.tcp.retransmits or 0 for flow in measured.flows if flow.sender is not None)


def test_without_drops_every_place_counts_what_was_sent(lab: Lab, agent: Path) -> None:
    balance, _ = judged(lab.measure(agent))
    assert {(point.kind, point.owner) for point in balance} == {
        (kind, owner)
        for kind, owners in (
            (PointKind.NIC_OUT, ("n1", "n2")),
            (PointKind.NIC_IN, ("n1", "n2")),
            (PointKind.PORT_IN, ("sw",)),
            (PointKind.PORT_OUT, ("sw",)),
        )
        for owner in owners
    }
    for point, one in balance.items():
        assert not one.flagged, (point, one)
        if one.carries_data:
            assert one.difference_pct == pytest.approx(0, abs=0.2), point


@pytest.mark.parametrize(
    "chain",
    [
        "bridge type filter hook forward priority 0; oifname p2",  # on the way out to the receiver's port
        "netdev type filter hook ingress device p1 priority 0;",  # behind the counters of the sender's port
        "netdev type filter hook egress device p2 priority 0;",  # before those of the receiver's
    ],
)
def test_drops_in_the_switch_are_found_there(lab: Lab, agent: Path, chain: str) -> None:
    lab.drop_one_percent("sw", chain)
    measured = lab.measure(agent)
    balance, lost = judged(measured)
    assert sent_again(measured) > 0
    assert (lost[0].where, lost[0].name) == (Where.SWITCH, "switch sw, port p2")
    assert lost[0].segments_about >= 0.5 * sent_again(measured)
    assert {one.where for one in lost} <= {Where.SWITCH, Where.NOWHERE}
    assert not any(one.flagged for one in balance.values())


def test_drops_behind_the_receivers_interface_are_nobodys(lab: Lab, agent: Path) -> None:
    """A firewall on the receiver, say: everything came in at its interface."""
    lab.drop_one_percent("n2", "netdev type filter hook ingress device eth0 priority 0;")
    measured = lab.measure(agent)
    _, lost = judged(measured)
    assert [(one.where, one.segments_about) for one in lost] == [(Where.NOWHERE, sent_again(measured))]


def test_other_traffic_through_the_port_is_flagged(lab: Lab, agent: Path) -> None:
    """Pings of 1400 bytes beside the flows, from the node itself: over 1 % of their octets."""
    lab.shape("n1", "20mbit", burst="16kb")
    with lab.pinging("n1", "n2"):
        balance, _ = judged(lab.measure(agent))
    flagged = {point.kind for point, one in balance.items() if one.flagged}
    assert {PointKind.PORT_IN, PointKind.PORT_OUT} <= flagged
    assert all("other traffic" in str(one.why) for one in balance.values() if one.flagged)
