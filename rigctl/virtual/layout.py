"""The layout of a virtual rig as plain data: addresses, names and links of its nodes.

The controller makes a `Layout` from the rig file and sends it as JSON to the holder process, which builds the rig.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:  # importing these records would take half of a holder's processor time
    from rigctl.rig.inventory import Arch, Multicast, Nic, Virtual

STAY: Final = b"stay\n"
"""The starter's last message to the holder, after which the rig outlives the starter."""
SWITCH: Final = "br0"
NODE_INTERFACE: Final = "eth0"
SECOND_SWITCH: Final = "br.1"
TRUNK_ENDS: Final = ("trunk.0", "trunk.1")
"""Interface names with a dot, so that no node's port can have the same name."""
ROUTER: Final = "trunk.router"
"""Name of the router's namespace, with a dot for the same reason."""
ROUTER_ENDS: Final = ("eth0", "eth1")
_ROUTER_NUMBER: Final = 254
# Names that a node's port cannot have, because other interfaces or folders in /proc/sys/net have them.
_TAKEN: Final = frozenset({SWITCH, "lo", "all", "default"})


def _ipv4(subnet: int, number: int) -> str:
    return f"10.77.{subnet}.{number}"


def _ipv6(subnet: int, number: int) -> str:
    return f"fd77::{number:x}" if not subnet else f"fd77:0:0:{subnet:x}::{number:x}"


def router_addresses(subnet: int) -> tuple[str, str]:
    """Return the router's IPv4 and IPv6 address in a subnet."""
    return _ipv4(subnet, _ROUTER_NUMBER), _ipv6(subnet, _ROUTER_NUMBER)


@dataclass(frozen=True, slots=True)
class Place:
    """A node of a virtual rig. `number` counts the nodes of the rig file from 1."""

    name: str
    number: int
    rate_bps: int | None  # rate of the link in bit/s; None: unlimited
    mtu: int
    bridge: int = 0  # index of the node's switch in Layout.bridges
    rtt_ns: int | None = None  # requested round-trip time of the link; None: no delay
    bottleneck_bps: int | None = None  # rate of a slower hop on the path in bit/s; None: no such hop
    sysctls: tuple[tuple[str, str], ...] = ()
    disk_bps: int | None = None  # rate of the node's slow disk in bit/s; None: the machine's own disk
    arch: "Arch" = "x86_64"  # processor architecture of a virtual machine; namespaces ignore it
    nic: "Nic" = "virtio-net"
    routed: bool = False  # True if the nodes of each switch are a subnet, with a router between both

    @property
    def shaped_bps(self) -> int | None:
        """Return the rate limit at both ends of the node's link in bit/s; None if unlimited."""
        return min((rate for rate in (self.rate_bps, self.bottleneck_bps) if rate is not None), default=None)

    @property
    def ipv4(self) -> str:
        return _ipv4(self.bridge if self.routed else 0, self.number)

    @property
    def ipv6(self) -> str:
        return _ipv6(self.bridge if self.routed else 0, self.number)

    @property
    def gateways(self) -> tuple[str, str] | None:
        """Return the router's IPv4 and IPv6 address in the node's subnet; None without a router."""
        return router_addresses(self.bridge) if self.routed else None

    @property
    def mac(self) -> str:
        """Return a MAC address that is locally administered (IEEE 802, second bit), the same at every start."""
        return f"02:77:00:00:00:{self.number:02x}"

    @property
    def port(self) -> str:
        """Return the name of the switch's port to this node: the node's name, unless that is taken."""
        return f"port.{self.number}" if self.name in _TAKEN else self.name


@dataclass(frozen=True, slots=True)
class Bridge:
    """A switch of a virtual rig, made as a bridge. All bridges are in one namespace, whose interfaces SNMP shows."""

    device: str
    key: str | None = None  # name of the switch in the rig file; None: the only switch, without a name
    mtu: int | None = None  # MTU of all ports; None: each port has the MTU of its node
    multicast: "Multicast" = "floods"  # "snoops": IGMP and MLD snooping; "queries": as the querier, too


@dataclass(frozen=True, slots=True)
class Layout:
    """A virtual rig, with defaults filled in. Rig files that differ only in comments have equal layouts."""

    name: str
    kind: "Virtual"
    ip_version: Literal[4, 6]
    places: tuple[Place, ...]
    bridges: tuple[Bridge, ...] = (Bridge(SWITCH),)  # two if there is a trunk between them
    trunk_bps: int | None = None  # rate of the trunk in bit/s; None: unlimited
    snmp: bool = False  # whether the switches answer SNMP, if this machine has snmpd
    routed: bool = False  # whether the trunk leads through a router

    @property
    def key(self) -> str:
        """Return `NAME-HASH`, the name of the rig with a hash that only equal layouts share."""
        return f"{self.name}-{hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]}"

    def data_address(self, place: Place) -> str:
        if self.kind == "loopback":
            # 127.0.0.1 belongs to the machine itself. IPv6 has only one loopback address (RFC 4291, 2.5.3).
            return "::1" if self.ip_version == 6 else f"127.0.0.{place.number + 1}"
        return place.ipv6 if self.ip_version == 6 else place.ipv4

    def port_mtu(self, place: Place) -> int:
        """Return the MTU of the switch's port to a node. It limits frames even if the node's MTU is raised later."""
        return self.bridges[place.bridge].mtu or place.mtu

    @property
    def trunk(self) -> tuple[tuple[str, Bridge], ...]:
        """Return interface and bridge of each end of the trunk; empty if there is a single switch."""
        return tuple(zip(TRUNK_ENDS, self.bridges, strict=True)) if len(self.bridges) > 1 else ()

    def data_interface(self) -> str:
        return "lo" if self.kind == "loopback" else NODE_INTERFACE

    def ssh_address(self, place: Place) -> str:
        """Return the address at which the controller reaches the node's SSH server. The kernel chooses the port."""
        return f"127.0.0.{place.number + 1}" if self.kind == "loopback" else "127.0.0.1"

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> "Layout":
        """Return the layout whose `asdict` was sent as JSON and parsed to `raw`."""
        raw["places"] = tuple(
            Place(**place | {"sysctls": tuple((name, value) for name, value in place["sysctls"])})
            for place in raw["places"]
        )
        raw["bridges"] = tuple(Bridge(**bridge) for bridge in raw["bridges"])
        return cls(**raw)
