"""Rules on paths between nodes: whether TCP and UDP pass, who refuses them, and the largest packet."""

from collections.abc import Collection, Iterator
from typing import Final

from rigctl.check.paths import SMALL, Icmp, PathSeen
from rigctl.check.records import Seen
from rigctl.check.rules.findings import command, found, pair
from rigctl.findings import Finding, Number, Severity, Subject

ETHERNET_HEADER: Final = 14
"""Two addresses and a type, without VLAN tag and check sequence: Windows counts jumbo frames so (9014)."""
_ICMP_HEADER: Final = 8
_OWN: Final = ("EPERM", "EACCES")
"""Errors that the sender's own firewall causes."""
_PROHIBITED: Final = {(3, 9), (3, 10), (3, 13)}
"""ICMP codes "administratively prohibited" (RFC 1812, 5.2.7.1); of ICMPv6 type 1, code 1 (RFC 4443)."""
_UNRESOLVED: Final = {(3, 1), (1, 3)}
"""ICMP "host unreachable" and ICMPv6 "address unreachable"."""


def ports(seen: Seen) -> Iterator[Finding]:
    """Check in both directions whether TCP and UDP to the data port pass, are refused (by whom) or dropped."""
    good = []
    datagrams = any(cell.transport == "udp" for cell in seen.cells())
    walled = {(path.source, path.destination) for path in seen.paths if _own_refusal(path) is not None}
    for path in seen.paths:
        tcp, udp = _tcp(seen, path), _udp(seen, path)
        if tcp is None and udp is None:
            good.append(f"{path.source} -> {path.destination}")
            continue
        if (path.source, path.destination) in seen.explained:
            continue
        text, remedy = _blocked(path, tcp, udp)
        if path.stream is None and (path.source, path.destination) in walled:
            text = f"UDP to port {path.port}: {udp[0] if udp else 'passes'}; TCP is dropped without an answer."
            remedy = udp[1] if udp else remedy
        elif path.stream is None and path.heard and (path.destination, path.source) in walled:
            text += f" {path.destination}'s own firewall refuses what it sends to {path.source}: answers, too."
            remedy = _look_at_own(seen, path.destination)
        level = Severity.ERROR if tcp is not None or datagrams else Severity.WARNING
        yield found(level, pair(path.source, path.destination), text, remedy, {"port": path.port})
    if good:
        yield found(Severity.OK, _paths_subject(good), "TCP and UDP pass.")


def _blocked(path: PathSeen, tcp: tuple[str, str] | None, udp: tuple[str, str] | None) -> tuple[str, str]:
    what, remedy = tcp or udp or ("", "")
    if tcp == udp:
        return f"TCP and UDP to port {path.port}: {what}.", remedy
    if tcp is not None:
        return f"TCP to port {path.port}: {what}; UDP {'passes' if udp is None else udp[0]}.", remedy
    return f"UDP to port {path.port}: {what}; TCP passes.", remedy


def _own_refusal(path: PathSeen) -> str | None:
    """Return the error by which the sender's own firewall refused the smallest datagram, or None."""
    refused = path.refused.get(min(SMALL, path.wanted))
    return refused if refused in _OWN else None


def _tcp(seen: Seen, path: PathSeen) -> tuple[str, str] | None:
    """Return the fault of the connection and its remedy, or None if it was accepted."""
    if path.stream == "0":
        return None
    if path.stream is None:
        return _dropped(seen, path)
    if path.stream == "ECONNREFUSED":
        return _rejected(seen, path, "a reset or ICMP port unreachable")
    if path.stream in _OWN:
        return _own_firewall(seen, path, path.stream)
    if path.stream in ("EHOSTUNREACH", "ENETUNREACH", "ENOPROTOOPT") and SMALL not in path.refused:
        told = _told(path.icmp) or f"ICMP ({path.stream})"
        return _unresolved(seen, path) if _is_own(seen, path, path.icmp) else _rejected(seen, path, told)
    return _unsent(seen, path, path.stream)


def _udp(seen: Seen, path: PathSeen) -> tuple[str, str] | None:
    if path.heard:
        return None
    refused, own = path.refused.get(min(SMALL, path.wanted)), _own_refusal(path)
    refusals = {icmp for icmp in path.icmp if icmp.mtu is None}
    if own is not None:
        return _own_firewall(seen, path, own)
    if _is_own(seen, path, refusals):
        return _unresolved(seen, path)
    if refusals:
        return _rejected(seen, path, _told(refusals))
    return _dropped(seen, path) if refused is None else _unsent(seen, path, refused)


def _own_firewall(seen: Seen, path: PathSeen, error: str) -> tuple[str, str]:
    return f"refused by the sender's own firewall ({error})", _look_at_own(seen, path.source)


def _look_at_own(seen: Seen, name: str) -> str:
    return f"On {name}, as root: {_firewall(seen, name)} (chains with hook output); allow the data ports."


def _is_own(seen: Seen, path: PathSeen, errors: Collection[Icmp]) -> bool:
    """Tell whether the ICMP errors are "host unreachable" of the sender's own kernel: its ARP was not answered."""
    own = seen.nodes[path.source].address
    return bool(errors) and all(icmp.sender == own and (icmp.type, icmp.code) in _UNRESOLVED for icmp in errors)


def _unresolved(seen: Seen, path: PathSeen) -> tuple[str, str]:
    there = seen.nodes[path.destination].address
    asking = "ARP" if path.version == 4 else "neighbour discovery"
    return (
        f"not sent, {there} did not answer {asking}",
        f"Look at cable, switch port and VLAN between {path.source} and {path.destination}; does {path.destination} "
        f"have {there}?",
    )


def _rejected(seen: Seen, path: PathSeen, how: str) -> tuple[str, str]:
    return (
        f"rejected, {how} came back, although the agent of {path.destination} listens there",
        f"{_between(seen, path)}.",
    )


def _dropped(seen: Seen, path: PathSeen) -> tuple[str, str]:
    return (
        "dropped without an answer",
        f"{_between(seen, path)} (data_ports in the rig file makes them a fixed range).",
    )


def _unsent(seen: Seen, path: PathSeen, error: str) -> tuple[str, str]:
    look = command(seen.nodes[path.source], "way", peer=f"the data address of {path.destination}")
    return f"cannot be sent ({error})", f"On {path.source}: {look}; is its interface up?"


def _firewall(seen: Seen, name: str) -> str:
    return command(seen.nodes[name], "firewall")


def _between(seen: Seen, path: PathSeen) -> str:
    where = f"On {path.destination} and on what is between"
    return f"{where}, as root: {_firewall(seen, path.destination)}; allow the data ports"


def _told(errors: set[Icmp]) -> str:
    """Describe ICMP errors, as in `ICMP "administratively prohibited" from 10.0.0.1`."""
    told = set()
    for icmp in errors:
        six = ":" in icmp.sender
        if (icmp.type, icmp.code) in _PROHIBITED or (six and (icmp.type, icmp.code) == (1, 1)):
            what = "administratively prohibited"
        elif (icmp.type, icmp.code) in ((3, 3), (1, 4)):
            what = "port unreachable"
        else:
            what = f"type {icmp.type}, code {icmp.code} ({icmp.error})"
        told.add(f"ICMP {what} from {icmp.sender}")
    return ", ".join(sorted(told))


def sizes(seen: Seen) -> Iterator[Finding]:
    """The path MTU of each direction; a black hole told apart from a path that answers."""
    good: dict[tuple[int, int], list[str]] = {}
    for path in seen.paths:
        largest = path.largest
        if largest is None or (largest < path.wanted and (path.source, path.destination) in seen.explained):
            continue
        if largest >= path.wanted:
            good.setdefault((path.wanted, path.version), []).append(f"{path.source} -> {path.destination}")
            continue
        yield _smaller(seen, path, largest)
    for (size, version), names in sorted(good.items(), reverse=True):
        numbers: dict[str, Number] = {**numbers_of(size, version)}
        yield found(Severity.OK, _paths_subject(names), f"{said(size, version)} arrive.", numbers=numbers)


def _smaller(seen: Seen, path: PathSeen, largest: int) -> Finding:
    subject = pair(path.source, path.destination)
    numbers: dict[str, Number] = {**numbers_of(largest, path.version), "wanted_bytes": path.wanted}
    above = [error for size, error in path.refused.items() if size > largest]
    answers = sorted((icmp for icmp in path.icmp if icmp.mtu is not None or icmp.error == "EMSGSIZE"), key=str)
    if set(_OWN) & set(above):
        text = f"packets above {largest} bytes are refused by the sender's own firewall (EPERM)."
        return found(
            Severity.ERROR, subject, text, f"On {path.source}, as root: {_firewall(seen, path.source)}", numbers=numbers
        )
    if answers:
        numbers["told_mtu"] = answers[0].mtu
        text = (
            f"path MTU {largest}: {said(largest, path.version)} arrive, larger ones are answered by "
            f"{answers[0].sender} (ICMP, MTU {answers[0].mtu}); the interfaces allow {path.wanted}."
        )
        remedy = f"Raise the MTU on the way to {path.wanted}, or lower the nodes' to {largest}."
        return found(Severity.WARNING, subject, text, remedy, numbers=numbers)
    if seen.nodes[path.source].is_freebsd:
        text = (
            f"path MTU {largest}: {said(largest, path.version)} arrive, larger ones do not; the interfaces allow "
            f"{path.wanted}. FreeBSD does not report to the sender whether an ICMP message answers them."
        )
        remedy = f"Raise the MTU on the way to {path.wanted}, or lower the nodes' to {largest}."
        return found(Severity.WARNING, subject, text, remedy, numbers=numbers)
    text = (
        f"black hole: {said(largest, path.version)} arrive, larger ones vanish without an ICMP answer; the interfaces "
        f"allow {path.wanted}. TCP stalls on it."
    )
    remedy = (
        f"Raise the MTU of the switch's ports to {path.wanted}, let ICMP "
        f'"{"packet too big" if path.version == 6 else "fragmentation needed"}" pass, or lower the nodes\': '
        f"ip link set dev INTERFACE mtu {largest}"
    )
    return found(Severity.ERROR, subject, text, remedy, numbers=numbers)


def said(size: int, version: int) -> str:
    """Describe a size as IP packet, ICMP payload and Ethernet frame."""
    numbers = numbers_of(size, version)
    return (
        f"IP packets of {size} bytes (ICMP payload {numbers['icmp_payload_bytes']}, "
        f"Ethernet frame {numbers['ethernet_frame_bytes']})"
    )


def numbers_of(size: int, version: int) -> dict[str, int]:
    header = (40 if version == 6 else 20) + _ICMP_HEADER
    return {
        "path_mtu_bytes": size,
        "icmp_payload_bytes": size - header,
        "ethernet_frame_bytes": size + ETHERNET_HEADER,
    }


def _paths_subject(names: list[str]) -> Subject:
    return Subject("pair", tuple(names))
