"""What of a host carries data: its interfaces and the routes of its main table, whichever system it runs."""

from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface, IPv6Network


@dataclass(frozen=True, slots=True)
class Interface:
    """A network interface. `speed_bps` and `duplex` are of hardware, its own or below it: a veth's mean nothing."""

    name: str
    is_up: bool
    speed_bps: int | None
    duplex: str | None
    mtu: int | None
    mac: str | None
    driver: str | None
    is_hardware: bool
    below: tuple[str, ...] = ()
    addresses: tuple[IPv4Interface | IPv6Interface, ...] = ()


@dataclass(frozen=True, slots=True)
class Route:
    """A route of the main table: where to, over which interface."""

    to: IPv4Network | IPv6Network
    interface: str
