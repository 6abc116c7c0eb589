"""The layout of a virtual rig as plain data: its nodes' addresses, names and links. Pure.

The controller makes a `Layout` from the rig file and hands it, as JSON, to the holder process that builds it.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:  # a holder needs no records of rigs, whose import would take half of its processor time
    from rigctl.rig.inventory import Arch, Nic, Virtual

STAY: Final = b"stay\n"
"""The starter's last message to the holder of a rig that is to outlive it."""
SWITCH: Final = "br0"
NODE_INTERFACE: Final = "eth0"
SECOND_SWITCH: Final = "br.1"
TRUNK_ENDS: Final = ("trunk.0", "trunk.1")
"""Names with a dot, which no node's name has: so no node's port has one of these names."""
# Names that an interface in the switch's namespace cannot have: an interface or a folder of sysctl has them.
_TAKEN: Final = frozenset({SWITCH, "lo", "all", "default"})


@dataclass(frozen=True, slots=True)
class Place:
    """One node of a virtual rig. `number` is 1, 2, … in the rig file's order."""

    name: str
    number: int
    rate_bps: int | None  # None: unshaped
    mtu: int
    bridge: int = 0  # which of Layout.bridges it is connected to
    rtt_ns: int | None = None  # requested round-trip time of its link; None: no delay
    bottleneck_bps: int | None = None  # of something slower than the link on its path
    sysctls: tuple[tuple[str, str], ...] = ()
    arch: "Arch" = "x86_64"  # of a machine
    nic: "Nic" = "virtio-net"

    @property
    def shaped_bps(self) -> int | None:
        """Return the rate of the shapers at both ends of its link; None: unshaped."""
        return min((rate for rate in (self.rate_bps, self.bottleneck_bps) if rate is not None), default=None)

    @property
    def ipv4(self) -> str:
        return f"10.77.0.{self.number}"

    @property
    def ipv6(self) -> str:
        return f"fd77::{self.number:x}"

    @property
    def mac(self) -> str:
        """Return a locally administered address (IEEE 802, second bit of the first byte), the same at every start."""
        return f"02:77:00:00:00:{self.number:02x}"

    @property
    def port(self) -> str:
        """Return the switch's port to this node, named after it where an interface can have that name."""
        return f"port.{self.number}" if self.name in _TAKEN else self.name


@dataclass(frozen=True, slots=True)
class Bridge:
    """A switch of a virtual rig: a bridge. All switches are in one namespace, which SNMP shows."""

    device: str
    key: str | None = None  # in the rig file; None: the only switch, which has no key
    mtu: int | None = None  # of its ports; None: each port has that of its node


@dataclass(frozen=True, slots=True)
class Layout:
    """A virtual rig, resolved. Two rig files that differ only in comments have equal layouts."""

    name: str
    kind: "Virtual"
    ip_version: Literal[4, 6]
    places: tuple[Place, ...]
    bridges: tuple[Bridge, ...] = (Bridge(SWITCH),)  # where there are two, a trunk joins them
    trunk_bps: int | None = None  # None: unshaped
    snmp: bool = False  # whether the switches answer SNMP, where this machine has an snmpd

    @property
    def key(self) -> str:
        """Return `NAME-HASH`, the same for the same definition only."""
        return f"{self.name}-{hashlib.sha256(self.to_json().encode()).hexdigest()[:12]}"

    def data_address(self, place: Place) -> str:
        if self.kind == "loopback":
            # 127.0.0.1 is left to the machine itself. IPv6 has one loopback address only (RFC 4291, 2.5.3).
            return "::1" if self.ip_version == 6 else f"127.0.0.{place.number + 1}"
        return place.ipv6 if self.ip_version == 6 else place.ipv4

    def port_mtu(self, place: Place) -> int:
        """Return the MTU of the switch's port to a node: frames of that size pass when the node's own MTU is raised."""
        return self.bridges[place.bridge].mtu or place.mtu

    @property
    def trunk(self) -> tuple[tuple[str, Bridge], ...]:
        """Return the trunk's two ends: interface, and the bridge it is a port of. Empty if there is one switch."""
        return tuple(zip(TRUNK_ENDS, self.bridges, strict=True)) if len(self.bridges) > 1 else ()

    def data_interface(self) -> str:
        return "lo" if self.kind == "loopback" else NODE_INTERFACE

    def ssh_address(self, place: Place) -> str:
        """Return the address at which the controller reaches the node's SSH server, on a port that the kernel chose."""
        return f"127.0.0.{place.number + 1}" if self.kind == "loopback" else "127.0.0.1"

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Layout":
        raw = json.loads(text)
        raw["places"] = tuple(
            Place(**place | {"sysctls": tuple((name, value) for name, value in place["sysctls"])})
            for place in raw["places"]
        )
        raw["bridges"] = tuple(Bridge(**bridge) for bridge in raw["bridges"])
        return cls(**raw)
