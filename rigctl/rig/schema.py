"""The rig file: reading it, finding its mistakes, and making the `Rig` that it describes."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

from rigctl.base import resources
from rigctl.records import Link, Trunk
from rigctl.rig.allocation import allocated, is_ahead
from rigctl.rig.defaults import with_defaults
from rigctl.rig.fields import is_address, plain_name
from rigctl.rig.files import expanded_path
from rigctl.rig.inventory import VIRTUAL_MTU, Node, Rig
from rigctl.rig.overriding import overridden
from rigctl.rig.ranges import expanded, told_once
from rigctl.rig.sections import SSH_ONLY, LinkSection, NodeSection, RigFile
from rigctl.rig.switches import groups_of, ports_of, switch_mistakes, switch_of, unwanted
from rigctl.yamlfile import Document, Mistake, MistakesError, find, find_bundled, read_document, validated
from rigctl.yamlfile.mistakes import MOST_FOUND, in_order

# Keys of real nodes: rigctl makes those of a virtual rig.
SSH_FIELDS: Final = (
    "address",
    "transport",
    "port",
    "user",
    "key",
    "known_hosts",
    "jump",
    "sudo",
    "data_address",
    "data_interface",
)

_VIRTUAL_FIELDS: Final = {"namespaces": ("rtt", "bottleneck", "sysctl"), "machines": ("arch", "nic")}
"""Keys of a node for one kind of virtual rig."""


def load_rig(reference: str, relative_to: Path | None = None, sets: Sequence[str] = ()) -> Rig:
    """Return the rig in a file or of a bundled name. Raise `InputError`, with all mistakes of the file.

    A relative path starts from `relative_to`, else from the working folder. `sets` are the values of `--rig-set`,
    each a PATH=VALUE as in `trunk.rate=10G`.
    """
    path = find(reference, what="rig", bundled=bundled_folder(), relative_to=relative_to)
    return rig_of(read_document(path), path, sets)


def bundled_folder() -> Path:
    return resources.scenarios() / "rigs"


def bundled_rigs() -> list[str]:
    return list(find_bundled(bundled_folder()))


def rig_of(document: Document, path: Path, sets: Sequence[str] = ()) -> Rig:
    """Return the rig that a document describes, or raise `MistakesError`; `path` is its file."""
    ahead = [text for text in sets if is_ahead(text)]
    document, wrong_ahead = overridden(document, ahead)
    document, note = allocated(document)
    document = expanded(document)
    document, wrong_options = overridden(document, [text for text in sets if text not in ahead])
    wrong_options = [*wrong_ahead, *wrong_options]
    document = with_defaults(document)
    model, found = validated(document, RigFile)
    if model is not None and not (found or wrong_options):
        found = list(islice(mistakes(document, model, path.parent), MOST_FOUND))
    if model is None or found or wrong_options:
        raise MistakesError([*wrong_options, *in_order(told_once(found))])
    switches = {key: switch_of(key, entry, path.parent) for key, entry in model.switches.items()}
    titles = " and ".join(switch.title for switch in switches.values())
    ends = list(switches)
    only = ends[0] if len(ends) == 1 else None
    return Rig(
        name=path.stem,
        title=model.title or path.stem,
        nodes={name: _resolved(name, section, model, path.parent, only) for name, section in model.nodes.items()},
        switch=model.switch.name if model.switch else titles or None,
        notes="\n".join(filter(None, (model.notes.strip(), note))),
        virtual=model.virtual,
        ip_version=ip_version_of(model),
        text=document.text,
        source=path,
        groups=groups_of(model),
        switches=switches,
        ports=ports_of(model),
        trunk=None if model.trunk is None else Trunk((ends[0], ends[1]), model.trunk.rate),
    )


def mistakes(document: Document, model: RigFile, folder: Path) -> Iterator[Mistake]:
    """Yield the mistakes that the types cannot find: keys for another kind of rig, missing key files and switches."""
    if len(model.nodes) < 2:
        none = "the rig has none. Name at least two, as in pi1: {address: pi1.lan}."
        what = "there is only one. A pair needs two." if model.nodes else none
        yield document.mistake(("nodes",), f"nodes: {what}")
    if model.virtual is None and "ip_version" in model.model_fields_set:
        what = "ip_version: for virtual rigs only; on real nodes the data addresses determine it. Leave it out."
        yield document.mistake(("ip_version",), what, at_key=True)
    if model.virtual is not None and "transport" in model.model_fields_set:
        what = "transport: for real nodes only; rigctl reaches those of a virtual rig by itself. Leave it out."
        yield document.mistake(("transport",), what, at_key=True)
    if model.virtual is not None and model.defaults is not None:
        what = "defaults: for real nodes only; rigctl makes those of a virtual rig. Leave it out."
        yield document.mistake(("defaults",), what, at_key=True)
    yield from _virtual_mistakes(document, model.links, ("links",), model)
    places: dict[tuple[Any, ...], str] = {}
    for name, node in model.nodes.items():
        yield from _virtual_mistakes(document, node, ("nodes", name), model)
        if model.virtual is not None:
            why = "is for real nodes; rigctl makes those of a virtual rig"
            yield from unwanted(document, ("nodes", name), SSH_FIELDS, f'node "{name}"', why)
        else:
            yield from _node_mistakes(document, name, node, model, folder)
        if node.address is None or (node.transport or model.transport) == "local":
            continue  # several nodes may be this machine, with different data addresses
        first = places.setdefault((node.address, node.port, node.jump), name)
        if first != name:
            what = f'node "{name}": has the same address as "{first}". One host is one node.'
            yield document.mistake(("nodes", name, "address"), what)
    yield from switch_mistakes(document, model)


def _node_mistakes(document: Document, name: str, node: NodeSection, model: RigFile, folder: Path) -> Iterator[Mistake]:
    path, transport = ("nodes", name), node.transport or model.transport
    if transport != "ssh":
        why = f"is for SSH, and its transport is {transport}"
        yield from unwanted(document, path, SSH_ONLY, f'node "{name}"', why)
        if node.data_address is None and node.data_interface is None:
            what = (
                f'node "{name}": "data_interface" is missing. With transport {transport} it, or data_address, '
                f"determines where data flow, as in data_interface: eth0."
            )
            yield document.mistake(path, what, at_key=True)
    elif node.address is None:
        what = f'node "{name}": "address" is missing. It is where SSH reaches the node, as in address: {name}.lan'
        what += ' (in a range: "{name}.lan").'
        yield document.mistake(path, what, at_key=True)
    if node.key is not None and not (where := expanded_path(node.key, folder)).is_file():
        yield document.mistake((*path, "key"), f'key "{document.at((*path, "key"))}": there is no file {where}.')


def _virtual_mistakes(
    document: Document, section: LinkSection, path: tuple[str, ...], model: RigFile
) -> Iterator[Mistake]:
    for kind, fields in _VIRTUAL_FIELDS.items():
        for key in fields if model.virtual != kind else ():
            if key in section.model_fields_set:
                what = f"{key}: for virtual rigs with {kind} only. Leave it out."
                yield document.mistake((*path, key), what, at_key=True)


def ip_version_of(model: RigFile) -> Literal[4, 6]:
    """Return the IP version of the data addresses: of real nodes 6 if all addresses in the file are IPv6."""
    if model.virtual is not None:
        return model.ip_version
    # The addresses of host names and interfaces are not known here.
    given = [node.data_address or (None if node.data_interface else node.address) for node in model.nodes.values()]
    literal = [address for address in given if address is not None and is_address(address)]
    return 6 if literal and all(":" in address for address in literal) else 4


def _resolved(name: str, section: NodeSection, model: RigFile, folder: Path, only_switch: str | None) -> Node:
    links, transport = model.links, section.transport or model.transport
    rate = section.rate if section.rate is not None else links.rate
    mtu = section.mtu if section.mtu is not None else links.mtu
    if mtu is None and model.virtual in ("namespaces", "machines"):
        mtu = VIRTUAL_MTU
    return Node(
        name=name,
        # Of a virtual node, rigctl.virtual fills in the real address.
        address=section.address or (name if transport == "srun" else "127.0.0.1"),
        link=Link(rate, mtu, section.switch or only_switch, section.rtt if section.rtt is not None else links.rtt),
        port=section.port,
        user=section.user,
        key=expanded_path(section.key, folder) if section.key else None,
        known_hosts=expanded_path(section.known_hosts, folder) if section.known_hosts else None,
        jump=section.jump,
        data_address=section.data_address,
        data_interface=section.data_interface,
        sudo=section.sudo,
        data_ports=section.data_ports or model.data_ports,
        transport=transport,
        bottleneck_bps=section.bottleneck,
        arch=section.arch,
        nic=section.nic or links.nic or "virtio-net",
        sysctls=tuple((plain_name(name), value) for name, value in section.sysctl.items()),
    )
