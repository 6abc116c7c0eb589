"""Rules on paths between nodes: whether TCP and UDP pass, the largest packet, and causes of several faults.

Causes are addresses and MAC addresses used twice, and peers that do not answer. Faulty paths that a cause explains are
not reported again as dropped, rejected or too small.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from rigctl.check.paths import SMALL, Ends, Icmp, PathState
from rigctl.check.records import NodeState, RigState
from rigctl.check.rules.findings import command, error, finding_on, nodes_of, paths_of, warning
from rigctl.check.rules.nodes import is_dead, is_loopback, misrouted
from rigctl.findings import Finding, Severity
from rigctl.model.frames import ETHERNET_HEADER, IP_HEADER

_ICMP_HEADER: Final = 8
_OWN: Final = ("EPERM", "EACCES")
"""Errors that the sender's own firewall causes."""
_PROHIBITED: Final = {(3, 9), (3, 10), (3, 13)}
"""ICMP codes "administratively prohibited" (RFC 1812, 5.2.7.1); of ICMPv6 type 1, code 1 (RFC 4443)."""
_UNRESOLVED: Final = {(3, 1), (1, 3)}
"""ICMP "host unreachable" and ICMPv6 "address unreachable"."""


def ports(state: RigState) -> Iterator[Finding]:
    """Check in both directions whether TCP and UDP to the data port pass, are refused (by whom) or dropped."""
    datagrams = any(cell.transport == "udp" for cell in state.cells())
    walled = {path.ends for path in state.paths if path.refused.get(path.least) in _OWN}
    faults = {path.ends: (_tcp(state, path), _udp(state, path)) for path in state.paths}
    for path in state.paths:
        tcp, udp = faults[path.ends]
        if (tcp is None and udp is None) or path.ends in state.explained:
            continue
        what, remedy = tcp or udp or ("", "")
        text = f"TCP and UDP to port {path.port}: {what}."
        if path.stream is None and path.ends in walled:
            remedy = udp[1] if udp else remedy
            text = f"UDP to port {path.port}: {udp[0] if udp else 'passes'}; TCP is dropped without an answer."
        elif tcp is None:
            text = f"UDP to port {path.port}: {what}; TCP passes."
        elif tcp != udp:
            text = f"TCP to port {path.port}: {what}; UDP {'passes' if udp is None else udp[0]}."
        if path.stream is None and path.heard and path.ends not in walled and path.ends[::-1] in walled:
            text += f" {path.destination}'s own firewall refuses what it sends to {path.source}: answers, too."
            remedy = _look_at_own(state, path.destination)
        level = Severity.ERROR if tcp is not None or datagrams else Severity.WARNING
        yield finding_on(level, paths_of(path.ends), text, remedy, port=path.port)
    good = [ends for ends, fault in faults.items() if fault == (None, None)]
    if good:
        yield finding_on(Severity.OK, paths_of(*good), "TCP and UDP pass.")


def listening(state: RigState) -> Iterator[Finding]:
    """Check that each node has a free port for data."""
    for node in state.nodes.values():
        if node.deaf is not None:
            remedy = f"Free a port there (ss -tlnp), or give {node.name} other data_ports in the rig file."
            yield error(node, f"nothing can be received there: {node.deaf}.", remedy)


def _tcp(state: RigState, path: PathState) -> tuple[str, str] | None:
    """Return the fault of the connection and its remedy, or None if it was accepted."""
    if path.stream == "0":
        return None
    if path.stream is None:
        return _dropped(state, path)
    if path.stream == "ECONNREFUSED":
        return _rejected(state, path, "a reset or ICMP port unreachable")
    if path.stream in ("EHOSTUNREACH", "ENETUNREACH", "ENOPROTOOPT") and SMALL not in path.refused:
        texts = _icmp_text(path.icmp) or f"ICMP ({path.stream})"
        return _unresolved(state, path) if _is_own(state, path, path.icmp) else _rejected(state, path, texts)
    return _unsent(state, path, path.stream)


def _udp(state: RigState, path: PathState) -> tuple[str, str] | None:
    if path.heard:
        return None
    refused = path.refused.get(path.least)
    refusals = {icmp for icmp in path.icmp if icmp.mtu is None}
    if refused not in _OWN and _is_own(state, path, refusals):
        return _unresolved(state, path)
    if refused not in _OWN and refusals:
        return _rejected(state, path, _icmp_text(refusals))
    return _dropped(state, path) if refused is None else _unsent(state, path, refused)


def _look_at_own(state: RigState, name: str) -> str:
    firewall = command(state.nodes[name], "firewall")
    return f"On {name}, as root: {firewall} (chains with hook output); allow the data ports."


def _is_own(state: RigState, path: PathState, errors: Collection[Icmp]) -> bool:
    """Tell whether the ICMP errors are "host unreachable" of the sender's own kernel: its ARP was not answered."""
    own = state.nodes[path.source].address
    return bool(errors) and all(icmp.sender == own and (icmp.type, icmp.code) in _UNRESOLVED for icmp in errors)


def _unresolved(state: RigState, path: PathState) -> tuple[str, str]:
    there = state.nodes[path.destination].address
    return (
        f"not sent, {there} did not answer {path.asking}",
        f"Look at cable, switch port and VLAN between {path.source} and {path.destination}; does {path.destination} "
        f"have {there}?",
    )


def _rejected(state: RigState, path: PathState, how: str) -> tuple[str, str]:
    what = f"rejected, {how} came back, although the agent of {path.destination} listens there"
    return what, f"{_between(state, path)}."


def _dropped(state: RigState, path: PathState) -> tuple[str, str]:
    remedy = f"{_between(state, path)} (data_ports in the rig file makes them a fixed range)."
    return "dropped without an answer", remedy


def _unsent(state: RigState, path: PathState, refusal: str) -> tuple[str, str]:
    if refusal in _OWN:
        return f"refused by the sender's own firewall ({refusal})", _look_at_own(state, path.source)
    look = command(state.nodes[path.source], "way", peer=f"the data address of {path.destination}")
    return f"cannot be sent ({refusal})", f"On {path.source}: {look}; is its interface up?"


def _between(state: RigState, path: PathState) -> str:
    firewall = command(state.nodes[path.destination], "firewall")
    return f"On {path.destination} and on what is between, as root: {firewall}; allow the data ports"


def _icmp_text(errors: set[Icmp]) -> str:
    """Describe ICMP errors, as in `ICMP "administratively prohibited" from 10.0.0.1`."""
    texts = set()
    for icmp in errors:
        kind = (icmp.type, icmp.code)
        what = f"type {icmp.type}, code {icmp.code} ({icmp.error})"
        if kind in _PROHIBITED or (":" in icmp.sender and kind == (1, 1)):
            what = "administratively prohibited"
        elif kind in ((3, 3), (1, 4)):
            what = "port unreachable"
        texts.add(f"ICMP {what} from {icmp.sender}")
    return ", ".join(sorted(texts))


def sizes(state: RigState) -> Iterator[Finding]:
    """Check the path MTU of each direction; tell a black hole from a path that answers."""
    good: dict[tuple[int, int], list[Ends]] = {}
    for path in state.paths:
        largest = path.largest
        if largest is not None and largest >= path.wanted:
            good.setdefault((path.wanted, path.version), []).append(path.ends)
        elif largest is not None and path.ends not in state.explained:
            yield _smaller(state, path, largest)
    for (size, version), ends in sorted(good.items(), reverse=True):
        yield finding_on(
            Severity.OK,
            paths_of(*ends),
            f"{sizes_text(size, version)} arrive.",
            None,
            **numbers_of(size, version),
        )


def _smaller(state: RigState, path: PathState, largest: int) -> Finding:
    subject, numbers = paths_of(path.ends), {**numbers_of(largest, path.version), "wanted_bytes": path.wanted}
    answers = sorted((icmp for icmp in path.icmp if icmp.mtu is not None or icmp.error == "EMSGSIZE"), key=str)
    arrive, allowed = (
        f"{sizes_text(largest, path.version)} arrive, larger ones",
        f"the interfaces allow {path.wanted}",
    )
    raised = f"Raise the MTU on the way to {path.wanted}, or lower the nodes' to {largest}."
    if any(refusal in _OWN for size, refusal in path.refused.items() if size > largest):
        text = f"packets above {largest} bytes are refused by the sender's own firewall (EPERM)."
        firewall = command(state.nodes[path.source], "firewall")
        return error(subject, text, f"On {path.source}, as root: {firewall}", **numbers)
    if answers:
        text = f"are answered by {answers[0].sender} (ICMP, MTU {answers[0].mtu}); {allowed}."
        return warning(subject, f"path MTU {largest}: {arrive} {text}", raised, **numbers, told_mtu=answers[0].mtu)
    if state.nodes[path.source].is_freebsd:
        unknown = "FreeBSD does not report to the sender whether an ICMP message answers them."
        return warning(subject, f"path MTU {largest}: {arrive} do not; {allowed}. {unknown}", raised, **numbers)
    text = f"black hole: {arrive} vanish without an ICMP answer; {allowed}. TCP stalls on it."
    remedy = (
        f"Raise the MTU of the switch's ports to {path.wanted}, let ICMP "
        f'"{"packet too big" if path.version == 6 else "fragmentation needed"}" pass, or lower the nodes\': '
        f"ip link set dev INTERFACE mtu {largest}"
    )
    return error(subject, text, remedy, **numbers)


def sizes_text(size: int, version: int) -> str:
    """Describe a size as IP packet, ICMP payload and Ethernet frame."""
    numbers = numbers_of(size, version)
    return (
        f"IP packets of {size} bytes (ICMP payload {numbers['icmp_payload_bytes']}, "
        f"Ethernet frame {numbers['ethernet_frame_bytes']})"
    )


def numbers_of(size: int, version: int) -> dict[str, int]:
    return {
        "path_mtu_bytes": size,
        "icmp_payload_bytes": size - IP_HEADER[version] - _ICMP_HEADER,
        "ethernet_frame_bytes": size + ETHERNET_HEADER,
    }


_NO_MAC: Final = "00:00:00:00:00:00"


@dataclass(frozen=True, slots=True)
class _Cause:
    finding: Finding
    paths: frozenset[Ends]


def addresses(state: RigState) -> Iterator[Finding]:
    """Check that each data address belongs to one host, and that the host answers."""
    for cause in _causes(state, _of_links(state)):
        yield cause.finding


def families(state: RigState) -> Iterator[Finding]:
    """Check that both ends of each pair have addresses of one family."""
    plan = state.plan
    pairs = dict.fromkeys(pair for cell in plan.cells for pair in cell.pairs) if plan is not None else ()
    for pair in pairs:
        ends = [state.nodes.get(name) for name in (pair.source, pair.destination)]
        addresses = [each.address for each in ends if each is not None and each.address is not None]
        if len(addresses) == 2 and len({":" in address for address in addresses}) == 2:
            text = f"{addresses[0]} and {addresses[1]} are of two families: no packet goes from IPv4 to IPv6."
            remedy = "Give both data_address in the rig file, of one family."
            yield error(paths_of((pair.source, pair.destination)), text, remedy)


def explained(state: RigState) -> frozenset[Ends]:
    """Return the paths with a fault that another rule reports: link, routes or addresses."""
    known = _of_links(state)
    return known.union(*(cause.paths for cause in _causes(state, known)))


def _of_links(state: RigState) -> frozenset[Ends]:
    """Return the faulty paths with an end that has no link, no route or a wrong route."""
    dead = {each.name for each in state.reached() if is_dead(each)}
    wrong = {ends for each in state.reached() for ends in misrouted(state, each)}
    faulty = (path.ends for path in state.paths if not path.whole)
    return frozenset(ends for ends in faulty if dead & set(ends) or {ends, ends[::-1]} & wrong)


def _causes(state: RigState, known: frozenset[Ends]) -> Iterator[_Cause]:
    """Yield the causes, the most certain first; each explains paths that no earlier cause does."""
    for find in (_shared_addresses, _loopback, _shared_macs, _neighbours):
        left = [path for path in state.paths if not path.whole and path.ends not in known]
        for cause in find(state, left):
            known |= cause.paths
            yield cause


def _shared_addresses(state: RigState, faulty: Iterable[PathState]) -> Iterator[_Cause]:
    holders: dict[str, list[NodeState]] = defaultdict(list)
    for each in state.reached():
        if each.address is not None and not is_loopback(each):
            holders[each.address].append(each)
    for address, own in holders.items():
        if all(_share_interface(own[0], other) for other in own[1:]):
            continue
        names = [each.name for each in own]
        text = f"{address} is the data address of each of them: what is sent to it reaches one of them, or none."
        remedy = "Give each node an address of its own, or correct data_address or data_interface in the rig file."
        yield _Cause(error(nodes_of(names), text, remedy), _paths_of(names, faulty))


def _loopback(state: RigState, faulty: Iterable[PathState]) -> Iterator[_Cause]:
    """Find nodes with peers on other hosts and a loopback address as data address."""
    for each in filter(is_loopback, state.reached()):
        own = _paths_of([each.name], faulty)
        boots = {other.facts.get("boot_id") for other in state.reached()} - {None}
        if own or len(boots) > 1:
            text = f"its data address {each.address} is a loopback address: no other host can send to it."
            remedy = "Name the interface that carries its data in the rig file: data_interface."
            yield _Cause(error(each, text, remedy), own)


def _shared_macs(state: RigState, faulty: Iterable[PathState]) -> Iterator[_Cause]:
    """Find one MAC address on two interfaces of a network: a switch sends frames to the port it heard last."""
    holders: dict[str, list[NodeState]] = defaultdict(list)
    for each in state.reached():
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
            yield _Cause(finding_on(level, nodes_of(names), text, remedy), paths)


def _neighbours(state: RigState, faulty: Iterable[PathState]) -> Iterator[_Cause]:
    """Find peers whose address another host answers for, or nobody."""
    by_mac = {each.facts.get("mac"): each for each in state.reached()}
    for path in faulty:
        here, there = state.nodes[path.source], state.nodes[path.destination]
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


def _paths_of(names: Iterable[str], paths: Iterable[PathState]) -> frozenset[Ends]:
    wanted = set(names)
    return frozenset(path.ends for path in paths if wanted & set(path.ends))


def _share_interface(one: NodeState, other: NodeState) -> bool:
    """Tell whether two nodes are one interface of one host: a rig file may name a host twice."""
    keys = ("boot_id", "interface", "mac", "addresses")
    return all(one.facts.get(key) == other.facts.get(key) for key in keys)


def _share_network(one: NodeState, other: NodeState) -> bool | None:
    """Tell whether a node sends to another without a router between them; None: its route is not known."""
    way = one.around.routes.get(other.address or "") if one.around is not None else None
    return None if way is None else way.via is None
