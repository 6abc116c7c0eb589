"""Records of a switch's answers by SNMP or command line: port counters, forwarding table, names of ports."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final, Protocol, TypeAlias

_PARTS: Final = re.compile(r"\s*([A-Za-z-]*)\s*(.*?)\s*")


@dataclass(frozen=True, slots=True)
class PortCounters:
    """Counters of one port; `in` counts what the switch receives. None: the switch does not report the counter.

    `t_ns` is the controller's monotonic clock, half-way between request and answer, which are `took_ns` apart.
    Packets include unicast, multicast and broadcast. `discontinuity` has another value after the counters were reset
    (RFC 2863, ifCounterDiscontinuityTime).
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
    in_pause: int | None = None  # pause frames from the device at the port; like all below, not in each reading
    out_pause: int | None = None
    fcs_errors: int | None = None
    alignment_errors: int | None = None
    late_collisions: int | None = None


class Reader(Protocol):
    """Reads the counters of a switch. `source` is "snmp" or "cli"."""

    source: str

    async def read(self, *, wire: bool = False) -> dict[str, PortCounters]:
        """Return the counters of all ports by name, read at nearly the same time. Raise `NodeError`.

        `wire` asks for pause frames and damaged frames too, which a run needs only before and after the traffic.
        """
        ...


Names: TypeAlias = Mapping[int, tuple[str, ...]]
"""Interface index → ifName, ifDescr, ifAlias. A name may be empty, and two interfaces may have the same name."""


@dataclass(frozen=True, slots=True)
class Forwarding:
    """A switch's name and forwarding table. `ports`: interface name → MAC addresses, as 02:00:00:00:00:01.

    `unplaced` has the addresses at ports without a unique name. `interfaces` has the names of all interfaces.
    """

    name: str | None
    ports: dict[str, frozenset[str]]
    unplaced: frozenset[str] = frozenset()
    interfaces: Names = field(default_factory=dict)


def find_ports(wanted: Iterable[str], known: Names) -> tuple[dict[str, int], dict[str, str]]:
    """Return the interface index of each wanted name, and an error message for each name without a unique interface.

    A name is looked up, in this order, as ifName; as ifDescr; as abbreviation of one of these, as Gi1/1 of
    GigabitEthernet1/1; as interface and ifName, as MikroTik's bridge/ether5; as ifAlias, which often names the port
    at the far end; as index, as in `ifIndex 7`.
    """
    ranks = [{index: names[rank] for index, names in known.items() if len(names) > rank} for rank in range(3)]
    indexes: dict[str, int] = {}
    refused: dict[str, str] = {}
    for name in wanted:
        fitting = _fitting(name, ranks)
        if len(fitting) == 1:
            indexes[name] = fitting[0]
        elif fitting:
            each = [f"{index} ({', '.join(dict.fromkeys(filter(None, known[index])))})" for index in fitting[:4]]
            several = f"{len(fitting)} of its interfaces: {', '.join(each)}"
            refused[name] = f'"{name}" fits {several}. Use a name of only one interface, or "ifIndex {fitting[0]}"'
        else:
            firsts = (next(filter(None, names), "") for names in known.values())
            every = [text for text in dict.fromkeys(firsts) if text]
            near = get_close_matches(name, every, 3, 0.3) or every[:3]
            refused[name] = f'it has no interface "{name}". Similar: {", ".join(near) or "none"}'
    return indexes, refused


def _fitting(name: str, ranks: Sequence[Mapping[int, str]]) -> list[int]:
    """Return the indexes of the interfaces that match `name` best. `ranks` has ifName, ifDescr, ifAlias by index."""
    folded = name.casefold()
    if not folded:
        return []
    own, described, alias = ({index: text.casefold() for index, text in rank.items()} for rank in ranks)

    def same(rank: Mapping[int, str], text: str = folded) -> list[int]:
        return [index for index, other in rank.items() if other == text]

    def alike(rank: Mapping[int, str]) -> list[int]:
        return [index for index, other in rank.items() if other and _alike(name, other)]

    def best_first() -> Iterator[list[int]]:
        yield same(own)
        yield same(described)
        yield alike(own) or alike(described)
        above, _, below = folded.partition("/")
        yield same(own, below) if below and same(own, above) else []
        yield same(alias)
        yield [index for index in own if folded == f"ifindex {index}"]

    return next(filter(None, best_first()), [])


def port_name(index: int, known: Names) -> str | None:
    """Return the first of ifName, ifDescr and ifAlias by which `find_ports` finds only this interface, or None."""
    return next((name for name in known.get(index, ()) if name and find_ports([name], known)[0] == {name: index}), None)


def _alike(one: str, other: str) -> bool:
    parts = [match.groups() for name in (one, other) if (match := _PARTS.fullmatch(name.casefold()))]
    if len(parts) < 2 or parts[0][1] != parts[1][1] or not parts[0][1]:
        return False
    words = (parts[0][0], parts[1][0])
    return bool(words[0] and words[1]) and (words[0].startswith(words[1]) or words[1].startswith(words[0]))
