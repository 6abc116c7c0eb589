"""Find conflicts between values of a rig file. The schema has already checked each value alone."""

from collections.abc import Iterable, Iterator
from pathlib import Path as Folder
from typing import Any, Final

from rigctl.rig.fields import expand_path
from rigctl.rig.inventory import BY_SSH
from rigctl.rig.ranges import expand_names
from rigctl.rig.schema import SSH_ONLY, LinkSection, NodeSection, RigFile, SwitchEntry, TrunkSection
from rigctl.yamlfile import FieldError, Mistake, Path, YamlDocument, YamlSection, suggestion

_ACCESS: Final = ("address", "transport", *SSH_ONLY, "sudo", "data_address", "data_interface")
"""Keys that only real nodes have, as rigctl creates the nodes of a virtual rig."""
_VIRTUAL_FIELDS: Final = {"namespaces": ("rtt", "bottleneck", "disk", "sysctl"), "machines": ("arch", "nic")}
"""Maps a kind of virtual rig to the keys of nodes that only this kind has."""
_REAL_ONLY: Final = {
    "transport": "rigctl knows how to reach the nodes of a virtual rig",
    "defaults": "rigctl makes the nodes of a virtual rig",
}
"""Maps each key that is only for rigs of real nodes to the reason."""
_MADE: Final = "is for real switches; rigctl makes the switches of a virtual rig"
_MOST_SWITCHES: Final = 2


def rig_mistakes(document: YamlDocument, model: RigFile, folder: Folder) -> Iterator[Mistake]:
    """Yield all conflicts in a rig file. Paths are relative to `folder`, the folder of the rig file."""
    if len(model.nodes) < 2:
        none = "the rig has none. Name at least two, as in pi1: {address: pi1.lan}."
        what = "there is only one. A pair needs two." if model.nodes else none
        yield document.mistake(("nodes",), f"nodes: {what}")
    if model.virtual is None and "ip_version" in model.model_fields_set:
        what = "ip_version: for virtual rigs only; on real nodes the data addresses determine it. Leave it out."
        yield document.mistake(("ip_version",), what, at_key=True)
    for key, why in _REAL_ONLY.items():
        if model.virtual is not None and key in model.model_fields_set:
            yield document.mistake((key,), f"{key}: for real nodes only; {why}. Leave it out.", at_key=True)
    yield from _virtual_mistakes(document, model.links, ("links",), model)
    first_with_address: dict[tuple[Any, ...], str] = {}
    for name, node in model.nodes.items():
        yield from _virtual_mistakes(document, node, ("nodes", name), model)
        if model.virtual is not None:
            why = "is for real nodes; rigctl makes the nodes of a virtual rig"
            yield from _find_unwanted(document, ("nodes", name), node, _ACCESS, f'node "{name}"', why)
        else:
            yield from _node_mistakes(document, name, node, model, folder)
        if node.address is None or (node.transport or model.transport) == "local":
            continue  # several local nodes share this machine and differ in their data addresses
        first = first_with_address.setdefault((node.address, node.port, node.jump), name)
        if first != name:
            how = "give each node its card's own address, as in address: 192.0.2.1"
            what = f'node "{name}": has the same address as "{first}". For two cards or VLANs of one host, {how}.'
            yield document.mistake(("nodes", name, "address"), what)
    yield from _switch_mistakes(document, model)
    for name, entry in model.switches.items():
        yield from _counter_mistakes(document, name, entry, model)
    if model.trunk is not None:
        yield from _trunk_mistakes(document, model.trunk, model)
    yield from _port_mistakes(document, model)
    yield from _group_mistakes(document, model)


def _find_unwanted(
    document: YamlDocument, path: Path, section: YamlSection | None, keys: Iterable[str], subject: str, why: str
) -> Iterator[Mistake]:
    for key in keys:
        if section is not None and key in section.model_fields_set:
            yield document.mistake((*path, key), f'{subject}: "{key}" {why}. Leave it out.', at_key=True)


def _node_mistakes(
    document: YamlDocument, name: str, node: NodeSection, model: RigFile, folder: Folder
) -> Iterator[Mistake]:
    path, subject, transport = ("nodes", name), f'node "{name}"', node.transport or model.transport
    if transport not in BY_SSH:
        why = f"is for SSH, and the node has transport {transport}"
        yield from _find_unwanted(document, path, node, SSH_ONLY, subject, why)
        if node.data_address is None and node.data_interface is None:
            what = (
                f'{subject}: "data_interface" is missing. With transport {transport}, this key or '
                f"data_address says where data flow, as in data_interface: eth0."
            )
            yield document.mistake(path, what, at_key=True)
        if transport == "netns":
            yield from _namespace_mistakes(document, path, subject, node)
    elif node.address is None:
        what = f'{subject}: "address" is missing. SSH needs the address of the node, as in address: {name}.lan'
        what += ' (in a range: "{name}.lan").'
        yield document.mistake(path, what, at_key=True)
    if node.key is not None and not (file := expand_path(node.key, folder)).is_file():
        yield document.mistake((*path, "key"), f'key "{node.key}": there is no file {file}.')


def _namespace_mistakes(document: YamlDocument, path: Path, subject: str, node: NodeSection) -> Iterator[Mistake]:
    if node.address is None:
        what = f'{subject}: "address" is missing. With transport netns it is the namespace, as in address: peer.'
        yield document.mistake(path, what, at_key=True)
    # The journal of host settings of root by sudo is one for all namespaces of a machine.
    why = "is for hosts; start rigctl as root, which network namespaces need"
    yield from _find_unwanted(document, path, node, ("sudo",) if node.sudo else (), subject, why)


def _virtual_mistakes(
    document: YamlDocument, section: LinkSection, path: tuple[str, ...], model: RigFile
) -> Iterator[Mistake]:
    for kind, keys in _VIRTUAL_FIELDS.items():
        for key in keys if model.virtual != kind else ():
            if key in section.model_fields_set:
                what = f"{key}: for virtual rigs with {kind} only. Leave it out."
                yield document.mistake((*path, key), what, at_key=True)


def _switch_mistakes(document: YamlDocument, model: RigFile) -> Iterator[Mistake]:
    path, several, virtual = ("switches",), len(model.switches), model.virtual
    if "switches" not in model.model_fields_set:
        return
    if model.switch is not None:
        what = "the rig has the key switch, too. Keep only switches; a title is given as in force10: Force10 E600."
        yield document.mistake(path, f"switches: {what}", at_key=True)
    if not several:
        yield document.mistake(path, "switches: is empty. Name one, as in {force10: Force10 E600}, or leave it out.")
    elif several > _MOST_SWITCHES:
        yield document.mistake(path, f"switches: {several} given. A rig has one or two.", at_key=True)
    if virtual in ("loopback", "machines"):
        why = f"its nodes share one {'interface' if virtual == 'loopback' else 'hub'}"
        what = f"switches: a rig with virtual: {virtual} has none, because {why}. Leave them out."
        yield document.mistake(path, what, at_key=True)
    elif virtual == "namespaces" and several == _MOST_SWITCHES and model.trunk is None:
        what = "switches: the two are not connected. Add a trunk, as in trunk: {rate: 8G}."
        yield document.mistake(path, what, at_key=True)


def _counter_mistakes(document: YamlDocument, name: str, entry: SwitchEntry, model: RigFile) -> Iterator[Mistake]:
    path, subject = ("switches", name), f'switch "{name}"'
    if model.virtual is None:
        reader = "snmp" if entry.snmp is not None else "cli" if entry.cli is not None else None
        if reader is not None and entry.address is None:
            what = f'{subject}: "address" is missing. rigctl needs it for {reader}, as in address: 10.1.1.1.'
            yield document.mistake((*path, reader), what, at_key=True)
        return
    yield from _find_unwanted(document, path, entry, ("address", "cli"), subject, _MADE)
    why = "is for real switches; a virtual switch answers SNMP version 2c"
    yield from _find_unwanted(document, (*path, "snmp"), entry.snmp, ("port", "auth", "priv"), subject, why)
    if entry.snmp is not None and entry.snmp.version == "3":
        what = f"{subject}: a virtual switch answers only SNMP version 2c. Leave version out."
        yield document.mistake((*path, "snmp", "version"), what)


def _trunk_mistakes(document: YamlDocument, trunk: TrunkSection, model: RigFile) -> Iterator[Mistake]:
    known = list(model.switches)
    if len(known) != _MOST_SWITCHES:
        what = f"trunk: connects two switches; the rig names {len(known) or 'none'}. Name both under switches."
        yield document.mistake(("trunk",), what, at_key=True)
    if trunk.ports and model.virtual is not None:
        yield document.mistake(("trunk", "ports"), f"ports: {_MADE}. Leave it out.", at_key=True)
    if trunk.router and model.virtual != "namespaces":
        yield document.mistake(("trunk", "router"), "router: for virtual rigs with namespaces only. Leave it out.")
    for name in trunk.ports:
        if name not in known:
            what = f'trunk: there is no switch "{name}".{suggestion(name, known)}'
            yield document.mistake(("trunk", "ports", name), what, at_key=True)


def _port_mistakes(document: YamlDocument, model: RigFile) -> Iterator[Mistake]:
    known = list(model.switches)
    trunk = model.trunk.ports if model.trunk is not None else {}
    users = {(switch, port): "the trunk" for switch, ports in trunk.items() for port in ports}
    for name, node in model.nodes.items():
        path, subject = ("nodes", name), f'node "{name}"'
        if node.switch is not None and node.switch not in known:
            hint = suggestion(node.switch, known) or " Name it under switches."
            yield document.mistake((*path, "switch"), f'{subject}: there is no switch "{node.switch}".{hint}')
        elif node.switch is None and len(known) == _MOST_SWITCHES:
            what = f'{subject}: "switch" is missing. Name the switch of the node: {" or ".join(known)}.'
            yield document.mistake(path, what, at_key=True)
        if node.switch_port is None:
            continue
        switch = node.switch or next(iter(known), None)
        if model.virtual is not None:
            yield from _find_unwanted(document, path, node, ["switch_port"], subject, _MADE)
        elif switch is None:
            what = f'{subject}: "switch_port" needs a switch. Name it under switches.'
            yield document.mistake((*path, "switch_port"), what, at_key=True)
        elif (first := users.setdefault((switch, node.switch_port), subject)) != subject:
            what = f'{subject}: {first} is on port "{node.switch_port}" of {switch} already.'
            yield document.mistake((*path, "switch_port"), what)


def _group_mistakes(document: YamlDocument, model: RigFile) -> Iterator[Mistake]:
    for group, members in model.groups.items():
        path, subject = ("groups", group), f'group "{group}"'
        if group in model.nodes:
            yield document.mistake(path, f"{subject}: a node has this name. Rename one of them.", at_key=True)
        seen: set[str] = set()
        for position, member in enumerate(members):
            at = (*path, position)
            try:
                names = expand_names(member)
            except FieldError as error:
                yield document.mistake(at, f"{subject}: {error}.")
                continue
            unknown = next((name for name in names if name not in model.nodes), None)
            twice = next((name for name in names if name in seen), None)
            seen.update(names)
            if unknown is not None:
                hint = suggestion(unknown, list(model.nodes))
                yield document.mistake(at, f'{subject}: there is no node "{unknown}".{hint}')
            elif twice is not None:
                yield document.mistake(at, f'{subject}: "{twice}" is named twice. Name each node once.')
