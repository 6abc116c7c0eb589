"""What is read from a switch, however it is asked: its counters, its forwarding table."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class PortCounters:
    """One port's counters as the switch gave them, in and out as the switch sees them; `None`: it does not say.

    `t_ns` is the controller's monotonic clock, half-way between request and answer, which are `took_ns` apart.
    Packets are unicast, multicast and broadcast together. `discontinuity` changes when counters were reset (RFC 2863,
    ifCounterDiscontinuityTime).
    """

    t_ns: int
    took_ns: int | None = None
    in_octets: int | None = None
    out_octets: int | None = None
    in_packets: int | None = None
    out_packets: int | None = None
    in_discards: int | None = None
    out_discards: int | None = None
    in_errors: int | None = None
    out_errors: int | None = None
    discontinuity: int | None = None


class Reader(Protocol):
    """A switch that answers. `source` is "snmp" or "cli"."""

    source: str

    async def read(self) -> dict[str, PortCounters]:
        """The counters of all its ports, by port name, at nearly one instant. Raises `NodeError`."""
        ...


@dataclass(frozen=True, slots=True)
class Forwarding:
    """A switch's own name, and the MAC addresses, as 02:00:00:00:00:01, behind each port, by interface name."""

    name: str | None
    ports: dict[str, frozenset[str]]
