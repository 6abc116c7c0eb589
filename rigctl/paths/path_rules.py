"""Rules on paths between nodes: whether TCP and UDP pass, the largest packet, and common causes of faults.

Examples of such causes are an address that two nodes use, and a peer that does not answer ARP. A faulty path that a
cause explains is not reported again as dropped, rejected or too small.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from rigctl.base.values import group_by
from rigctl.findings import WEIGHTS, Finding, FindingValue, Sentence, Severity, about_nodes, mtu
from rigctl.findings import path as ways
from rigctl.model.frames import ETHERNET_HEADER, IP_HEADER
from rigctl.paths.commands import command_on, find_on, paths_of, rights_on
from rigctl.paths.ends import needed_ways
from rigctl.paths.link_rules import find_misrouted, is_dead, is_loopback
from rigctl.paths.probing import SMALL, Icmp, PathEnds, PathState
from rigctl.paths.state import NodeState, RigState
from rigctl.records import Cell
from rigctl.settings import MSS
from rigctl.settings.kinds import KINDS

_ICMP_HEADER: Final = 8
_TCP_HEADER: Final = 20
_OWN: Final = ("EPERM", "EACCES")
"""errno names of sends that the sender's firewall refuses."""
_NO_PORT: Final = ("EADDRNOTAVAIL", "EADDRINUSE")
"""errno names of sends for which the sender has no free port."""
_PROHIBITED: Final = {(3, 9), (3, 10), (3, 13)}
"""ICMP type and code of "administratively prohibited" (RFC 1812, 5.2.7.1). In ICMPv6 it is (1, 1) (RFC 4443)."""
_PROFILES: Final = 3
"""Profiles of Microsoft's firewall: domain, private and public. The firewall is off if all are known to be off."""
_UNRESOLVED: Final = {(3, 1), (1, 3)}
"""Type and code of ICMP "host unreachable" and of ICMPv6 "address unreachable"."""


def ports(state: RigState) -> Iterator[Finding]:
    """Check in both directions whether TCP and UDP to the data port pass, are refused, or are dropped."""
    needed = _cells_by_way(state)
    walled = {path.ends for path in state.paths if path.refused.get(path.least) in _OWN}
    faults = {path.ends: (_tcp_fault(state, path), _udp_fault(state, path)) for path in state.paths}
    for path in state.paths:
        tcp, udp = faults[path.ends]
        found = tcp or udp
        if found is None or path.ends in state.explained:
            continue
        text, remedy = f"TCP and UDP to port {path.port}: {found.text}.", found.remedy
        if path.stream is None and path.ends in walled:
            found, remedy = udp or found, udp.remedy if udp else remedy
            text = f"UDP to port {path.port}: {udp.text if udp else 'passes'}; TCP is dropped without an answer."
        elif tcp is None:
            text = f"UDP to port {path.port}: {found.text}; TCP passes."
        elif tcp != udp:
            text = f"TCP to port {path.port}: {found.text}; UDP {'passes' if udp is None else udp.text}."
        if path.stream is None and path.heard and path.ends not in walled and path.ends[::-1] in walled:
            text += f" {path.destination}'s own firewall refuses packets to {path.source}, so answers are refused too."
            there = state.nodes[path.destination]
            own = command_on(there, "firewall")
            remedy = ways.LOOK_AT_OWN.format(node=there.name, rights=rights_on(there), firewall=own)
        level = _port_level(None if state.plan is None else needed.get(path.ends, []), tcp_fails=tcp is not None)
        text += f" {ways.NOT_NEEDED}" if level is Severity.NOTE else ""
        yield replace(found, text=text, remedy=remedy, level=level, weight=WEIGHTS[level])
    good = [ends for ends, fault in faults.items() if fault == (None, None)]
    if good:
        yield ways.PORTS_PASS.say(paths_of(*good))


def _cells_by_way(state: RigState) -> dict[PathEnds, list[Cell]]:
    """Map each path to the tests that open connections or send datagrams over it."""
    found: dict[PathEnds, list[Cell]] = {}
    for cell in state.cells():
        for ends in needed_ways(cell):
            found.setdefault(ends, []).append(cell)
    return found


def _port_level(cells: Sequence[Cell] | None, *, tcp_fails: bool) -> Severity:
    """Return how serious a blocked path is. `cells`: tests that need the path; None: there is no plan."""
    if cells is None:
        return Severity.ERROR if tcp_fails else Severity.WARNING
    if not cells:
        return Severity.NOTE
    datagrams = any(cell.transport == "udp" or cell.latency_ms is not None for cell in cells)
    return Severity.ERROR if tcp_fails or datagrams else Severity.WARNING


def listening(state: RigState) -> Iterator[Finding]:
    """Check that each node has its data address, and enough free data ports for every test."""
    for node in state.nodes.values():
        if node.deaf is not None and "EADDRNOTAVAIL" in node.deaf:
            yield find_on(node, ways.ADDRESS_ABSENT, address=node.address, why=node.deaf)
        elif node.deaf is not None:
            yield find_on(node, ways.NO_FREE_PORT, why=node.deaf, command=command_on(node, "ports"))


def _tcp_fault(state: RigState, path: PathState) -> Finding | None:
    if path.stream == "0":
        return None
    if path.stream is None:
        return _port_fault(state, path, ways.DROPPED)
    if path.stream == "ECONNREFUSED":
        return _port_fault(state, path, ways.REJECTED, how="a reset or ICMP port unreachable")
    if path.stream in ("EHOSTUNREACH", "ENETUNREACH", "ENOPROTOOPT") and SMALL not in path.refused:
        texts = _icmp_text(path.icmp) or f"ICMP ({path.stream})"
        sentence = ways.UNRESOLVED if _is_unresolved(state, path, path.icmp) else ways.REJECTED
        return _port_fault(state, path, sentence, how=texts)
    return _port_fault(state, path, _unsent(path.stream), refusal=path.stream)


def _unsent(refusal: str) -> Sentence:
    if refusal in _OWN:
        return ways.OWN_FIREWALL
    return ways.NO_OWN_PORT if refusal in _NO_PORT else ways.UNSENT


def _udp_fault(state: RigState, path: PathState) -> Finding | None:
    if path.heard:
        return None
    refused = path.refused.get(path.least)
    if refused in _OWN:
        return _port_fault(state, path, ways.OWN_FIREWALL, refusal=refused)
    refusals = {icmp for icmp in path.icmp if icmp.mtu is None}
    if _is_unresolved(state, path, refusals):
        return _port_fault(state, path, ways.UNRESOLVED)
    if refusals:
        return _port_fault(state, path, ways.REJECTED, how=_icmp_text(refusals))
    return _port_fault(state, path, ways.DROPPED if refused is None else ways.UNSENT, refusal=refused)


def _port_fault(state: RigState, path: PathState, sentence: Sentence, **words: object) -> Finding:
    """Return a finding on the path's port, whose text continues "TCP to port 5201: "."""
    here, there = (state.nodes[name] for name in path.ends)
    known = {"node": here.name, "peer": there.name, "address": there.address, "asking": path.asking}
    known |= {"firewall": command_on(here, "firewall"), "peer_firewall": command_on(there, "firewall")}
    known["ports"] = command_on(here, "ports")
    known |= {"rights": rights_on(here), "peer_rights": rights_on(there)}
    firewall = there.facts.get("firewall") or {}
    if sentence is ways.DROPPED and any(firewall.values()):
        sentence, known["profiles"] = ways.FIREWALL_IN, ", ".join(name for name, on in firewall.items() if on)
    elif sentence is ways.DROPPED and len(firewall) == _PROFILES:
        sentence, known["program"] = ways.FIREWALL_OTHER, there.program or "the agent"
    known["command"] = command_on(here, "way", peer=f"the data address of {there.name}")
    return sentence.say(paths_of(path.ends), {"port": path.port}, **known, **words)


def _is_unresolved(state: RigState, path: PathState, errors: Collection[Icmp]) -> bool:
    """Tell whether nobody answered ARP or NDP: the sender's own kernel reports "host unreachable", and nothing else."""
    own = state.nodes[path.source].address
    return bool(errors) and all(icmp.sender == own and (icmp.type, icmp.code) in _UNRESOLVED for icmp in errors)


def _icmp_text(errors: set[Icmp]) -> str:
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
    """Check the path MTU of each direction. Report a path without "packet too big" messages as a black hole."""
    good: dict[tuple[int, int], list[PathEnds]] = {}
    needed = _cells_by_way(state)
    for path in state.paths:
        largest = path.largest
        if largest is not None and largest >= path.wanted:
            good.setdefault((path.wanted, path.version), []).append(path.ends)
        elif largest is not None and path.ends not in state.explained:
            found = _say_too_small(state, path, largest)
            cells = needed.get(path.ends, []) if state.plan is not None else None
            if found.level is Severity.ERROR and cells is not None:
                level = _size_level(state, path, cells)
                found = replace(found, level=level, weight=WEIGHTS[level])
            yield found
    for (size, version), ends in sorted(good.items(), reverse=True):
        yield mtu.PACKETS_ARRIVE.say(paths_of(*ends), numbers_of(size, version))


def _size_level(state: RigState, path: PathState, cells: Sequence[Cell]) -> Severity:
    """Return how serious it is that large packets vanish: an error if a test cannot do with smaller packets."""
    if not cells:
        return Severity.NOTE
    return Severity.WARNING if all(_may_be_small(state, cell, path) for cell in cells) else Severity.ERROR


def _may_be_small(state: RigState, cell: Cell, path: PathState) -> bool:
    """Tell whether packets of `cell` may fit into a path whose MTU is below that of the interfaces."""
    if state.plan is not None and state.plan.condition_mtu(cell.condition) is not None:
        return True
    if cell.transport != "tcp" or cell.test not in KINDS or cell.kind.in_messages:
        return True
    mss = cell[MSS]
    return mss is not None and mss + IP_HEADER[path.version] + _TCP_HEADER <= (path.largest or 0)


def _say_too_small(state: RigState, path: PathState, largest: int) -> Finding:
    subject = paths_of(path.ends)
    numbers: dict[str, FindingValue] = {**numbers_of(largest, path.version), "wanted_bytes": path.wanted}
    answers = sorted((icmp for icmp in path.icmp if icmp.mtu is not None or icmp.error == "EMSGSIZE"), key=str)
    if any(refusal in _OWN for size, refusal in path.refused.items() if size > largest):
        firewall = command_on(state.nodes[path.source], "firewall")
        words = {"source": path.source, "rights": rights_on(state.nodes[path.source]), "firewall": firewall}
        return mtu.PACKETS_REFUSED.say(subject, numbers, **words)
    if answers:
        numbers["told_mtu"] = answers[0].mtu
        return mtu.PATH_MTU.say(subject, numbers, router=answers[0].sender)
    if (here := state.nodes[path.source]).is_freebsd or here.is_windows:
        return mtu.PATH_MTU_UNTOLD.say(subject, numbers, system="Windows" if here.is_windows else "FreeBSD")
    message = '"packet too big"' if path.version == 6 else '"fragmentation needed"'
    commands = f"ip link set dev INTERFACE mtu {largest}"
    if (there := state.nodes[path.destination]).is_freebsd or there.is_windows:
        ends = (f"{command_on(each, 'mtu', mtu=largest)} on {each.name}" for each in (here, there))
        commands = "; ".join(ends)
    return mtu.BLACK_HOLE.say(subject, numbers, message=message, commands=commands)


def numbers_of(size: int, version: int) -> dict[str, int]:
    return {
        "path_mtu_bytes": size,
        "icmp_payload_bytes": size - IP_HEADER[version] - _ICMP_HEADER,
        "ethernet_frame_bytes": size + ETHERNET_HEADER,
    }


_NO_MAC: Final = "00:00:00:00:00:00"


_Cause: TypeAlias = tuple[Finding, frozenset[PathEnds]]
"""A finding, and the faulty paths that it explains."""


def addresses(state: RigState) -> Iterator[Finding]:
    """Check that each data address and MAC address belongs to one host, and that the host answers."""
    yield from (finding for finding, _ in _find_causes(state, _paths_without_route(state)))


def check_families(state: RigState) -> Iterator[Finding]:
    """Check that both ends of each pair have addresses of the same family (IPv4 or IPv6)."""
    plan = state.plan
    if plan is None:
        yield from _find_lonely(state)
    for pair in dict.fromkeys(pair for cell in state.cells() for pair in cell.pairs):
        ends = [state.nodes.get(name) for name in (pair.source, pair.destination)]
        addresses = [each.address for each in ends if each is not None and each.address is not None]
        if len(addresses) == 2 and len({":" in address for address in addresses}) == 2:
            one, other = addresses
            yield ways.ADDRESS_FAMILIES.say(paths_of((pair.source, pair.destination)), one=one, other=other)


def _find_lonely(state: RigState) -> Iterator[Finding]:
    """Yield a finding if some nodes of a rig have IPv4 addresses and others IPv6 addresses."""
    known = {each.name: each.address for each in state.nodes.values() if each.address is not None}
    groups = group_by(known, lambda name: ":" in known[name])
    if len(groups) == 2:
        few = min(groups.values(), key=len)
        others = next(name for name in known if name not in few)
        yield ways.ADDRESS_FAMILIES.say(about_nodes(few), one=known[few[0]], other=f"{known[others]} of {others}")


def paths_explained_elsewhere(state: RigState) -> frozenset[PathEnds]:
    """Return the faulty paths whose cause `check_link`, `routes` or `addresses` reports."""
    known = _paths_without_route(state)
    return known.union(*(paths for _, paths in _find_causes(state, known)))


def _paths_without_route(state: RigState) -> frozenset[PathEnds]:
    """Return the faulty paths with an end that has no link, no route or a wrong route."""
    dead = {each.name for each in state.reached() if is_dead(each)}
    wrong = {ends for each in state.reached() for ends in find_misrouted(state, each)}
    faulty = (path.ends for path in state.paths if not path.whole)
    return frozenset(ends for ends in faulty if dead & set(ends) or {ends, ends[::-1]} & wrong)


def _find_causes(state: RigState, known: frozenset[PathEnds]) -> Iterator[_Cause]:
    """Yield causes of faulty paths, the most certain first. Paths in `known` or of an earlier cause are left out."""
    for find in (_find_shared_addresses, _find_loopbacks, _find_shared_macs, _find_wrong_macs):
        left = [path for path in state.paths if not path.whole and path.ends not in known]
        for finding, paths in find(state, left):
            known |= paths
            yield finding, paths


def _find_shared_addresses(state: RigState, faulty: Iterable[PathState]) -> Iterator[_Cause]:
    known = (each for each in state.reached() if each.address is not None and not is_loopback(each))
    for address, own in group_by(known, lambda each: each.address).items():
        if all(_share_interface(own[0], other) for other in own[1:]):
            continue
        names = [each.name for each in own]
        yield ways.ADDRESS_SHARED.say(about_nodes(names), address=address), _paths_of(names, faulty)


def _find_loopbacks(state: RigState, faulty: Iterable[PathState]) -> Iterator[_Cause]:
    """Yield a cause for each node whose data address is a loopback address although it has peers on other hosts."""
    for each in filter(is_loopback, state.reached()):
        own = _paths_of([each.name], faulty)
        boots = {other.facts.get("boot_id") for other in state.reached()} - {None}
        if own or len(boots) > 1:
            yield find_on(each, ways.ADDRESS_LOOPBACK, address=each.address), own


def _find_shared_macs(state: RigState, faulty: Iterable[PathState]) -> Iterator[_Cause]:
    """Yield a cause for each MAC address that two interfaces of a network have, so that a switch confuses them."""
    known = (each for each in state.reached() if each.facts.get("mac") not in (None, _NO_MAC))
    for mac, (first, *others) in group_by(known, lambda each: each.facts["mac"]).items():
        twins = [
            each for each in others if not _share_interface(first, each) and _share_network(first, each) is not False
        ]
        names = [first.name, *(each.name for each in twins)]
        paths = _paths_of(names, faulty)
        # On one host, a shared MAC address is no fault: an ipvlan interface has the MAC of its parent interface.
        other_hosts = (each for each in twins if first.facts.get("boot_id") != each.facts.get("boot_id"))
        apart = any(_share_network(first, each) for each in other_hosts)
        if apart or (twins and paths):
            level = Severity.ERROR if paths else Severity.WARNING
            yield ways.MAC_SHARED.at(level).say(about_nodes(names), mac=mac, command=command_on(first, "mac")), paths


def _find_wrong_macs(state: RigState, faulty: Iterable[PathState]) -> Iterator[_Cause]:
    """Yield a cause for each peer whose address is resolved to another host's MAC address, or not at all."""
    by_mac = {each.facts.get("mac"): each for each in state.reached()}
    for path in faulty:
        here, there = state.nodes[path.source], state.nodes[path.destination]
        if there.address is None or there.address not in here.neighbours:
            continue
        mac, own = here.neighbours[there.address], there.facts.get("mac")
        words = {"address": there.address, "peer": there.name, "peer_interface": there.interface}
        if mac is None:
            more = {"asking": path.asking, "interface": here.interface, "node": here.name}
            found = find_on(here, ways.NEIGHBOUR_SILENT, **more, **words)
        elif own not in (None, _NO_MAC, mac):
            who = f"{by_mac[mac].name}'s {by_mac[mac].interface}" if mac in by_mac else "an interface of another host"
            found = find_on(here, ways.NEIGHBOUR_OTHER, mac=mac, who=who, own=own, **words)
        else:
            continue
        yield found, frozenset({path.ends, path.ends[::-1]})


def _paths_of(names: Iterable[str], paths: Iterable[PathState]) -> frozenset[PathEnds]:
    wanted = set(names)
    return frozenset(path.ends for path in paths if wanted & set(path.ends))


def _share_interface(one: NodeState, other: NodeState) -> bool:
    """Tell whether two nodes of the rig file are the same interface of the same host."""
    keys = ("boot_id", "interface", "mac", "addresses")
    return all(one.facts.get(key) == other.facts.get(key) for key in keys)


def _share_network(one: NodeState, other: NodeState) -> bool | None:
    """Tell whether `one` sends to `other` without a router between them; None if the route is unknown."""
    way = one.around.routes.get(other.address or "") if one.around is not None else None
    return None if way is None else way.via is None
