"""Multipath TCP between two namespaces with two shaped links: subflows, their bytes, fallbacks, a link that is cut."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from processes import DEADLINE_S, eventually, running
from talk import Report, Talk, close, connecting, joined, listening, progressed, reports, started, stopped
from torture import TIMES
from two_links import Namespace, link, two_namespaces, use

OPENING = 20  # bytes, on the first subflow
ACKNOWLEDGED, TIMEOUTS = r" bytes_acked:([0-9]+)", r" timer:\(on,[^,]+,([0-9]+)\)"
FIRST, SECOND = ("10.78.1.1", "10.78.1.2"), ("10.78.2.1", "10.78.2.2")


class Ends:
    def __init__(self, near: Namespace, far: Namespace, binary: Path, stack: ExitStack) -> None:
        self.near, self.far = near, far
        talks = (Talk([*end.enter, str(binary)], enter=end.enter) for end in (near, far))
        self.sender, self.receiver = map(stack.enter_context, talks)
        self.port = 0

    def join(self, extra: str = "mptcp=1", flows: int = 1) -> int:
        self.port = joined(self.receiver, self.sender, FIRST[1], FIRST[0], extra=extra, flows=flows)
        return self.port

    def start(self, duration_ms: int = 300_000, how: str = "") -> None:
        started(self.receiver, self.sender, duration_ms, how)

    def flow(self, *subflows: tuple[str, str], extra: str = "mptcp=1", count: int = 100_000) -> None:
        """Join and start; wait until each of these subflows has carried so many bytes."""
        self.join(extra)
        self.start()
        self.carry(*subflows, count=count)

    def stop(self) -> tuple[Report, Report]:
        return stopped(self.receiver, self.sender)

    def reports(self) -> tuple[Report, Report]:
        return reports(self.receiver, self.sender)

    def seen(self, subflow: tuple[str, str], pattern: str = ACKNOWLEDGED) -> list[int]:
        """Return what `ss` shows of each of the sender's subflows between these addresses; 0 where it shows nothing."""
        shown = self.near.run("ss", "-HtinoO", "src", subflow[0], "dst", f"{subflow[1]}:{self.port}")
        found = [re.search(pattern, line) for line in shown.splitlines()]
        return [int(one[1]) if one else 0 for one in found]

    def carry(self, *subflows: tuple[str, str], flows: int = 1, count: int = 100_000) -> None:
        for subflow in subflows:
            eventually(partial(lambda one: sum(n > count for n in self.seen(one)) >= flows, subflow))

    def sampled(self) -> None:
        """Wait until the receiver has looked at its subflows after all that they have carried by now."""
        progressed(self.receiver, sum(self.seen(FIRST)) + sum(self.seen(SECOND)))
        self.receiver.event("progress")

    def wait_in_vain(self, subflow: tuple[str, str]) -> None:
        eventually(lambda: all(count >= 3 for count in self.seen(subflow, TIMEOUTS)))


@pytest.fixture
def ends(binary: Path) -> Iterator[Ends]:
    """Two links, which connections may both use."""
    with two_namespaces() as (near, far), ExitStack() as stack:
        for number in (1, 2):
            link(near, far, number)
        use(near, far, 2)
        yield Ends(near, far, binary, stack)


def of_subflows(totals: dict[str, Any]) -> dict[tuple[str, str], int]:
    return {(source, destination): count for source, destination, count, _ in totals["mptcp"]}


def watched(end: Namespace) -> bool:
    """Whether somebody has subscribed to what becomes of sockets (NETLINK_SOCK_DIAG)."""
    lines = [line.split() for line in end.run("cat", "/proc/net/netlink").splitlines()[1:]]
    return any(words[1] == "4" and int(words[3], 16) for words in lines)


@pytest.mark.parametrize("test", ["", "test=blast size=3000000"])
def test_the_bytes_of_each_subflow_are_those_that_the_kernel_counted(ends: Ends, test: str) -> None:
    watch = [*ends.near.enter, "stdbuf", "-oL", "ss", "-E", "-tin"]  # each socket when the kernel destroys it
    with running(watch, stdout=subprocess.PIPE) as witness:
        assert witness.stdout is not None
        eventually(lambda: watched(ends.near))
        port = ends.join(f"mptcp=1 {test}", flows=2)
        eventually(lambda: len(ends.seen(SECOND)) == 2)
        ends.start(how="iterations=2" if test else "")
        if not test:
            ends.carry(FIRST, SECOND, flows=2)
        received, sent = ends.reports() if test else ends.stop()
        close(ends.sender, ends.receiver)
        assert witness.stdout.readline().startswith(b"State")
        counted: dict[tuple[str, str], list[int]] = {}
        for _ in range(4):
            address, info = witness.stdout.readline().decode(), witness.stdout.readline().decode()
            if re.search(r"[0-9.]+:\*\s*$", address):  # disconnected: the kernel cleared its counts and its peer's port
                continue
            found = re.search(rf" ([0-9.]+)(?:%\w+)?:[0-9]+ +([0-9.]+):{port}\s", address)
            acked = re.search(r"bytes_acked:([0-9]+)", info)
            assert found is not None and acked is not None, (address, info)
            counted.setdefault((found[1], found[2]), []).append(int(acked[1]))
    assert set(counted) <= {FIRST, SECOND}
    reported = [of_subflows(received.totals[flow]) for flow in (0, 1)]
    for subflow, kernel in counted.items():
        # The kernel counts the SYN as a byte, and the FIN if it was acknowledged before the end.
        orders = permutations([each[subflow] for each in reported], len(kernel))
        assert any(all(count - own in (1, 2) for count, own in zip(kernel, order, strict=True)) for order in orders)
        own = [of_subflows(sent.totals[flow])[subflow] for flow in (0, 1)]
        assert all(any(count - 1 <= mine <= count for mine in own) for count in kernel)
    for flow in (0, 1):
        assert sum(reported[flow].values()) >= received.totals[flow]["bytes"] + OPENING  # some data come twice
        assert sent.totals[flow]["bytes"] == received.totals[flow]["bytes"]


def test_what_several_subflows_do_not_have_in_common_is_unknown(ends: Ends) -> None:
    ends.flow(FIRST, SECOND)
    received, sent = ends.stop()
    totals = sent.totals[0]
    assert len(totals["mptcp"]) == 2
    alone = ("mss", "rtt_us", "rtt_min_us", "cwnd", "busy_us", "rwnd_limited_us", "advertised_window")
    assert {name: totals[name] for name in alone} == dict.fromkeys(alone)
    assert totals["pmtu"] == 1500
    assert totals["acked_bytes"] == sum(of_subflows(totals).values())
    assert totals["retransmits"] >= 0
    assert sent.columns == ["t_ns", "bytes", "retransmits"]
    assert sent.rows[0][-1][1] == totals["bytes"]
    assert received.totals[0]["segs_in"] >= received.totals[0]["bytes"] / 1500


def test_a_connection_without_a_second_address_has_one_subflow(ends: Ends) -> None:
    ends.far.run("ip", "mptcp", "endpoint", "flush")
    ends.flow(FIRST)
    received, sent = ends.stop()
    ((source, destination, count, timeouts),) = received.totals[0]["mptcp"]
    assert (source, destination) == FIRST
    assert count >= received.totals[0]["bytes"] + OPENING  # data that are sent again come twice
    assert timeouts == 0
    assert sent.totals[0]["rtt_us"] > 0


STRIP = "table ip strip { chain c { type filter hook prerouting priority 0; reset tcp option mptcp; }; }"


@pytest.mark.parametrize("against", ["near", "far", "near far", "device"])
@pytest.mark.parametrize("test", ["", "test=pingpong size=100"])
def test_with_a_kernel_or_a_device_against_it_a_connection_is_tcp(ends: Ends, against: str, test: str) -> None:
    if against == "device":
        ends.far.run("nft", STRIP)
    for name in {"near", "far"} & set(against.split()):
        getattr(ends, name).switch_off()
    ends.flow(FIRST, extra=f"mptcp=1 {test}", count=1000)
    received, sent = ends.stop()
    assert sent.totals[0]["mptcp"] == received.totals[0]["mptcp"] == []
    assert sent.totals[0]["mss"] == 1448
    assert sent.totals[0]["bytes"] > 0
    assert sent.columns[:6] == ["t_ns", "bytes", "retransmits", "rtt_us", "cwnd", "mss"]


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_connection_that_has_ended_has_its_only_subflow(receiver: Talk, sender: Talk, address: str) -> None:
    """At its end the kernel clears the address of a subflow's peer: 3 of 100 connections had a second subflow then."""
    for _ in range(40 * TIMES):
        joined(receiver, sender, address=address, extra="mptcp=1")
        started(receiver, sender, 50)
        for report in reports(receiver, sender):
            ((source, destination, _, timeouts),) = report.totals[0]["mptcp"]
            assert (source, destination) == (address, address)
            assert timeouts is not None  # null: it ended before the connection did
        close(receiver, sender)


@pytest.mark.parametrize("how", ["down", "gone"])
def test_a_link_that_is_cut_ends_its_subflow_and_the_rest_goes_over_the_other(ends: Ends, how: str) -> None:
    ends.flow(FIRST, SECOND)
    ends.sampled()
    if how == "down":
        ends.far.run("ip", "link", "set", "w2", "down")
        ends.wait_in_vain(SECOND)
    else:
        ends.far.run("ip", "mptcp", "endpoint", "flush")
        ends.far.run("ip", "addr", "del", "10.78.2.2/24", "dev", "w2")
    ends.carry(FIRST, count=sum(ends.seen(FIRST)) + sum(ends.seen(SECOND)) + 1_000_000)
    received, sent = ends.stop()
    assert sent.totals[0]["bytes"] == received.totals[0]["bytes"]
    reported = of_subflows(received.totals[0])
    assert set(reported) == {FIRST, SECOND}
    if how == "down":  # else the second subflow is told as of the last sample
        assert sum(reported.values()) >= received.totals[0]["bytes"] + OPENING
    assert reported[FIRST] > reported[SECOND] > 0
    timeouts = {(source, destination): count for source, destination, _, count in sent.totals[0]["mptcp"]}
    assert timeouts[FIRST] == 0
    assert timeouts[SECOND] is None or timeouts[SECOND] >= 3


def test_with_all_links_cut_the_test_fails(ends: Ends) -> None:
    ends.flow(FIRST, SECOND)
    # What comes is dropped, so that the receiver, which is stopped at last, still ends the sender.
    ends.far.run("nft", "table ip cut { chain c { type filter hook input priority 0; policy drop; }; }")
    for subflow in (FIRST, SECOND):
        ends.wait_in_vain(subflow)
    for agent in (ends.receiver, ends.sender):
        assert agent.ask("stop endpoint=1")["ok"]
    ended = ends.sender.event("ended")
    assert ended["error"] == "ETIMEDOUT"
    assert "timeouts in a row, and not acknowledged" in ended["message"]


def test_connections_at_another_address_are_strangers_and_the_port_is_closed_with_the_endpoint(ends: Ends) -> None:
    port = listening(ends.receiver, FIRST[1], extra="mptcp=1")
    assert f":{port} " in ends.far.run("ss", "-tlnH")  # for further subflows
    to = f"('{SECOND[1]}', {port})"
    connect = f"import socket\ntry: socket.create_connection({to}, {DEADLINE_S}).recv(1)\n"
    code = f"{connect}except ConnectionResetError: print('reset')"
    assert ends.near.run(sys.executable, "-c", code) == "reset\n"
    order = connecting(port, extra="mptcp=1").replace("address=127.0.0.1", f"address={FIRST[1]}")
    assert ends.sender.ask(order.replace("bind=127.0.0.1", f"bind={FIRST[0]}"))["ok"]
    assert ends.receiver.ask("ready endpoint=1")["ok"]
    ends.start(50)
    received, _ = ends.reports()
    assert received.last["strangers"] == 1
    assert ends.receiver.ask("close endpoint=1")["ok"]
    eventually(lambda: ends.far.run("ss", "-tlnH") == "")
