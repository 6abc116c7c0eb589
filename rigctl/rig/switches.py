"""Switches, their trunk and the groups of a rig file: mistakes that the types cannot find, and their records."""

from collections.abc import Iterable, Iterator
from pathlib import Path as Folder
from typing import Final

from rigctl.records import Port
from rigctl.rig.files import expanded_path
from rigctl.rig.inventory import Cli, Snmp, Switch
from rigctl.rig.ranges import expand_names
from rigctl.rig.sections import RigFile, SwitchEntry, TrunkSection
from rigctl.yamlfile import Document, Mistake, Path, suggestion
from rigctl.yamlfile.fields import FieldError

# Keys of real switches: rigctl makes those of a virtual rig.
_REAL_SWITCH: Final = ("address", "cli")
_REAL_SNMP: Final = ("port", "auth", "priv")
_MADE: Final = "is for real switches; rigctl makes those of a virtual rig"
_MOST: Final = 2


def switch_mistakes(document: Document, model: RigFile) -> Iterator[Mistake]:
    """Yield the mistakes in switches, trunk, ports and groups that the types cannot find."""
    path, several, virtual = ("switches",), len(model.switches), model.virtual
    if "switches" in model.model_fields_set:
        if model.switch is not None:
            what = "there is switch too. Keep switches, and give the name as a title, as in force10: Force10 E600."
            yield document.mistake(path, f"switches: {what}", at_key=True)
        if not several:
            what = "switches: is empty. Name one, as in {force10: Force10 E600}, or leave it out."
            yield document.mistake(path, what)
        elif several > _MOST:
            yield document.mistake(path, f"switches: {several} given. A rig has one or two.", at_key=True)
        if virtual in ("loopback", "machines"):
            why = f"its nodes share one {'interface' if virtual == 'loopback' else 'hub'}"
            what = f"switches: a rig with virtual: {virtual} has none, {why}. Leave it out."
            yield document.mistake(path, what, at_key=True)
        elif virtual == "namespaces" and several == _MOST and model.trunk is None:
            what = "switches: the two are not connected. Add a trunk, as in trunk: {rate: 8G}."
            yield document.mistake(path, what, at_key=True)
    for name, entry in model.switches.items():
        yield from _asking_mistakes(document, name, entry, virtual)
    if model.trunk is not None:
        yield from _trunk_mistakes(document, model.trunk, model)
    yield from _port_mistakes(document, model)
    yield from _group_mistakes(document, model)


def unwanted(document: Document, path: Path, keys: Iterable[str], subject: str, why: str) -> Iterator[Mistake]:
    """Yield a mistake for each of `keys` in the section at `path`."""
    section = document.at(path)
    for key in keys:
        if isinstance(section, dict) and key in section:
            yield document.mistake((*path, key), f'{subject}: "{key}" {why}. Leave it out.', at_key=True)


def _asking_mistakes(document: Document, name: str, entry: SwitchEntry, virtual: object) -> Iterator[Mistake]:
    path, subject = ("switches", name), f'switch "{name}"'
    if virtual is None:
        asked = "snmp" if entry.snmp is not None else "cli" if entry.cli is not None else None
        if asked is not None and entry.address is None:
            what = f'{subject}: "address" is missing. It is where {asked} reaches it, as in address: 10.1.1.1.'
            yield document.mistake((*path, asked), what, at_key=True)
        return
    yield from unwanted(document, path, _REAL_SWITCH, subject, _MADE)
    yield from unwanted(
        document, (*path, "snmp"), _REAL_SNMP, subject, "is for real switches; a virtual one answers version 2c"
    )
    if entry.snmp is not None and entry.snmp.version == "3":
        what = f"{subject}: a virtual switch answers version 2c only. Leave version out."
        yield document.mistake((*path, "snmp", "version"), what)


def _trunk_mistakes(document: Document, trunk: TrunkSection, model: RigFile) -> Iterator[Mistake]:
    known = list(model.switches)
    if len(known) != _MOST:
        what = f"trunk: connects two switches; switches names {len(known) or 'none'}."
        yield document.mistake(("trunk",), what, at_key=True)
    if trunk.ports and model.virtual is not None:
        yield document.mistake(("trunk", "ports"), f"ports: {_MADE}. Leave it out.", at_key=True)
    for name in trunk.ports:
        if name not in known:
            what = f'trunk: there is no switch "{name}".{suggestion(name, known)}'
            yield document.mistake(("trunk", "ports", name), what, at_key=True)


def _port_mistakes(document: Document, model: RigFile) -> Iterator[Mistake]:
    """Check that each node names an existing switch and that no port is used twice."""
    known = list(model.switches)
    trunk = model.trunk.ports if model.trunk is not None else {}
    taken = {(switch, port): "the trunk" for switch, ports in trunk.items() for port in ports}
    for name, node in model.nodes.items():
        path, subject = ("nodes", name), f'node "{name}"'
        if node.switch is not None and node.switch not in known:
            hint = suggestion(node.switch, known) or " Name it under switches."
            yield document.mistake((*path, "switch"), f'{subject}: there is no switch "{node.switch}".{hint}')
        elif node.switch is None and len(known) == _MOST:
            what = f'{subject}: "switch" is missing. It is the switch of the node: {" or ".join(known)}.'
            yield document.mistake(path, what, at_key=True)
        if node.switch_port is None:
            continue
        switch = node.switch or next(iter(known), None)
        if model.virtual is not None:
            yield from unwanted(document, path, ["switch_port"], subject, _MADE)
        elif switch is None:
            what = f'{subject}: "switch_port" needs a switch. Name it under switches.'
            yield document.mistake((*path, "switch_port"), what, at_key=True)
        elif (first := taken.setdefault((switch, node.switch_port), subject)) != subject:
            what = f'{subject}: {first} is on port "{node.switch_port}" of {switch} already.'
            yield document.mistake((*path, "switch_port"), what)


def _group_mistakes(document: Document, model: RigFile) -> Iterator[Mistake]:
    for name, given in model.groups.items():
        path, subject = ("groups", name), f'group "{name}"'
        if name in model.nodes:
            yield document.mistake(path, f"{subject}: a node has this name. Give it another name.", at_key=True)
        seen: set[str] = set()
        for position, member in enumerate(given):
            at = (*path, position) if isinstance(document.at(path), list) else path
            try:
                members = expand_names(member)
            except FieldError as error:
                yield document.mistake(at, f"{subject}: {error}.")
                continue
            unknown = next((each for each in members if each not in model.nodes), None)
            twice = next((each for each in members if each in seen), None)
            seen.update(members)
            if unknown is not None:
                hint = suggestion(unknown, list(model.nodes))
                yield document.mistake(at, f'{subject}: there is no node "{unknown}".{hint}')
            elif twice is not None:
                yield document.mistake(at, f'{subject}: "{twice}" is in it twice. Keep one of them.')


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
