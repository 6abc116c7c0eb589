"""Multipath TCP between two namespaces with two shaped links: subflows, their bytes, fallbacks, a link that is cut."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from processes import eventually, running
from talk import Line, Report, Start, Talk, completed, joined, ran, report_of, started
from two_links import Namespace, link, two_namespaces, use

OPENING = 20  # bytes, on the first subflow
FIRST, SECOND = ("10.78.1.1", "10.78.1.2"), ("10.78.2.1", "10.78.2.2")


class Ends:
    def __init__(self, near: Namespace, far: Namespace, binary: Path, stack: ExitStack) -> None:
        self.near, self.far = near, far
        self.sender, self.receiver = (stack.enter_context(Talk([*end.enter, str(binary)])) for end in (near, far))

    def join(self, extra: str = "mptcp=1", flows: int = 1) -> int:
        return joined(self.receiver, self.sender, FIRST[1], FIRST[0], extra=extra, flows=flows)

    def start(self, duration_ms: int, how: str = "") -> None:
        started([self.receiver, self.sender], duration_ms, how)

    def reports(self) -> tuple[Report, Report]:
        """Those of sender and receiver, once both have ended without an error."""
        completed(self.sender, self.receiver)
        return report_of(self.sender), report_of(self.receiver)


@pytest.fixture
def ends(binary: Path) -> Iterator[Ends]:
    """Two links, which connections may both use."""
    with two_namespaces() as (near, far), ExitStack() as stack:
        for number in (1, 2):
            link(near, far, number)
        use(near, far, 2)
        yield Ends(near, far, binary, stack)


def of_subflows(totals: Line) -> dict[tuple[str, str], int]:
    return {(source, destination): count for source, destination, count, _ in totals["mptcp"]}


@pytest.mark.quiet
@pytest.mark.parametrize("flows", [1, 3])
def test_goodput_is_the_sum_of_both_links(ends: Ends, flows: int) -> None:
    ends.join(flows=flows)
    ends.start(2000)
    _, received = ends.reports()
    totals = [received.totals[flow] for flow in range(flows)]
    # What stands in queues at the end of 2 s arrives later.
    span_ns = max(each["last_byte_ns"] for each in totals) - min(each["first_byte_ns"] for each in totals)
    goodput_mbps = sum(each["bytes"] for each in totals) * 8e3 / span_ns
    assert 130 < goodput_mbps < 210


def watched(end: Namespace) -> bool:
    """Whether somebody has subscribed to what becomes of sockets (NETLINK_SOCK_DIAG)."""
    lines = [line.split() for line in end.run("cat", "/proc/net/netlink").splitlines()[1:]]
    return any(words[1] == "4" and int(words[3], 16) for words in lines)


@pytest.mark.parametrize(("test", "how"), [("", ""), ("test=blast size=3000000", "iterations=2")])
def test_the_bytes_of_each_subflow_are_those_that_the_kernel_counted(ends: Ends, test: str, how: str) -> None:
    watch = [*ends.near.enter, "stdbuf", "-oL", "ss", "-E", "-tin"]  # each socket when the kernel destroys it
    with running(watch, stdout=subprocess.PIPE) as witness:
        assert witness.stdout is not None
        eventually(lambda: watched(ends.near))
        port = ends.join(f"mptcp=1 {test}", flows=2)
        ends.start(500 if not test else 5000, how)
        sent, received = ends.reports()
        for agent in (ends.sender, ends.receiver):
            assert agent.ask("close endpoint=1")["ok"]
        assert witness.stdout.readline().startswith(b"State")
        counted: dict[tuple[str, str], list[int]] = {}
        for _ in range(4):
            address, info = witness.stdout.readline().decode(), witness.stdout.readline().decode()
            found = re.search(rf" ([0-9.]+)(?:%\w+)?:[0-9]+ +([0-9.]+):{port}\s", address)
            acked = re.search(r"bytes_acked:([0-9]+)", info)
            assert found is not None and acked is not None, (address, info)
            counted.setdefault((found[1], found[2]), []).append(int(acked[1]))
    assert set(counted) == {FIRST, SECOND}
    reported = [of_subflows(received.totals[flow]) for flow in (0, 1)]
    for subflow, kernel in counted.items():
        # The kernel counts the SYN and the FIN as a byte each.
        assert sorted(each[subflow] for each in reported) == sorted(count - 2 for count in kernel)
        own = sorted(of_subflows(sent.totals[flow])[subflow] for flow in (0, 1))
        assert all(count - 1 <= mine <= count for mine, count in zip(own, sorted(kernel), strict=True))
    for flow in (0, 1):
        assert sum(reported[flow].values()) >= received.totals[flow]["bytes"] + OPENING  # some data come twice
        assert sent.totals[flow]["bytes"] == received.totals[flow]["bytes"]


def test_what_several_subflows_do_not_have_in_common_is_unknown(ends: Ends) -> None:
    ends.join()
    ends.start(500)
    sent, received = ends.reports()
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
    ends.join()
    ends.start(300)
    sent, received = ends.reports()
    ((source, destination, count, timeouts),) = received.totals[0]["mptcp"]
    assert (source, destination) == FIRST
    assert count >= received.totals[0]["bytes"] + OPENING  # data that are sent again come twice
    assert timeouts == 0
    assert sent.totals[0]["rtt_us"] > 0


@pytest.mark.parametrize("off", [("near",), ("far",), ("near", "far")])
@pytest.mark.parametrize("test", ["", "test=pingpong size=100"])
def test_with_a_kernel_that_has_it_switched_off_a_connection_is_tcp(
    ends: Ends, off: tuple[str, ...], test: str
) -> None:
    for name in off:
        getattr(ends, name).switch_off()
    ends.join(f"mptcp=1 {test}")
    ends.start(200)
    sent, received = ends.reports()
    assert sent.totals[0]["mptcp"] == received.totals[0]["mptcp"] == []
    assert sent.totals[0]["mss"] == 1448
    assert sent.totals[0]["bytes"] > 0
    assert sent.columns[:6] == ["t_ns", "bytes", "retransmits", "rtt_us", "cwnd", "mss"]


def test_a_device_that_removes_the_option_makes_it_tcp(ends: Ends) -> None:
    rule = "chain c {\ntype filter hook prerouting priority 0\nreset tcp option mptcp\n}\n"
    ends.far.run("nft", f"table ip strip {{\n{rule}}}\n")
    ends.join()
    ends.start(200)
    sent, received = ends.reports()
    assert sent.totals[0]["mptcp"] == received.totals[0]["mptcp"] == []


def test_over_ipv6_it_listens_there_only(start: Start) -> None:
    receiver, _ = ran(start, 100, address="::1", extra="mptcp=1")
    ((source, destination, count, _),) = report_of(receiver).totals[0]["mptcp"]
    assert (source, destination) == ("::1", "::1")
    assert count >= report_of(receiver).totals[0]["bytes"] + OPENING


def moved(agent: Talk, before: int) -> int:
    """Wait for progress of a receiver; return its bytes."""
    while (count := int(agent.event("progress")["bytes"]["1"])) <= before:
        pass
    return count


@pytest.mark.parametrize("how", ["down", "gone"])
def test_a_link_that_is_cut_ends_its_subflow_and_the_rest_goes_over_the_other(ends: Ends, how: str) -> None:
    ends.join()
    ends.start(5000)
    moved(ends.receiver, 2_000_000)
    if how == "down":
        ends.near.run("ip", "link", "set", "w2", "down")
    else:
        ends.far.run("ip", "mptcp", "endpoint", "flush")
        ends.far.run("ip", "addr", "del", "10.78.2.2/24", "dev", "w2")
    sent, received = ends.reports()
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
    ends.join()
    ends.start(3000)
    moved(ends.receiver, 1_000_000)
    for name in ("w1", "w2"):
        ends.far.run("ip", "link", "set", name, "down")
    ended = ends.sender.event("ended")
    assert ended["error"] == "ETIMEDOUT"
    assert ends.receiver.event("ended", 60)["error"] == "ETIMEDOUT"


def test_connections_at_another_address_are_strangers(ends: Ends) -> None:
    listening = ends.receiver.ask(
        f"listen endpoint=1 address={FIRST[1]} token={'0' * 32} flows=1 interval_ms=50 wait_ms=1000 mptcp=1"
    )
    to = f"('{SECOND[1]}', {listening['port']})"
    ends.near.run(sys.executable, "-c", f"import socket; assert not socket.create_connection({to}, 5).recv(1)")
    assert ends.receiver.ask("ready endpoint=1")["error"] == "ETIMEDOUT"


def test_the_port_is_closed_with_the_endpoint(ends: Ends) -> None:
    port = ends.join()
    assert f":{port} " in ends.far.run("ss", "-tlnH")  # for further subflows
    ends.start(100)
    ends.reports()
    assert ends.receiver.ask("close endpoint=1")["ok"]
    eventually(lambda: ends.far.run("ss", "-tlnH") == "")
