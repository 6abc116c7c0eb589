"""Shaping arithmetic against the frames of Ethernet, the lines that ip and tc are given, and the count of drops."""

from dataclasses import replace
from typing import Any

import pytest

from rigctl.virtual import links
from rigctl.virtual.layout import Bridge, Layout, Place
from rigctl.virtual.links import burst_bytes, node_lines, port_shaping_lines, shaped_bps, switch_lines
from rigctl.virtual.snmpd import answer, discards

MTUS = dict.fromkeys(("pi1", "pi2", "a", "b", "near", "slow"), 1500)


def place(name: str = "pi1", number: int = 1, rate_bps: int | None = 10**9) -> Place:
    return Place(name, number, rate_bps, 1500)


def layout(*places: Place) -> Layout:
    return Layout("lab", "namespaces", 4, places or (place(), place("pi2", 2)))


def test_a_full_frame_takes_its_wire_time() -> None:
    published_mbps = {(1500, 1448): 941.482, (9000, 8948): 990.042, (1500, 1460): 949.285}
    found = {(mtu, payload): shaped_bps(10**9, mtu) / (mtu + 14) * payload / 1e6 for mtu, payload in published_mbps}
    assert found == pytest.approx(published_mbps, abs=0.001)


def test_the_bucket_holds_a_millisecond_and_never_less_than_a_few_frames() -> None:
    assert burst_bytes(10**9, 1500) == pytest.approx(123_000, rel=0.001)
    assert burst_bytes(10**9, 1500) > 65536 + 45 * 66  # a super-packet with the headers of its segments
    assert burst_bytes(10**6, 9000) == 4 * 9038
    assert burst_bytes(5 * 10**7, 1500) == 8 * 1538


@pytest.mark.parametrize("rate_bps", [10**6, 2 * 10**7, 5 * 10**7, 10**8])
def test_a_slow_links_bucket_takes_a_super_packet_whole(rate_bps: int) -> None:
    slow = place(rate_bps=rate_bps)
    largest = links.super_packet_bytes(rate_bps, 1500)
    assert largest is not None
    assert f"link set dev eth0 gso_max_size {largest}" in list(node_lines(slow, ipv6=False))
    segments = largest // 1514
    assert segments >= 4
    assert segments * 1514 <= links.node_bucket(rate_bps, 1500).burst_bytes  # as the queue counts it, headers of each


def test_both_ends_of_a_cable_are_shaped_alike_but_for_their_queues() -> None:
    (at_switch, _), (at_node,) = list(port_shaping_lines(layout(), MTUS)), list(links.node_shaping_lines(place(), 1500))
    assert at_switch.startswith("qdisc replace dev pi1 root tbf rate 984395318bit burst 123049b limit ")
    assert at_node.startswith("qdisc replace dev eth0 root tbf rate 984395318bit burst 123049b limit 1514000b")


def two_switches(trunk_bps: int | None = 8 * 10**9) -> Layout:
    places = (place("a", 1), replace(place("b", 2), bridge=1))
    bridges = (Bridge("br0", "f10", 9216), Bridge("br.1", "cisco", 9000))
    return Layout("lab", "namespaces", 4, places, bridges, trunk_bps)


def test_a_rig_of_one_switch_is_built_by_the_same_lines_as_ever() -> None:
    assert list(switch_lines(layout())) == [
        "link add name br0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
        "link add name pi1 mtu 1500 type veth peer name eth0 mtu 1500 address 02:77:00:00:00:01 netns pi1",
        "link set dev pi1 master br0 up",
        "link add name pi2 mtu 1500 type veth peer name eth0 mtu 1500 address 02:77:00:00:00:02 netns pi2",
        "link set dev pi2 master br0 up",
        "link set dev br0 mtu 1500 up",
    ]
    assert not any("trunk" in line for line in port_shaping_lines(layout(), MTUS))


def test_two_bridges_with_their_ports_and_a_cable_between_them() -> None:
    lines = list(switch_lines(two_switches()))
    assert lines[1] == "link add name br.1 type bridge stp_state 0 forward_delay 0 mcast_snooping 0"
    # A switch's port lets pass what its node may be set to later; the node's own interface is as the rig file says.
    assert "link add name a mtu 9216 type veth peer name eth0 mtu 1500 address 02:77:00:00:00:01 netns a" in lines
    assert "link set dev b master br.1 up" in lines
    assert "link add name trunk.0 mtu 9216 type veth peer name trunk.1 mtu 9000" in lines
    assert {"link set dev trunk.0 master br0 up", "link set dev trunk.1 master br.1 up"} <= set(lines)
    assert lines[-2:] == ["link set dev br0 mtu 9216 up", "link set dev br.1 mtu 9000 up"]


def test_a_trunk_is_shaped_at_both_ends_and_has_a_queue_of_its_own() -> None:
    lines = [line for line in port_shaping_lines(two_switches(), MTUS) if "trunk" in line]
    assert [line.split()[3] for line in lines] == ["trunk.0", "trunk.1"]
    # A millisecond, and 3.25 of them: at 7.875 Gbit/s 984 KB and 3.2 MB.
    assert all(f"rate {shaped_bps(8 * 10**9, 1500)}bit burst 984395b limit 3199284b" in line for line in lines)
    assert not any("trunk" in line for line in port_shaping_lines(two_switches(trunk_bps=None), MTUS))


def test_a_link_with_a_round_trip_is_two_taps_that_are_there_already() -> None:
    far = replace(place("far", 2), rtt_ns=5_000_000)
    made = list(switch_lines(layout(place("near"), far)))
    assert not any("name far " in line for line in made)
    assert {"link set dev far mtu 1500 txqueuelen 10000", "link set dev far master br0 up"} <= set(made)
    own = "link set dev eth0 mtu 1500 address 02:77:00:00:00:02 txqueuelen 10000"
    assert own in list(node_lines(far, ipv6=False))
    assert not any("txqueuelen" in line for line in node_lines(place("near"), ipv6=False))


COLUMN = ".1.3.6.1.2.1.2.2.1.19"
COUNTED = {2: 7, 5: 0, 11: 2**32 + 3}


def link(index: int, name: str, dropped: int) -> dict[str, Any]:
    """An interface as `ip -s -j link` prints it."""
    return {"ifindex": index, "ifname": name, "stats64": {"rx": {"dropped": 9}, "tx": {"dropped": dropped}}}


def queue(name: str, dropped: int, **more: Any) -> dict[str, Any]:
    """A queue as `tc -s -j qdisc` prints it."""
    return {"kind": "tbf", "handle": "8001:", "dev": name, "drops": dropped, **more}


def test_drops_of_interface_and_queue_are_both_discards() -> None:
    links = [link(4, "a", 3), link(5, "b", 0), link(6, "c", 2)]
    assert discards(links, [queue("a", 40, root=True), queue("b", 1, root=True)]) == {4: 43, 5: 1, 6: 2}
    assert discards([link(4, "a", 0)], [queue("a", 40, parent="8001:1")]) == {4: 0}  # its outer queue counts it


def test_snmpd_gets_a_counter_or_none() -> None:
    second, fifth = f"{COLUMN}.2\ncounter\n7", f"{COLUMN}.5\ncounter\n0"
    found = {".2": second, ".5": fifth, ".11": f"{COLUMN}.11\ncounter\n3"}  # 32 bits wrap
    found |= dict.fromkeys((".3", "", "9.2", ".2.1", ".-2"), "NONE")
    assert {last: answer("get", f"{COLUMN}{last}", COUNTED) for last in found} == found
    following = {"": second, ".2": fifth, ".3": fifth, ".11": "NONE"}
    assert {last: answer("getnext", f"{COLUMN}{last}", COUNTED) for last in following} == following
    others = [("get", ".1.3.6.1.2.1.2.2.1.18.2"), ("get", ""), ("set", f"{COLUMN}.2")]
    assert [answer(verb, oid, COUNTED) for verb, oid in others] == ["NONE"] * 3
