"""Drafts a rig file: names, addresses and switch ports of nodes, switches, groups, and hosts that are left out."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final

from rigctl.discovery.network import DataEnd, NodePort, data_paths, locate_ports
from rigctl.discovery.targets import Target
from rigctl.hosts.candidate import Candidate
from rigctl.rig.fields import NODE_NAME, SWITCH_PORT, is_address
from rigctl.rig.inventory import Switch
from rigctl.switches import Forwarding

_MOST_SWITCHES: Final = 2
"""Most switches that a rig file may have (`rig.switches`)."""
_MOST_NAME: Final = 15
_NO_NAMES: Final = frozenset({"localhost", "localhost6", "(none)"})


@dataclass(frozen=True, slots=True)
class HostAnswer:
    """The answer of a host, or the reason why the host cannot be a node."""

    target: Target
    found: Candidate | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class DraftNode:
    name: str
    target: Target
    host: Candidate
    path: DataEnd
    port: NodePort | None = None
    switch: str | None = None  # key of the node's switch in the rig file
    no_port: str | None = None  # why the switch port is unknown


@dataclass(frozen=True, slots=True)
class DraftSwitch:
    """A switch of a drafted rig file. `asked` is the switch of --switch, None for a switch known from LLDP only."""

    key: str
    title: str
    address: str | None
    asked: Switch | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    nodes: tuple[DraftNode, ...]
    left_out: tuple[HostAnswer, ...]
    switches: tuple[DraftSwitch, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def draft_rig(
    asked: Sequence[HostAnswer],
    again: Sequence[Target] = (),
    tables: Sequence[tuple[Switch, Forwarding]] = (),
    notes: Sequence[str] = (),
) -> Draft:
    """Return the draft of a rig. Repeated targets (`again`) are left out; `tables` has switches' forwarding tables."""
    left_out = [each for each in asked if each.reason is not None]
    left_out += [HostAnswer(target, None, "named twice") for target in again]
    hosts: list[tuple[Target, Candidate]] = []
    first: dict[tuple[str, ...], Target] = {}
    for each in asked:
        if each.reason is not None or each.found is None:
            continue
        # MAC addresses identify a machine that reports neither boot id nor network namespace.
        macs = sorted(card.mac for card in each.found.interfaces.values() if card.is_hardware and card.mac)
        identity = each.found.identity or tuple(macs)
        known = first.setdefault(identity, each.target) if identity else each.target
        if known is each.target:
            hosts.append((each.target, each.found))
        else:
            left_out.append(HostAnswer(each.target, None, f"is the same machine as {known.text}"))
    names = name_nodes([(target, found.hostname) for target, found in hosts])
    return _compose(dict(zip(names, hosts, strict=True)), left_out, tables, notes)


def _compose(
    hosts: Mapping[str, tuple[Target, Candidate]],
    left_out: Sequence[HostAnswer],
    tables: Sequence[tuple[Switch, Forwarding]],
    notes: Sequence[str],
) -> Draft:
    candidates = {name: found for name, (_, found) in hosts.items()}
    paths = data_paths(candidates)
    by_address = {switch.address: switch.key for switch, _ in tables if switch.address}
    ports, unknown = locate_ports(candidates, paths, [(switch.key, table) for switch, table in tables], by_address)
    switches, keys = _switches(ports, tables)
    notes = list(notes)
    if len(switches) > _MOST_SWITCHES or (len(switches) == _MOST_SWITCHES and unknown):
        names = ", ".join(switch.title for switch in switches)
        why = f"a rig has at most {_MOST_SWITCHES}" if len(switches) > _MOST_SWITCHES else "some nodes are on neither"
        notes.append(f"the nodes are on {len(switches)} switches ({names}), and {why}, so ports are only comments")
        switches, keys = (), {}
    places = {name: (keys.get(port.switch), port.port) for name, port in ports.items()}
    nodes = []
    for name, (target, found) in hosts.items():
        port, no_port, switch = ports.get(name), unknown.get(name), None
        if port is not None:
            switch = places[name][0]
            sharing = [other for other, place in places.items() if place == places[name] and other != name]
            no_port = _why_only_comment(port, switch, sharing)
        nodes.append(DraftNode(name, target, found, paths[name], port if no_port is None else None, switch, no_port))
    return Draft(tuple(nodes), tuple(left_out), switches, _groups(nodes), tuple(notes))


def _why_only_comment(port: NodePort, switch: str | None, sharing: Sequence[str]) -> str | None:
    """Return the comment in place of a port that a rig file cannot have, else None. `sharing`: nodes on that port."""
    place = f"{port.switch} {port.port}, by {port.by}"
    if switch is None:
        return place
    if sharing:
        return f"{place}, the same port as of {', '.join(sharing)}: another switch is between them"
    return None if SWITCH_PORT.fullmatch(port.port) else f"{place}: a rig file cannot have this interface name"


def _switches(
    ports: Mapping[str, NodePort], tables: Sequence[tuple[Switch, Forwarding]]
) -> tuple[tuple[DraftSwitch, ...], dict[str, str]]:
    """Return the switches of the nodes, and a mapping from their names in `ports` to their keys in the rig file."""
    asked = {switch.key: (switch, table) for switch, table in tables}
    by_name = {(table.name or "").casefold(): switch.key for switch, table in tables if table.name}
    by_address = {switch.address: switch.key for switch, _ in tables if switch.address}
    found: dict[str, DraftSwitch] = {}
    keys: dict[str, str] = {}
    for port in ports.values():
        if port.switch in keys:
            continue
        known = port.switch if port.switch in asked else by_name.get(port.switch.casefold())
        known = known or by_address.get(port.management or "")
        if known is not None:
            switch, table = asked[known]
            title = table.name or (port.switch if port.switch != known else switch.address) or known
            found.setdefault(known, DraftSwitch(known, title, switch.address, switch))
            keys[port.switch] = known
            continue
        key, number = switch_key(port.switch), 2
        while key in found or key in asked:
            key, number = f"{switch_key(port.switch)[:12]}-{number}", number + 1
        found[key] = DraftSwitch(key, port.switch, port.management)
        keys[port.switch] = key
    return tuple(found.values()), keys


def _groups(nodes: Sequence[DraftNode]) -> dict[str, tuple[str, ...]]:
    """Return the node names of each inventory group, without groups whose name a rig file does not accept."""
    names = {node.name for node in nodes}
    groups = dict.fromkeys(group for node in nodes for group in node.target.groups)
    usable = [group for group in groups if NODE_NAME.fullmatch(group) and group not in names]
    return {group: tuple(node.name for node in nodes if group in node.target.groups) for group in usable}


def name_nodes(hosts: Sequence[tuple[Target, str | None]]) -> list[str]:
    """Return a unique node name for each host, given as target and host name.

    The node name is the inventory's name, else the first label of the target's name. If the target is an address, the
    host name is used if it is unique. Further hosts with the same name get the suffixes -2, -3.
    """
    called = Counter(_first_part(hostname) for _, hostname in hosts if hostname)
    names: list[str] = []
    for name in _shorten([_name_of_host(target, hostname, called) for target, hostname in hosts]):
        unique, number = name, 2
        while unique in names:
            suffix = f"-{number}"
            unique, number = name[: _MOST_NAME - len(suffix)] + suffix, number + 1
        names.append(unique)
    return names


def switch_key(text: str) -> str:
    """Return the first label of a switch's name as a valid key of a rig file."""
    return _shorten([_fit(text.partition(".")[0]) or "switch"])[0]


def _name_of_host(target: Target, hostname: str | None, called: Counter[str]) -> str:
    named = target.name or target.host
    if not is_address(named):
        return _fit(_first_part(named)) or "node"
    own = _first_part(hostname) if hostname else ""
    if own and own not in _NO_NAMES and called[own] == 1 and _fit(own):
        return _fit(own)
    address = ip_address(named)
    # An IPv4 address has at most 15 characters, the length limit of a name.
    return str(address).replace(".", "-") if address.version == 4 else "node"


def _first_part(name: str) -> str:
    return name if is_address(name) else name.partition(".")[0]


def _fit(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-_")


def _shorten(names: Sequence[str]) -> list[str]:
    """Return names cut to 15 characters: the first 15 if no other name begins with them, else the last 15."""
    starts, ends = Counter(name[:_MOST_NAME] for name in names), [_fit(name[-_MOST_NAME:]) or "node" for name in names]
    whole = [starts[name[:_MOST_NAME]] == 1 or len(name) <= _MOST_NAME for name in names]
    cut = [name[:_MOST_NAME] if kept else end for name, end, kept in zip(names, ends, whole, strict=True)]
    return [name if NODE_NAME.fullmatch(name) else "node" for name in cut]
