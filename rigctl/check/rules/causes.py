"""Rules on causes of several faults: addresses and MAC addresses used twice, peers that do not answer.

Faulty paths that a cause explains are not reported again as dropped, rejected or too small.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from rigctl.check.paths import Ends, PathSeen
from rigctl.check.records import NodeSeen, Seen
from rigctl.check.rules.findings import error, found, nodes_of
from rigctl.check.rules.links import astray, is_dead, is_loopback
from rigctl.findings import Finding, Severity

_NO_MAC: Final = "00:00:00:00:00:00"


@dataclass(frozen=True, slots=True)
class _Cause:
    finding: Finding
    paths: frozenset[Ends]


def addresses(seen: Seen) -> Iterator[Finding]:
    """Check that each data address belongs to one host, and that the host answers."""
    for cause in _causes(seen, _of_links(seen)):
        yield cause.finding


def explained(seen: Seen) -> frozenset[Ends]:
    """Return the paths with a fault that another rule reports: link, routes or addresses."""
    known = _of_links(seen)
    return known.union(*(cause.paths for cause in _causes(seen, known)))


def _of_links(seen: Seen) -> frozenset[Ends]:
    """Return the faulty paths with an end that has no link, no route or a wrong route."""
    dead = {each.name for each in seen.reached() if is_dead(each)}
    wrong = {ends for each in seen.reached() for ends in astray(seen, each)}
    faulty = (path.ends for path in seen.paths if not path.whole)
    return frozenset(ends for ends in faulty if dead & set(ends) or {ends, ends[::-1]} & wrong)


def _causes(seen: Seen, known: frozenset[Ends]) -> Iterator[_Cause]:
    """Yield the causes, the most certain first; each explains paths that no earlier cause does."""
    for find in (_shared_addresses, _loopback, _shared_macs, _neighbours):
        left = [path for path in seen.paths if not path.whole and path.ends not in known]
        for cause in find(seen, left):
            known |= cause.paths
            yield cause


def _shared_addresses(seen: Seen, faulty: Iterable[PathSeen]) -> Iterator[_Cause]:
    holders: dict[str, list[NodeSeen]] = defaultdict(list)
    for each in seen.reached():
        if each.address is not None and not is_loopback(each):
            holders[each.address].append(each)
    for address, own in holders.items():
        if all(_share_interface(own[0], other) for other in own[1:]):
            continue
        names = [each.name for each in own]
        text = f"{address} is the data address of each of them: what is sent to it reaches one of them, or none."
        remedy = "Give each node an address of its own, or correct data_address or data_interface in the rig file."
        yield _Cause(error(nodes_of(names), text, remedy), _paths_of(names, faulty))


def _loopback(seen: Seen, faulty: Iterable[PathSeen]) -> Iterator[_Cause]:
    """Find nodes with peers on other hosts and a loopback address as data address."""
    for each in filter(is_loopback, seen.reached()):
        own = _paths_of([each.name], faulty)
        boots = {other.facts.get("boot_id") for other in seen.reached()} - {None}
        if own or len(boots) > 1:
            text = f"its data address {each.address} is a loopback address: no other host can send to it."
            remedy = "Name the interface that carries its data in the rig file: data_interface."
            yield _Cause(error(each, text, remedy), own)


def _shared_macs(seen: Seen, faulty: Iterable[PathSeen]) -> Iterator[_Cause]:
    """Find one MAC address on two interfaces of a network: a switch sends frames to the port it heard last."""
    holders: dict[str, list[NodeSeen]] = defaultdict(list)
    for each in seen.reached():
        if (mac := each.facts.get("mac")) not in (None, _NO_MAC):
            holders[mac].append(each)
    for mac, own in holders.items():
        first = own[0]
        twins = [
            each for each in own[1:] if not _share_interface(first, each) and _share_network(first, each) is not False
        ]
        names = [first.name, *(each.name for each in twins)]
        paths = _paths_of(names, faulty)
        # Interfaces of type ipvlan have the MAC address of their host's interface.
        apart = any(
            _share_network(first, each) and first.facts.get("boot_id") != each.facts.get("boot_id") for each in twins
        )
        if apart or (twins and paths):
            text = f"the data interface of each of them has MAC address {mac}: frames for one may reach another."
            remedy = f"Give each its own, as root: ip link set dev {first.interface} address MAC"
            level = Severity.ERROR if paths else Severity.WARNING
            yield _Cause(found(level, nodes_of(names), text, remedy), paths)


def _neighbours(seen: Seen, faulty: Iterable[PathSeen]) -> Iterator[_Cause]:
    """Find peers whose address another host answers for, or nobody."""
    by_mac = {each.facts.get("mac"): each for each in seen.reached()}
    for path in faulty:
        here, there = seen.nodes[path.source], seen.nodes[path.destination]
        if there.address is None or there.address not in here.neighbours:
            continue
        mac, own = here.neighbours[there.address], there.facts.get("mac")
        if mac is None:
            text = f"no answer to {path.asking} for {there.address} of {there.name}, sent over {here.interface}."
            remedy = (
                f"Look at cable, switch port and VLAN between {here.name} and {there.name}; is {there.address} on "
                f"{there.interface}?"
            )
        elif own not in (None, _NO_MAC, mac):
            who = f"{by_mac[mac].name}'s {by_mac[mac].interface}" if mac in by_mac else "an interface of another host"
            text = (
                f"{there.address} of {there.name} is answered for by {mac}, {who}; {there.interface} of {there.name} "
                f"has {own}."
            )
            remedy = f"Find the host with {mac} (the switch's table of addresses), and give it another address."
        else:
            continue
        yield _Cause(error(here, text, remedy), frozenset({path.ends, path.ends[::-1]}))


def _paths_of(names: Iterable[str], paths: Iterable[PathSeen]) -> frozenset[Ends]:
    wanted = set(names)
    return frozenset(path.ends for path in paths if wanted & set(path.ends))


def _share_interface(one: NodeSeen, other: NodeSeen) -> bool:
    """Tell whether two nodes are one interface of one host: a rig file may name a host twice."""
    keys = ("boot_id", "interface", "mac", "addresses")
    return all(one.facts.get(key) == other.facts.get(key) for key in keys)


def _share_network(one: NodeSeen, other: NodeSeen) -> bool | None:
    """Tell whether a node sends to another without a router between them; None: its route is not known."""
    way = one.around.routes.get(other.address or "") if one.around is not None else None
    return None if way is None else way.via is None
