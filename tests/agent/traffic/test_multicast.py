"""Multicast: sent once, counted at each receiver from its join to its leave, and at nodes that did not join.

The switch is a Linux bridge; nftables on the nodes counts what reaches them.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from processes import eventually
from snooping import GROUP, NO_WORDS, Bridge, Ran, bridged, multicast, opened, snoops

JOINED, UNJOINED = ("2", "3"), ("4",)
UNPRIVILEGED = ("setpriv", "--inh-caps=-net_raw", "--bounding-set=-net_raw")
IFF_ALLMULTI = 0x200  # linux/if.h
QUICK = {"mcast_last_member_interval": 20}
"""A bridge that stops 0.4 s after a leave."""


@contextmanager
def switch(binary: Path, snooping: bool, querier: bool, by: Any = NO_WORDS, **options: object) -> Iterator[Bridge]:
    with ExitStack() as stack:
        made = stack.enter_context(bridged(4, snooping, querier, **options))
        made.start(binary, stack, by)
        if snooping and querier:
            snoops(made)
        yield made


def lost(run: Ran, node: str) -> int:
    """Return how many datagrams from the first that a receiver got to the last did not arrive."""
    counts = run.received[node].datagrams[0]
    return int(counts["highest"] - run.counts(node)["first_number"] - counts["datagrams"])


def is_whole(run: Ran, node: str) -> bool:
    """Tell whether what a receiver counted fits together, and nothing was lost."""
    counts, came = run.counts(node), run.received[node].datagrams[0]
    times = [counts[name] for name in ("joined_ns", "first_ns", "last_ns", "ended_ns")]
    assert times == sorted(times)
    assert counts["joined_ns"] <= counts["left_ns"]
    assert came["highest"] <= run.sent.datagrams[0]["datagrams"]
    assert run.received[node].totals[0]["bytes"] == 1000 * came["datagrams"] > 0
    return (lost(run, node), came["duplicates"]) == (0, 0)


@pytest.mark.parametrize("six", [False, True])
def test_a_switch_that_floods_is_seen_at_nodes_that_did_not_join(binary: Path, six: bool) -> None:
    with switch(binary, snooping=False, querier=False) as made:
        for node in (*JOINED, *UNJOINED):
            made.count(node, GROUP[six])
        run = multicast(made, JOINED, UNJOINED, six=six, more=f"group={GROUP[six]}")
        sent = run.sent.datagrams[0]["datagrams"]
        assert [made.counted(node, six) for node in (*JOINED, *UNJOINED)] == [sent] * 3
    for node in JOINED:
        assert is_whole(run, node)
        counts, came = run.counts(node), run.received[node].datagrams[0]["datagrams"]
        assert counts["group"] == GROUP[six]
        assert counts["before"] > 0 < counts["after"]
        assert counts["before"] + came + counts["after"] <= sent
        assert counts["left_ns"] <= counts["after_last_ns"] <= 1.5 * counts["ended_ns"]
    counts = run.counts("4")
    assert (counts["joins"], counts["before"], counts["after"], counts["joined_ns"]) == (False, sent, 0, None)
    assert 0 < counts["before_gap_ns"] <= counts["before_last_ns"] - counts["before_first_ns"]
    assert run.received["4"].totals[0]["bytes"] == 0
    assert counts["queries"] == [0, 0, 0]


@pytest.mark.parametrize("six", [False, True])
@pytest.mark.parametrize("newest", [False, True])
def test_a_switch_that_snoops_sends_only_to_nodes_that_joined(binary: Path, six: bool, newest: bool) -> None:
    versions = {"mcast_igmp_version": 2 + newest, "mcast_mld_version": 1 + newest}
    with switch(binary, snooping=True, querier=True, **QUICK, **versions) as made:
        made.count("4", GROUP[six])
        run = multicast(made, JOINED, UNJOINED, six=six, duration_ms=4000, leave_ms=2500, more=f"group={GROUP[six]}")
        assert made.counted("4", six) == 0
    for node in JOINED:
        assert is_whole(run, node)
        counts, sent = run.counts(node), run.sent.datagrams[0]["datagrams"]
        assert counts["before"] == 0
        assert counts["first_number"] > 0
        # After a leave a querier asks whether anyone else is there.
        assert counts["group_queries"] > 0
        left_ms = counts["left_ns"] / 1e6
        assert 0 < counts["after"] <= sent * (4000 - left_ms) / 4000
        version = newest + (1 if not six else 0)
        assert [bool(count) for count in counts["reports"]] == [version == number for number in range(3)]
    assert [run.counts("4")[name] for name in ("before", "before_first_ns", "before_gap_ns")] == [0, None, None]


@pytest.mark.parametrize(("six", "version"), [(False, 2), (False, 3), (True, 1), (True, 2)])
def test_queries_are_counted_by_version_with_their_source(binary: Path, six: bool, version: int) -> None:
    options = {"mcast_mld_version" if six else "mcast_igmp_version": version}
    with switch(binary, snooping=True, querier=False, **options) as made:
        made.namespace.run("ip", "address", "add", "10.9.0.100/24", "dev", "br0")
        made.set(mcast_query_use_ifaddr=1)
        eventually(lambda: "fe80" in made.namespace.run("ip", "-6", "address", "show", "dev", "br0"))
        run = multicast(made, JOINED, UNJOINED, six=six, duration_ms=3000, meanwhile=lambda: made.set(mcast_querier=1))
    for node in (*JOINED, *UNJOINED):
        counts = run.counts(node)
        assert [bool(count) for count in counts["queries"]] == [version == number for number in (1, 2, 3)]
        assert 0 <= counts["query_first_ns"] <= counts["query_last_ns"]
        assert counts["response_ns"] == 500_000_000
        assert counts["querier"].startswith("fe80::") if six else counts["querier"] == "10.9.0.100"


def test_an_interface_is_watched_from_the_opening_of_a_flow_to_its_close_also_if_it_does_not_start(
    binary: Path,
) -> None:
    with switch(binary, snooping=False, querier=False) as made:

        def takes_all() -> list[bool]:
            flags = [made.nodes[node].run("cat", "/sys/class/net/n0/flags") for node in (*JOINED, *UNJOINED)]
            return [bool(int(text, 16) & IFF_ALLMULTI) for text in flags]

        assert takes_all() == [False] * 3
        ends = opened(made, JOINED, UNJOINED)
        assert takes_all() == [True] * 3
        for node, endpoint in ends.items():
            for agent in (made.agents[node], made.agents["1"]):
                assert agent.ask(f"close endpoint={endpoint}")["ok"]
        assert takes_all() == [False] * 3
        multicast(made, JOINED, UNJOINED)
        assert takes_all() == [False] * 3


def test_without_rights_what_comes_to_others_is_unknown_and_not_nothing(binary: Path) -> None:
    with switch(binary, snooping=False, querier=False, by={"2": UNPRIVILEGED, "4": UNPRIVILEGED}) as made:
        run = multicast(made, JOINED, UNJOINED)
    assert is_whole(run, "2")
    for node in ("2", "4"):
        unknown = {"before", "after", "queries", "group_queries", "reports", "querier"}
        assert {run.counts(node)[name] for name in unknown} == {None}
    assert run.counts("3")["before"] > 0


def test_datagrams_of_another_sender_to_the_group_do_not_count(binary: Path) -> None:
    group = GROUP[False]
    with switch(binary, snooping=False, querier=False) as made:
        shout = f"""if True:
            import socket
            to_all = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            to_all.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("10.9.0.4"))
            for _ in range(40):
                to_all.sendto(bytes(1000), ("{group}", 5000))
        """

        def have_joined() -> bool:
            shown = [made.nodes[node].run("ip", "maddress", "show", "dev", "n0") for node in JOINED]
            return all(group in text for text in shown)

        def shout_to_members() -> None:
            eventually(have_joined)
            made.nodes["4"].run("python3", "-c", shout)

        more = f"group={group} group_port=5000"
        run = multicast(made, JOINED, more=more, join_ms=0, meanwhile=shout_to_members, duration_ms=4000)
    for node in JOINED:
        assert is_whole(run, node)
        assert run.received[node].datagrams[0]["strays"] > 0


def test_a_group_that_cannot_be_joined_is_a_failure_with_its_reason(binary: Path) -> None:
    with switch(binary, snooping=False, querier=False) as made:
        made.nodes["2"].run("sysctl", "-qw", "net.ipv4.igmp_max_memberships=0")
        with pytest.raises(AssertionError, match="joining the group: No buffer space available"):
            multicast(made, ("2",), duration_ms=500, join_ms=100, leave_ms=100)


def test_a_stop_ends_it_and_leaves_the_group(binary: Path) -> None:
    with switch(binary, snooping=False, querier=False) as made:
        stop = lambda: [made.agents[node].ask("stop endpoint=1") for node in ("2", "1")]  # noqa: E731
        run = multicast(made, ("2",), duration_ms=300_000, join_ms=0, meanwhile=stop)
        assert GROUP[False] not in made.nodes["2"].run("ip", "maddress", "show", "dev", "n0")
    assert run.counts("2")["ended_ns"] == 300_000_000_000


@pytest.mark.parametrize(("six", "start"), [(False, "239.255."), (True, "ff15::")])
def test_the_group_follows_from_the_token_where_none_is_named(binary: Path, six: bool, start: str) -> None:
    with switch(binary, snooping=False, querier=False) as made:
        run = multicast(made, JOINED, six=six, duration_ms=600, leave_ms=100)
    assert run.counts("2")["group"] == run.counts("3")["group"]
    assert run.counts("2")["group"].startswith(start)
