"""All interfaces and routes of a host: their records, and parsers of ip(8) and /sys/class/net."""

from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface, IPv6Network, ip_interface, ip_network
from typing import Final, TypeAlias

from rigctl.base.texts import printable
from rigctl.hosts.network.layers import SAY_LAYER, carrier_of, parse_layers
from rigctl.model.bonds import Bond

Held: TypeAlias = IPv4Interface | IPv6Interface
"""An address of a host, with the network of the address."""
FLEETING: Final = frozenset({"temporary", "deprecated", "tentative", "duplicated", "detached"})
"""Words in ip(8) and ifconfig(8) that mark an address as temporary or not (yet) usable."""
LIST_INTERFACES: Final = f"""
ip -o addr
{SAY_LAYER}
for d in /sys/class/net/*; do [ -e "$d/mtu" ] && say "${{d##*/}}"; done
"""


@dataclass(frozen=True, slots=True)
class HostInterface:
    """A network interface. `speed_bps` and `duplex` are of the hardware that carries its frames; None without."""

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
    cards: tuple[str, ...] = ()  # hardware that carries its frames
    bond: Bond | None = None


@dataclass(frozen=True, slots=True)
class TableRoute:
    """A route of the main routing table."""

    to: IPv4Network | IPv6Network
    interface: str


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
    layers = parse_layers(output)
    found: dict[str, HostInterface] = {}
    for name, layer in layers.items():
        if name == "lo":
            continue
        carrier = carrier_of(name, layers)
        found[name] = HostInterface(
            name=name,
            is_up=layer.state in ("up", "unknown"),  # the state of a tunnel is always unknown
            speed_bps=carrier.speed_bps,
            duplex=carrier.duplex,
            mtu=layer.mtu,
            mac=layer.mac,
            driver=layer.driver,
            is_hardware=layer.is_hardware,
            below=layer.below,
            addresses=tuple(held.get(name, ())),
            cards=carrier.cards,
            bond=carrier.bond,
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
