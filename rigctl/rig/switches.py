"""Switches, their trunk and the groups of a rig file: mistakes that the types cannot find, and their records."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path as Folder
from typing import Any, Final

from rigctl.records import Port
from rigctl.rig.files import expanded_path
from rigctl.rig.inventory import Cli, Snmp, Switch
from rigctl.rig.ranges import expand_names
from rigctl.rig.sections import RigFile, SwitchEntry
from rigctl.yamlfile import Document, Mistake, Path, suggestion
from rigctl.yamlfile.fields import FieldError

# Keys of real switches: rigctl makes those of a virtual rig.
_REAL_SWITCH: Final = ("address", "cli")
_REAL_SNMP: Final = ("port", "auth", "priv")
_MOST: Final = 2


def switch_mistakes(document: Document) -> Iterator[Mistake]:
    """Yield the mistakes in switches, trunk, ports and groups that the types cannot find."""
    data = document.data
    switches = data.get("switches", {})
    if not isinstance(switches, dict):
        return
    virtual = data.get("virtual")
    if "switches" in data:
        yield from _count_mistakes(document, switches)
        if virtual in ("loopback", "machines"):
            why = "its nodes share one interface" if virtual == "loopback" else "its nodes share one hub"
            what = f"switches: a rig with virtual: {virtual} has none, {why}. Leave it out."
            yield document.mistake(("switches",), what, at_key=True)
        elif virtual == "namespaces" and len(switches) == _MOST and "trunk" not in data:
            what = "switches: the two are not connected. Add a trunk, as in trunk: {rate: 8G}."
            yield document.mistake(("switches",), what, at_key=True)
    for name, section in switches.items():
        if isinstance(section, dict):
            yield from _asking_mistakes(document, name, section, virtual)
    yield from _trunk_mistakes(document, switches, virtual)
    yield from _port_mistakes(document, switches, virtual)
    yield from _group_mistakes(document)


def unwanted(document: Document, path: Path, keys: Iterable[str], subject: str, why: str) -> Iterator[Mistake]:
    """Yield a mistake for each of `keys` in the section at `path`."""
    section = document.at(path)
    for key in keys:
        if isinstance(section, dict) and key in section:
            yield document.mistake((*path, key), f'{subject}: "{key}" {why}. Leave it out.', at_key=True)


def _count_mistakes(document: Document, switches: Mapping[str, Any]) -> Iterator[Mistake]:
    path = ("switches",)
    if "switch" in document.data:
        what = (
            "switches: there is switch too. Keep switches, and give the name as a title, as in force10: Force10 E600."
        )
        yield document.mistake(path, what, at_key=True)
    if not switches:
        yield document.mistake(path, "switches: is empty. Name one, as in {force10: Force10 E600}, or leave it out.")
    elif len(switches) > _MOST:
        yield document.mistake(path, f"switches: {len(switches)} given. A rig has one or two.", at_key=True)


def _asking_mistakes(document: Document, name: str, section: Mapping[str, Any], virtual: object) -> Iterator[Mistake]:
    path = ("switches", name)
    if virtual is None:
        asked = next((key for key in ("snmp", "cli") if key in section), None)
        if asked is not None and "address" not in section:
            what = f'switch "{name}": "address" is missing. It is where {asked} reaches it, as in address: 10.1.1.1.'
            yield document.mistake((*path, asked), what, at_key=True)
        return
    why = "is for real switches; rigctl makes those of a virtual rig"
    yield from unwanted(document, path, _REAL_SWITCH, f'switch "{name}"', why)
    snmp = section.get("snmp")
    if isinstance(snmp, dict):
        why = "is for real switches; a virtual one answers version 2c"
        yield from unwanted(document, (*path, "snmp"), _REAL_SNMP, f'switch "{name}"', why)
        if str(snmp.get("version")) == "3":
            what = f'switch "{name}": a virtual switch answers version 2c only. Leave version out.'
            yield document.mistake((*path, "snmp", "version"), what)


def _trunk_mistakes(document: Document, switches: Mapping[str, Any], virtual: object) -> Iterator[Mistake]:
    if "trunk" not in document.data:
        return
    if len(switches) != _MOST:
        what = f"trunk: connects two switches; switches names {len(switches) or 'none'}."
        yield document.mistake(("trunk",), what, at_key=True)
    trunk = document.data["trunk"]
    ports = trunk.get("ports") if isinstance(trunk, dict) else None
    if not isinstance(ports, dict):
        return
    if virtual is not None:
        what = "ports: is for real switches; rigctl makes those of a virtual rig. Leave it out."
        yield document.mistake(("trunk", "ports"), what, at_key=True)
    for name in ports:
        if name not in switches:
            what = f'trunk: there is no switch "{name}".{suggestion(str(name), list(switches))}'
            yield document.mistake(("trunk", "ports", name), what, at_key=True)


def _port_mistakes(document: Document, switches: Mapping[str, Any], virtual: object) -> Iterator[Mistake]:
    """Check that each node names an existing switch and that no port is used twice."""
    nodes = document.data.get("nodes")
    taken = dict(_trunk_ports(document.data.get("trunk")))
    for name, section in nodes.items() if isinstance(nodes, dict) else ():
        if not isinstance(section, dict):
            section = {}  # noqa: PLW2901  # empty, or a mistake that the types have found
        path = ("nodes", name)
        switch = section.get("switch")
        if isinstance(switch, str) and switch not in switches:
            known = suggestion(switch, list(switches)) or " Name it under switches."
            yield document.mistake((*path, "switch"), f'node "{name}": there is no switch "{switch}".{known}')
        elif switch is None and len(switches) == _MOST:
            names = " or ".join(switches)
            what = f'node "{name}": "switch" is missing. It is the switch of the node: {names}.'
            yield document.mistake(path, what, at_key=True)
        if "switch_port" not in section:
            continue
        at = (*path, "switch_port")
        key = switch if switch is not None else next(iter(switches), None)
        if virtual is not None:
            why = "is for real switches; rigctl makes those of a virtual rig"
            yield from unwanted(document, path, ["switch_port"], f'node "{name}"', why)
        elif key is None:
            what = f'node "{name}": "switch_port" needs a switch. Name it under switches.'
            yield document.mistake(at, what, at_key=True)
        elif isinstance(key, str) and isinstance(port := section["switch_port"], str):
            first = taken.setdefault((key, port.strip()), f'node "{name}"')
            if first != f'node "{name}"':
                yield document.mistake(at, f'node "{name}": {first} is on port "{port}" of {key} already.')


def _trunk_ports(trunk: object) -> Iterator[tuple[tuple[str, str], str]]:
    ports = trunk.get("ports") if isinstance(trunk, dict) else None
    for switch, given in ports.items() if isinstance(ports, dict) else ():
        for port in given if isinstance(given, list) else [given]:
            if isinstance(port, str):
                yield (switch, port.strip()), "the trunk"


def _group_mistakes(document: Document) -> Iterator[Mistake]:
    groups, nodes = document.data.get("groups"), document.data.get("nodes")
    if not isinstance(groups, dict) or not isinstance(nodes, dict):
        return
    for name, given in groups.items():
        path = ("groups", name)
        if name in nodes:
            yield document.mistake(path, f'group "{name}": a node has this name. Give it another name.', at_key=True)
        seen: set[str] = set()
        for position, member in enumerate(given if isinstance(given, list) else [given]):
            at = (*path, position) if isinstance(given, list) else path
            if not isinstance(member, str):
                continue  # the types have found this mistake
            try:
                members = expand_names(member.strip())
            except FieldError as error:
                yield document.mistake(at, f'group "{name}": {error}.')
                continue
            unknown = next((member for member in members if member not in nodes), None)
            twice = next((member for member in members if member in seen), None)
            seen.update(members)
            if unknown is not None:
                yield document.mistake(
                    at, f'group "{name}": there is no node "{unknown}".{suggestion(unknown, list(nodes))}'
                )
            elif twice is not None:
                yield document.mistake(at, f'group "{name}": "{twice}" is in it twice. Keep one of them.')


def switch_of(key: str, entry: SwitchEntry, folder: Folder) -> Switch:
    """Return the switch of an entry; `folder` is that of the rig file."""
    snmp = cli = None
    if entry.snmp is not None:
        snmp = Snmp(entry.snmp.version, entry.snmp.port, entry.snmp.auth, entry.snmp.priv)
    if entry.cli is not None:
        known_hosts = expanded_path(entry.cli.known_hosts, folder) if entry.cli.known_hosts else None
        cli = Cli(entry.cli.kind, entry.cli.port, known_hosts)
    return Switch(key, entry.title or key, entry.mtu, entry.address, snmp, cli, entry.poll)


def ports_of(model: RigFile) -> tuple[Port, ...]:
    """Return the ports that the file names: those of nodes, then the ends of the trunk."""
    only = next(iter(model.switches), None)
    found: list[Port] = []
    for name, node in model.nodes.items():
        switch = node.switch or only
        if switch is not None and node.switch_port is not None:
            found.append(Port(switch, node.switch_port, node=name))
    for switch, names in (model.trunk.ports if model.trunk is not None else {}).items():
        peer = next(other for other in model.switches if other != switch)
        found += (Port(switch, name, peer=peer) for name in names)
    return tuple(found)


def groups_of(model: RigFile) -> dict[str, tuple[str, ...]]:
    return {
        group: tuple(name for member in given for name in expand_names(member)) for group, given in model.groups.items()
    }
