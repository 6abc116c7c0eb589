"""All interfaces and routes of a host: their records, and parsers of ip(8) and /sys/class/net."""

from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface, IPv6Network, ip_interface, ip_network
from typing import Final, TypeAlias

from rigctl.base.texts import printable
from rigctl.hosts.fact import find_first, take_number

Held: TypeAlias = IPv4Interface | IPv6Interface
"""An address of a host, with the network of the address."""
FLEETING: Final = frozenset({"temporary", "deprecated", "tentative", "duplicated", "detached"})
"""Words in ip(8) and ifconfig(8) that mark an address as temporary or not (yet) usable."""
_MOST_SPEED: Final = 10_000_000  # Mbit/s; the kernel prints 4294967295 (-1) if the speed is unknown
# Print a line per interface: name, operstate, speed, duplex, MTU, MAC, driver, hardware (yes or no), lower interfaces.
# The files lower_NAME name the interfaces below a bond, bridge or VLAN, which is no hardware.
# It uses `read`, as a cat(1) process per value would be slow on a host with many interfaces.
LIST_INTERFACES: Final = """
ip -o addr
got() { v=; [ -r "$1" ] && read -r v <"$1"; said="$said$v|"; }
for d in /sys/class/net/*; do
  [ -e "$d/mtu" ] || continue
  said="${d##*/}|"; below=; hw=no; drv=
  for f in operstate speed duplex mtu address; do got "$d/$f"; done
  for l in "$d"/lower_*; do [ -e "$l" ] && below="$below,${l##*/lower_}"; done
  [ -e "$d/device" ] && hw=yes && drv=$(readlink "$d/device/driver")
  echo "$said${drv##*/}|$hw|$below"
done
"""


@dataclass(frozen=True, slots=True)
class HostInterface:
    """A network interface. `speed_bps` and `duplex` are None unless the interface is, or is based on, hardware."""

    name: str
    is_up: bool
    speed_bps: int | None
    duplex: str | None
    mtu: int | None
    mac: str | None
    driver: str | None
    is_hardware: bool
    below: tuple[str, ...] = ()
    addresses: tuple[Held, ...] = ()


@dataclass(frozen=True, slots=True)
class TableRoute:
    """A route of the main routing table."""

    to: IPv4Network | IPv6Network
    interface: str


parse_duplex: Final = find_first(r"\A\s*(full|half)[ \t\r]*$", str)


def parse_speed(output: str) -> int | None:
    """Return the speed in bit/s from /sys/class/net/…/speed in Mbit/s; None for 0, and for -1 in 16 or 32 bits."""
    speed = take_number(output)
    return speed * 10**6 if speed and speed != 0xFFFF and speed <= _MOST_SPEED else None


def parse_addresses(output: str, *, lasting: bool = False) -> dict[str, list[Held]]:
    """Return the global addresses of each interface in `ip -o link` and `ip -o addr`, in the kernel's order.

    With `lasting`, leave out temporary addresses and addresses that are not (yet) usable.
    """
    found: dict[str, list[Held]] = {}
    for line in output.splitlines():
        # Example: 2: eth0    inet 10.0.0.1/24 brd 10.0.0.255 scope global …
        words = line.split()
        if len(words) < 3 or not words[0].rstrip(":").isdigit():
            continue
        held = found.setdefault(words[1].rstrip(":").partition("@")[0], [])
        if words[2] in ("inet", "inet6") and "global" in words and not (lasting and FLEETING & set(words)):
            # On a point-to-point link (`10.0.0.1 peer 10.0.0.2/32`), the network is the address alone.
            with suppress(ValueError):
                held.append(ip_interface(words[3]))
    return found


def parse_interfaces(output: str) -> dict[str, HostInterface]:
    """Return all interfaces except loopback by name, from the output of `LIST_INTERFACES`."""
    held = parse_addresses(output, lasting=True)
    found: dict[str, HostInterface] = {}
    for line in output.splitlines():
        fields = printable(line).split("|")
        if len(fields) != 9 or fields[0] == "lo":
            continue
        name, state, speed, duplex, mtu, mac, driver, hardware, below = (text.strip() for text in fields)
        known = hardware == "yes" or bool(below)
        found[name] = HostInterface(
            name=name,
            is_up=state in ("up", "unknown"),  # the state of a tunnel is always unknown
            speed_bps=parse_speed(speed) if known else None,
            duplex=parse_duplex(duplex) if known else None,
            mtu=take_number(mtu),
            mac=mac.lower() if mac.count(":") == 5 and mac != "00:00:00:00:00:00" else None,
            driver=driver or None,
            is_hardware=hardware == "yes",
            below=tuple(name for name in below.split(",") if name),
            addresses=tuple(held.get(name, ())),
        )
    return found


def parse_routes(output: str) -> tuple[TableRoute, ...]:
    """Return the routes in `ip -o route` except those without interface, such as prohibited ones."""
    found: list[TableRoute] = []
    for line in output.splitlines():
        # Examples: default via 10.0.0.254 dev eth0 …; 10.1.0.0/16 via 10.0.0.9 dev eth0; unreachable …
        words = line.split()
        if "dev" not in words[1:-1]:
            continue
        to = words[0]
        if to == "default":
            to = "::/0" if ":" in line.partition(" dev ")[0] else "0.0.0.0/0"
        with suppress(ValueError):
            found.append(TableRoute(ip_network(to), printable(words[words.index("dev") + 1])))
    return tuple(found)
