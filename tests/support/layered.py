"""Interfaces on top of network cards, made by ip(8) in a machine with the cards eth2 and eth3; and what was recorded.

The file of `FILE` is what `script()` printed in such a machine; tests/machines/test_layers.py makes it anew.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from guests import connect_data, guest

from rigctl.hosts.network.layers import LAYERS
from rigctl.virtual.layout import Place

FILE: Final = Path(__file__).parents[1] / "unit/fixtures/hosts/layers.rec"
_BOND: Final = "ip link add bond0 type bond miimon 100"
_JOINED: Final = "for card in eth2 eth3; do ip link set $card down; ip link set $card master bond0; done"
STATES: Final = {
    "card": ("eth2", ""),
    "bond active-backup": ("bond0", f"{_BOND} mode active-backup; {_JOINED}"),
    "bond rr": ("bond0", f"{_BOND} mode balance-rr; {_JOINED}"),
    "bond alb": ("bond0", f"{_BOND} mode balance-alb; {_JOINED}"),
    "bond layer2": ("bond0", f"{_BOND} mode 802.3ad lacp_rate fast; {_JOINED}"),
    "bond layer3+4": ("bond0", f"{_BOND} mode 802.3ad lacp_rate fast xmit_hash_policy layer3+4; {_JOINED}"),
    "vlan on bond": (
        "bond0.100",
        f"{_BOND} mode balance-xor xmit_hash_policy layer2+3; {_JOINED}; "
        "ip link add link bond0 name bond0.100 type vlan id 100",
    ),
    "bridge on vlan on bond": (
        "vmbr0",
        f"{_BOND} mode 802.3ad lacp_rate fast; {_JOINED}; ip link add link bond0 name bond0.100 type vlan id 100; "
        "ip link add vmbr0 type bridge; ip link add veth9 type veth peer name peer9; "
        "ip link set bond0.100 master vmbr0; ip link set veth9 master vmbr0; ip link set peer9 up",
    ),
    "bridge": (
        "vmbr0",
        "ip link add vmbr0 type bridge; ip link add veth9 type veth peer name peer9; ip tuntap add tap9 mode tap; "
        "for port in eth2 veth9 tap9; do ip link set $port master vmbr0; done; ip link set peer9 up",
    ),
    "bridge of two cards": (
        "vmbr0",
        "ip link add vmbr0 type bridge; for port in eth2 eth3; do ip link set $port master vmbr0; done",
    ),
    "bridge without a card": (
        "vmbr0",
        "ip link add vmbr0 type bridge; ip link add veth9 type veth peer name peer9; ip link set veth9 master vmbr0; "
        "ip link set peer9 up",
    ),
    "vlan in vlan": (
        "eth2.7.8",
        "ip link add link eth2 name eth2.7 type vlan id 7 protocol 802.1ad; "
        "ip link add link eth2.7 name eth2.7.8 type vlan id 8",
    ),
    "macvlan": ("mac9", "ip link add link eth2 name mac9 type macvlan mode bridge"),
    "vrf": ("red", "ip link add red type vrf table 10; ip link set eth2 master red"),
    "vxlan": ("vx9", "ip link add vx9 type vxlan id 9 dev eth2 remote 10.77.0.9 dstport 4789"),
}
"""Name of a state → the interface, and the commands that make it."""
_MADE: Final = "bond0.100 bond0 vmbr0 veth9 tap9 eth2.7.8 eth2.7 mac9 red vx9"
# The cables of eth2 and eth3 lead to eth4 and eth5, on which another host has a bond by LACP.
_PREPARE: Final = f"""
ip netns add partner
for card in eth4 eth5; do ip link set $card netns partner; done
ip -n partner link add bond9 type bond mode 802.3ad lacp_rate fast miimon 100
for card in eth4 eth5; do ip -n partner link set $card master bond9; ip -n partner link set $card up; done
ip -n partner link set bond9 up
clean() {{
  for made in {_MADE}; do ip link del $made 2>/dev/null; done
  for card in eth2 eth3; do ip link set $card nomaster; ip link set $card up; done
}}
is_settled() {{
  ip -br link show | grep -qE '^(eth[23]|vmbr0) +(DOWN|LOWERLAYERDOWN)' && return 1
  [ -e /proc/net/bonding/bond0 ] || return 0
  case "$(cat /sys/class/net/bond0/bonding/mode)" in active-backup*) return 0 ;; esac
  [ "$(cat /sys/class/net/bond0/speed)" = 2000 ]  # LACP takes some seconds
}}
"""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a machine printed of an interface and those below it: `LAYERS`, and `ip -d -j link` by name."""

    interface: str
    layers: str
    links: dict[str, dict[str, Any]]


def script() -> str:
    """Return a shell script that makes each state in turn and prints what `recorded` reads."""
    lines = [_PREPARE, 'echo "# Recorded by tests/support/layered.py: $(uname -srvm), $(ip -V)"']
    for name, (interface, commands) in STATES.items():
        names = "$(ls -d /sys/class/net/*/ | xargs -n1 basename)"
        lines += ["clean", commands, f"for up in {names}; do ip link set $up up; done"]
        lines += ["for look in $(seq 150); do is_settled && break; sleep 0.2; done"]
        lines += [f"echo '== {name}'", f"IF={interface}", LAYERS]
        lines += [f"for name in {names}; do ip -d -j link show $name; done"]
    return "\n".join((*lines, "clean"))


def recorded(text: str) -> dict[str, Recorded]:
    """Return what was recorded of each state, by its name."""
    found = {}
    for part in text.split("\n== ")[1:]:
        name, _, rest = part.partition("\n")
        lines = rest.splitlines()
        links = [link for line in lines if line.startswith("[") for link in json.loads(line)]
        layers = "".join(f"{line}\n" for line in lines if "|" in line and not line.startswith("["))
        found[name] = Recorded(STATES[name][0], layers, {link["ifname"]: link for link in links})
    return found


@contextmanager
def carded_machine(folder: Path) -> Iterator[list[str]]:
    """Yield the words that begin a command over SSH on a machine with the cards eth2 to eth5, which it ends at last."""

    def add_cards(words: list[str]) -> list[str]:
        words = connect_data(words, "hubport,id=data,hubid=9")
        for card in range(2, 6):
            words += ["-netdev", f"hubport,id=c{card},hubid={card % 2}"]
            words += ["-device", f"e1000e,netdev=c{card},mac=02:79:00:00:00:0{card},romfile="]
        return words

    with guest(folder, Place("layered", 1, 10**9, 1500, nic="e1000e"), add_cards) as made:
        yield made.ssh
