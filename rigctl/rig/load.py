"""Load a rig file, with the values of `--rig-set`, as a `Rig`; or raise all mistakes in the file at once."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Literal

from rigctl.base import resources
from rigctl.records import Link, Port, Trunk
from rigctl.rig.allocation import with_allocation
from rigctl.rig.fields import expand_path, is_address, plain_name
from rigctl.rig.inventory import DEFAULT_NIC, VIRTUAL_MTU, Cli, Node, Rig, Snmp, Switch
from rigctl.rig.kselftest import with_endpoints
from rigctl.rig.mistakes import rig_mistakes
from rigctl.rig.ranges import expand_names
from rigctl.rig.schema import SOURCES_OF_NODES, NodeSection, RigFile, SwitchEntry
from rigctl.rig.shorthands import with_defaults, with_options, with_ranges, without_repeats
from rigctl.yamlfile import MOST_FOUND, MistakesError, YamlDocument, sort_mistakes
from rigctl.yamlfile.read import find_bundled, find_file, read_document
from rigctl.yamlfile.validate import validate


def load_rig(reference: str, relative_to: Path | None = None, sets: Sequence[str] = ()) -> Rig:
    """Return the rig of a file or a bundled name. Raise `InputError` with all mistakes of the file.

    A relative path is relative to `relative_to`, or else to the working folder. `sets` are values of `--rig-set`, each
    a PATH=VALUE such as `trunk.rate=10G`.
    """
    path = find_file(reference, what="rig", bundled=rigs_folder(), relative_to=relative_to)
    return rig_of(read_document(path), path, sets)


def rigs_folder() -> Path:
    """Return the folder of the rigs that come with rigctl."""
    return resources.scenarios() / "rigs"


def rig_names() -> list[str]:
    """Return the names of the rigs that come with rigctl."""
    return list(find_bundled(rigs_folder()))


def rig_of(document: YamlDocument, path: Path, sets: Sequence[str] = ()) -> Rig:
    """Return the rig that a document describes; `path` is its file. Raise `MistakesError` with all mistakes."""
    document, wrong_options = with_options(document, [text for text in sets if _is_ahead(text)])
    document, of_allocation = with_allocation(document)
    document, of_environment = with_endpoints(document)
    document = with_ranges(document)
    document, more_wrong_options = with_options(document, [text for text in sets if not _is_ahead(text)])
    try:
        model = validate(document, RigFile, [*wrong_options, *more_wrong_options])
        document, model, wrong = with_defaults(document, model)
        if found := [*wrong, *islice(rig_mistakes(document, model, path.parent), MOST_FOUND)]:
            raise MistakesError(sort_mistakes(found))
    except MistakesError as error:
        raise MistakesError(without_repeats(error.mistakes)) from None
    switches = {key: switch_of(key, entry, path.parent) for key, entry in model.switches.items()}
    titles = " and ".join(switch.title for switch in switches.values())
    ends = list(switches)
    only = ends[0] if len(ends) == 1 else None
    return Rig(
        name=path.stem,
        title=model.title or path.stem,
        nodes={name: _node_of(name, section, model, path.parent, only) for name, section in model.nodes.items()},
        switch=model.switch.name if model.switch else titles or None,
        notes="\n".join(filter(None, (model.notes.strip(), of_allocation, of_environment))),
        virtual=model.virtual,
        ip_version=_ip_version(model),
        text=document.text,
        source=path,
        groups=_groups(model),
        switches=switches,
        ports=_ports(model),
        trunk=None if model.trunk is None else Trunk((ends[0], ends[1]), model.trunk.rate),
        routed=model.trunk is not None and model.trunk.router,
    )


def _is_ahead(option: str) -> bool:
    """Tell whether a `--rig-set` PATH=VALUE sets what nodes are made of: the transport, or a key of such a section."""
    key = option.split("=", maxsplit=1)[0].split(".", maxsplit=1)[0].strip()
    return key == "transport" or (key in SOURCES_OF_NODES and key != "nodes")


def _ip_version(model: RigFile) -> Literal[4, 6]:
    """Return the IP version of the data addresses: the key of a virtual rig; else 6 if all known addresses are IPv6."""
    if model.virtual is not None:
        return model.ip_version
    # The IP addresses of host names and interfaces are unknown until rigctl connects. Of an interface with addresses of
    # both versions, that of the version by which the node is reached is taken.
    given = [node.data_address or node.address for node in model.nodes.values()]
    literal = [address for address in given if address is not None and is_address(address)]
    return 6 if literal and all(":" in address for address in literal) else 4


def _node_of(name: str, section: NodeSection, model: RigFile, folder: Path, only_switch: str | None) -> Node:
    links, transport = model.links, section.transport or model.transport
    rate = section.rate if section.rate is not None else links.rate
    mtu = section.mtu if section.mtu is not None else links.mtu
    if mtu is None and model.virtual in ("namespaces", "machines"):
        mtu = VIRTUAL_MTU
    return Node(
        name=name,
        # For a virtual node, rigctl.virtual replaces this address.
        address=section.address or (name if transport == "srun" else "127.0.0.1"),
        link=Link(rate, mtu, section.switch or only_switch, section.rtt if section.rtt is not None else links.rtt),
        port=section.port,
        user=section.user,
        key=expand_path(section.key, folder) if section.key else None,
        known_hosts=expand_path(section.known_hosts, folder) if section.known_hosts else None,
        jump=section.jump,
        data_address=section.data_address,
        data_interface=section.data_interface,
        sudo=section.sudo,
        data_ports=section.data_ports or model.data_ports,
        transport=transport,
        bottleneck_bps=section.bottleneck,
        disk_bps=section.disk,
        arch=section.arch,
        nic=section.nic or links.nic or DEFAULT_NIC,
        sysctls=tuple((plain_name(name), value) for name, value in section.sysctl.items()),
    )


def switch_of(key: str, entry: SwitchEntry, folder: Path) -> Switch:
    """Return the record of an entry of `switches`. Its paths are relative to `folder`, the folder of the rig file."""
    snmp = cli = None
    if entry.snmp is not None:
        snmp = Snmp(entry.snmp.version, entry.snmp.port, entry.snmp.auth, entry.snmp.priv)
    if entry.cli is not None:
        known_hosts = expand_path(entry.cli.known_hosts, folder) if entry.cli.known_hosts else None
        cli = Cli(entry.cli.kind, entry.cli.port, known_hosts)
    return Switch(key, entry.title or key, entry.mtu, entry.address, snmp, cli, entry.poll, multicast=entry.multicast)


def _ports(model: RigFile) -> tuple[Port, ...]:
    only = next(iter(model.switches), None)
    ports: list[Port] = []
    for name, node in model.nodes.items():
        switch = node.switch or only
        if switch is not None and node.switch_port is not None:
            ports.append(Port(switch, node.switch_port, node=name))
    for switch, names in (model.trunk.ports if model.trunk is not None else {}).items():
        peer = next(other for other in model.switches if other != switch)
        ports += (Port(switch, name, peer=peer) for name in names)
    return tuple(ports)


def _groups(model: RigFile) -> dict[str, tuple[str, ...]]:
    return {
        group: tuple(name for member in given for name in expand_names(member)) for group, given in model.groups.items()
    }
