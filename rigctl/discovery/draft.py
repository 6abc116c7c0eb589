"""What will stand in the rig file: nodes, what is left out and why, switches and groups. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from rigctl.discovery.names import key_of, node_names
from rigctl.discovery.paths import DataPath, data_paths
from rigctl.discovery.ports import End, SwitchPort, located
from rigctl.discovery.targets import Asked, Target
from rigctl.probe.surroundings import Surroundings
from rigctl.probe.switches import Forwarding
from rigctl.rig.fields import NODE_NAME, SWITCH_PORT
from rigctl.rig.inventory import Switch

MOST_SWITCHES: Final = 2
"""That a rig has (rig.sections)."""


@dataclass(frozen=True, slots=True)
class Found:
    """A node to be."""

    name: str
    target: Target
    host: Surroundings
    path: DataPath
    port: SwitchPort | None = None
    switch: str | None = None  # its key
    no_port: str | None = None  # why the port is unknown
    same_as: tuple[str, ...] = ()  # other ways in which this machine was named


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A host that is no node, and why."""

    target: Target
    reason: str


@dataclass(frozen=True, slots=True)
class FoundSwitch:
    """A switch of the rig file. `asked` is as it was named for SNMP."""

    key: str
    title: str
    address: str | None
    asked: Switch | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    nodes: tuple[Found, ...]
    left_out: tuple[LeftOut, ...]
    switches: tuple[FoundSwitch, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def drafted(
    asked: Sequence[Asked],
    again: Sequence[Target] = (),
    tables: Sequence[tuple[Switch, Forwarding]] = (),
    notes: Sequence[str] = (),
) -> Draft:
    """The draft. `again` are targets that name a host which another has named; `tables` those of switches asked."""
    left_out = [LeftOut(each.target, each.reason) for each in asked if each.reason is not None]
    left_out += [LeftOut(target, "named twice") for target in again]
    hosts: list[tuple[Target, Surroundings]] = []
    first: dict[tuple[str, ...], Target] = {}
    for each in asked:
        if each.reason is not None or each.found is None:
            continue
        identity = each.found.identity or _by_macs(each.found)
        known = first.setdefault(identity, each.target) if identity else each.target
        if known is each.target:
            hosts.append((each.target, each.found))
        else:
            left_out.append(LeftOut(each.target, f"is the same machine as {known.text}"))
    names = node_names([(target, found.hostname) for target, found in hosts])
    return _composed(dict(zip(names, hosts, strict=True)), left_out, tables, notes)


def _by_macs(found: Surroundings) -> tuple[str, ...]:
    """Which machine it is where it says neither boot nor namespace: by its hardware addresses."""
    return tuple(sorted(mac for each in found.interfaces.values() if each.is_hardware and (mac := each.mac)))


def _composed(
    hosts: Mapping[str, tuple[Target, Surroundings]],
    left_out: Sequence[LeftOut],
    tables: Sequence[tuple[Switch, Forwarding]],
    notes: Sequence[str],
) -> Draft:
    paths = data_paths({name: found for name, (_, found) in hosts.items()})
    ends = {name: End(found, paths[name].interface) for name, (_, found) in hosts.items()}
    ports, unknown = located(ends, [(switch.key, table) for switch, table in tables])
    switches, keys = _switches(ports, tables)
    notes = list(notes)
    if len(switches) > MOST_SWITCHES or (len(switches) == MOST_SWITCHES and unknown):
        names = ", ".join(switch.title for switch in switches)
        why = f"a rig has at most {MOST_SWITCHES}" if len(switches) > MOST_SWITCHES else "some nodes are on neither"
        notes.append(f"the nodes are on {len(switches)} switches ({names}), and {why}: their ports are comments")
        switches, keys = (), {}
    taken: dict[tuple[str, str], list[str]] = {}
    for name, known in ports.items():
        if known.switch in keys:
            taken.setdefault((keys[known.switch], known.port), []).append(name)
    nodes = []
    for name, (target, found) in hosts.items():
        node = Found(name, target, found, paths[name], no_port=unknown.get(name))
        if name in ports:
            known = ports[name]
            key = keys.get(known.switch)
            sharing = taken.get((key, known.port), []) if key is not None else []
            unfit = _unwritable(known, [other for other in sharing if other != name], written=key is not None)
            node = replace(node, port=known if unfit is None else None, switch=key, no_port=unfit)
        nodes.append(node)
    return Draft(tuple(nodes), tuple(left_out), switches, _groups(nodes), tuple(notes))


def _unwritable(port: SwitchPort, others: Sequence[str], *, written: bool) -> str | None:
    """Why a known port stays a comment. None: it does not."""
    said = f"{port.switch} {port.port}, by {port.by}"
    if not written:
        return said
    if others:
        return f"{said}, as for {', '.join(others)}: another switch is between them"
    if not SWITCH_PORT.fullmatch(port.port):
        return f"{said}: no interface name that a rig file takes"
    return None


def _switches(
    ports: Mapping[str, SwitchPort], tables: Sequence[tuple[Switch, Forwarding]]
) -> tuple[tuple[FoundSwitch, ...], dict[str, str]]:
    """The switches that nodes are on, and the key of each by what LLDP or the command line calls it."""
    asked = {switch.key: (switch, table) for switch, table in tables}
    by_name = {(table.name or "").casefold(): switch.key for switch, table in tables if table.name}
    by_address = {switch.address: switch.key for switch, _ in tables if switch.address}
    found: dict[str, FoundSwitch] = {}
    keys: dict[str, str] = {}
    for port in ports.values():
        if port.switch in keys:
            continue
        known = port.switch if port.switch in asked else by_name.get(port.switch.casefold())
        known = known or by_address.get(port.management or "")
        if known is not None:
            switch, table = asked[known]
            title = table.name or (port.switch if port.switch != known else switch.address) or known
            found.setdefault(known, FoundSwitch(known, title, switch.address, switch))
            keys[port.switch] = known
            continue
        key, number = key_of(port.switch), 2
        while key in found or key in asked:
            key, number = f"{key_of(port.switch)[:12]}-{number}", number + 1
        found[key] = FoundSwitch(key, port.switch, port.management)
        keys[port.switch] = key
    return tuple(found.values()), keys


def _groups(nodes: Sequence[Found]) -> dict[str, tuple[str, ...]]:
    """An inventory's groups, as far as a rig file takes their names."""
    groups: dict[str, list[str]] = {}
    for node in nodes:
        for group in node.target.groups:
            groups.setdefault(group, []).append(node.name)
    names = {node.name for node in nodes}
    return {
        group: tuple(members) for group, members in groups.items() if NODE_NAME.fullmatch(group) and group not in names
    }
