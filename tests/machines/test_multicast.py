"""Multicast behind cards that filter: a card drops the frames of groups that its host did not join before it counts.

The switch is a Linux bridge; each machine is at one of its ports by a TAP. nftables counts what leaves a port.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

import pytest
from guests import Guest, guest
from lab import entering
from processes import eventually, output_of, running
from snooping import GROUP, Bridge, bridged
from user import User

from rigctl.rig.inventory import Nic
from rigctl.virtual.layout import Place
from rigctl.virtual.machines.qemu import hub, hub_socket

pytestmark = [pytest.mark.machines, pytest.mark.timeout(1800)]
CARDS: Final[dict[str, Nic]] = {"camera": "e1000e", "screen": "e1000e", "bystander": "e1000e", "passer": "virtio-net"}
"""The sender, a receiver, and two nodes that do not join."""
OUTSIDE: Final = ("bystander", "passer")
PINGS: Final = 200
_QUEUE_FRAMES: Final = 10_000  # so that a machine that waits for a processor loses no frame
_SOCKET: Final = """
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int count, char **words)
{
    int fd = socket(AF_PACKET, SOCK_RAW, 0), index = (int)if_nametoindex(words[1]);
    int came = 0, more = 1, buffer = 8 << 20;
    struct packet_mreq all = {.mr_ifindex = index, .mr_type = PACKET_MR_ALLMULTI};
    struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = index};
    int six = strchr(words[2], ':') != NULL;
    unsigned char group[16], frame[2048];

    inet_pton(six ? AF_INET6 : AF_INET, words[2], group);
    if (count > 3)
        setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0)
        return 1;
    puts("ready");
    fflush(stdout);
    while (more) {
        struct pollfd events[2] = {{.fd = fd, .events = POLLIN}, {.fd = 0, .events = POLLIN}};

        poll(events, 2, -1);
        more = events[1].revents == 0; /* its input has ended: what has arrived still counts */
        while (recv(fd, frame, sizeof frame, MSG_DONTWAIT) > 0)
            came += memcmp(frame + (six ? 38 : 30), group, six ? 16 : 4) == 0;
    }
    printf("%d\\n", came);
    return 0;
}
"""
"""Counts the packets to a group that a packet socket gets, with a third word by PACKET_MR_ALLMULTI."""


@dataclass(frozen=True)
class Switched:
    """Machines at the ports p1, p2, … of a bridge, and a rig file for each IP version."""

    bridge: Bridge
    guests: dict[str, Guest]
    user: User

    def snoop(self, on: bool) -> None:
        """Let the switch snoop, as the querier, or flood."""
        self.bridge.set(mcast_snooping=int(on))
        self.bridge.set(mcast_querier=int(on))
        asked = dict.fromkeys(OUTSIDE, 0 if on else 1)
        eventually(lambda: self.reached(False, pings=1) == self.reached(True, pings=1) == asked)

    def left_port(self, six: bool) -> dict[str, int]:
        """Return how many packets to the group left the ports of `OUTSIDE` so far, without queries and reports."""
        shown = self.bridge.namespace.run("nft", "list", "table", "netdev", "seen")
        found = re.findall(rf"chain (\w+)|{GROUP[six]} .* packets (\d+)", shown)
        return {name: int(packets) for (name, _), (_, packets) in zip(found[::2], found[1::2], strict=True)}

    def reached(self, six: bool, pings: int = PINGS) -> dict[str, int]:
        """Send to the group, and return how many packets left each port for it."""
        before, camera = self.left_port(six), self.guests["camera"]
        lines = [f"ping -q -I eth0 -c {pings} -i 0.002 -W 0.1 {GROUP[six]} || true"]
        for node in OUTSIDE:  # what was sent before an answer has arrived before it
            lines += [f"ping -q -c 3 -w 100 {self.guests[node].place.ipv4}"]
        camera.run("\n".join(["set -e", *lines]))
        return {node: count - before[node] for node, count in self.left_port(six).items()}

    def heard(self, node: str, six: bool, word: str = "") -> tuple[int, int, int]:
        """Send to the group. Return how many packets left the node's port, its packet socket got, its card counted."""
        made = self.guests[node]
        counted = "cat /sys/class/net/eth0/statistics/rx_packets"
        before = int(made.run(counted))
        command = [*made.ssh, f"/root/socket eth0 {GROUP[six]} {word}"]
        with running(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            reached = self.reached(six)[node]
            came = int(process.communicate(timeout=100)[0])
        found = reached, came, int(made.run(counted)) - before
        print(f"{node}, {CARDS[node]}, {GROUP[six]} {word}: left the port, at the socket, rx_packets: {found}")
        return found

    def allmulti(self) -> dict[str, int]:
        """Return how many ask each node's card for the frames of all groups."""
        return {
            name: json.loads(made.run("ip -d -j link show eth0"))[0]["allmulti"] for name, made in self.guests.items()
        }


@pytest.fixture(scope="module")
def switched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Switched]:
    folder = tmp_path_factory.mktemp("multicast")
    (folder / "socket.c").write_text(_SOCKET)
    output_of(["gcc", "-std=gnu11", "-O1", "-static", "-o", folder / "socket", folder / "socket.c"])
    with ExitStack() as stack:
        bridge = stack.enter_context(bridged(0, False, False, mcast_last_member_interval=20))
        bridge.namespace.run("nft", "add", "table", "netdev", "seen")
        guests = {}
        for number, (name, nic) in enumerate(CARDS.items(), 1):
            place = Place(name, number, 10**9, 1500, nic=nic)
            bridge.namespace.run_lines(
                f"ip tuntap add p{number} mode tap",
                f"ip link set p{number} txqueuelen {_QUEUE_FRAMES} master br0 up",
            )
            tap = f"tap,id=tap,ifname=p{number},script=no,downscript=no,vnet_hdr=off"
            cable = [*hub("x86_64", (place,)), "-netdev", tap, "-netdev", "hubport,id=port,hubid=1,netdev=tap"]
            stack.enter_context(running([*entering(bridge.namespace.name), *cable], cwd=folder))
            eventually((folder / hub_socket(place)).exists)
            guests[name] = stack.enter_context(guest(folder, place))
            guests[name].put(folder / "socket", "socket")
        for name in OUTSIDE:
            chain, port = f"netdev seen {name}", f"p{guests[name].place.number}"
            bridge.namespace.run_lines(
                f"nft 'add chain {chain} {{ type filter hook egress device {port} priority 0; }}'",
                f"nft add rule {chain} ip daddr {GROUP[False]} ip protocol != igmp counter",
                f"nft add rule {chain} ip6 daddr {GROUP[True]} ip6 nexthdr != 0 counter",  # MLD has other headers first
            )
        eventually(lambda: "fe80" in bridge.namespace.run("ip", "-6", "address", "show", "dev", "br0"))
        yield Switched(bridge, guests, User(folder))


@pytest.fixture(params=[False, True], ids=["IPv4", "IPv6"])
def six(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.mark.parametrize("node", OUTSIDE)
def test_a_card_hides_what_a_switch_floods_from_the_kernel_of_a_node_that_did_not_join(
    switched: Switched, node: str, six: bool
) -> None:
    switched.snoop(False)
    left, came, counted = switched.heard(node, six)
    assert (left, came) == (PINGS, 0)
    assert counted < PINGS
    left, came, counted = switched.heard(node, six, "allmulti")
    assert (left, came) == (PINGS, PINGS)
    assert counted >= PINGS


@pytest.mark.parametrize("snoops", [False, True])
def test_all_that_a_switch_sends_to_a_card_that_filters_is_counted(switched: Switched, six: bool, snoops: bool) -> None:
    switched.snoop(snoops)
    allmulti, before = switched.allmulti(), switched.left_port(six)
    switched.user.rigctl("run", scenario(switched, six), "--no-report", deadline_s=600)
    left = {node: count - before[node] for node, count in switched.left_port(six).items()}
    flows = {row["destination"]: row for row in switched.user.rows("flows")}
    sent = flows["screen"]["datagrams_sent"]
    counted = {node: flows[node]["outside_datagrams"] for node in OUTSIDE}
    print(f"{GROUP[six]}, snoops: {snoops}; sent {sent}, left the port {left}, counted {counted}")
    with switched.user.store() as store:
        print({node: (facts["driver"], facts["kernel"]) for node, facts in store.run().facts.items()})
    assert sent > 0 < flows["screen"]["received_mbps"]
    assert counted == left == dict.fromkeys(OUTSIDE, 0 if snoops else sent)
    said = {"multicast-snooped", "multicast-flooded-unqueried"} & set(switched.user.findings())
    assert said == {"multicast-snooped" if snoops else "multicast-flooded-unqueried"}
    # The interfaces are as before, and so is what the cards let through.
    assert switched.allmulti() == allmulti == dict.fromkeys(CARDS, 0)
    switched.snoop(False)
    assert [switched.heard(node, six)[:2] for node in OUTSIDE] == [(PINGS, 0)] * len(OUTSIDE)


def scenario(switched: Switched, six: bool) -> str:
    nodes = {
        name: {
            "address": "127.0.0.1",
            "port": made.port,
            "user": "root",
            "key": str(made.key),
            "known_hosts": str(made.known_hosts),
            "data_address": made.place.ipv6 if six else made.place.ipv4,
            "data_interface": "eth0",
            "rate": "1G",
            "mtu": 1500,
        }
        for name, made in switched.guests.items()
    }
    (switched.user.folder / "rig.yaml").write_text(json.dumps({"nodes": nodes}))
    pairs = json.dumps([f"camera -> {name}" for name in ("screen", *OUTSIDE)])
    return switched.user.scenario(
        f"test: multicast\nrig: ./rig.yaml\npairs: {pairs}\nunjoined: {len(OUTSIDE)}\nsize: 1000\nrate: 4M\nburst: 1\n"
        f"group: '{GROUP[six]}'\nduration: 4s\njoin: 500ms\nleave: 2s\nmax_skew: 10s\n"
    )
