"""What is read from a switch, however it is asked: its counters and its forwarding table; and names of its ports."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, Protocol

_PARTS: Final = re.compile(r"\s*([A-Za-z-]*)\s*(.*?)\s*")


@dataclass(frozen=True, slots=True)
class PortCounters:
    """One port's counters as the switch gave them, in and out as the switch sees them. `None`: it does not say.

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
        """Return the counters of all ports by name, at nearly one instant. Raise `NodeError`."""
        ...


@dataclass(frozen=True, slots=True)
class Forwarding:
    """A switch's own name, and the MAC addresses, as 02:00:00:00:00:01, behind each port, by interface name."""

    name: str | None
    ports: dict[str, frozenset[str]]


def resolved(
    wanted: Iterable[str], known: Mapping[int, tuple[str, ...]]
) -> tuple[dict[str, int], dict[str, list[str]]]:
    """Return the interface index of each wanted name, and for each name without one the nearest known names.

    `known`: the names of each interface (ifName, ifDescr, ifAlias). The same name wins; else a name whose letters
    begin alike and whose numbers are equal, as Gi1/1 and GigabitEthernet1/1, if only one interface fits.
    """
    exact = {name.casefold(): index for index, names in reversed(list(known.items())) for name in names if name}
    indexes: dict[str, int] = {}
    missing: dict[str, list[str]] = {}
    for name in wanted:
        index = exact.get(name.casefold())
        if index is None:
            alike = {key for key, names in known.items() for other in names if other and _alike(name, other)}
            index = alike.pop() if len(alike) == 1 else None
        if index is None:
            every = list(dict.fromkeys(names[0] for names in known.values() if names and names[0]))
            missing[name] = get_close_matches(name, every, 3, 0.3) or every[:3]
        else:
            indexes[name] = index
    return indexes, missing


def _alike(one: str, other: str) -> bool:
    parts = [match.groups() for name in (one, other) if (match := _PARTS.fullmatch(name.casefold()))]
    if len(parts) < 2 or parts[0][1] != parts[1][1] or not parts[0][1]:
        return False
    words = (parts[0][0], parts[1][0])
    return bool(words[0] and words[1]) and (words[0].startswith(words[1]) or words[1].startswith(words[0]))
