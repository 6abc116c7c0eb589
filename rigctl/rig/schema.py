"""The rig file: its shape, its mistakes, and the `Rig` it becomes."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from rigctl import resources
from rigctl.records import Link
from rigctl.rig.fields import (
    NODE_NAME,
    Address,
    DataAddress,
    FieldError,
    FilePath,
    Flag,
    Interface,
    IpVersion,
    Jump,
    LongText,
    Mtu,
    NodeName,
    Port,
    Rate,
    Text,
    User,
    shown,
)
from rigctl.rig.inventory import Node, Rig, Virtual
from rigctl.yamlfile import Document, Mistake, MistakesError, find, find_bundled, read_document, suggestion, validated
from rigctl.yamlfile.mistakes import MOST_FOUND, in_order

# What a node of a virtual rig gets from rigctl itself and may not set.
SSH_FIELDS: Final = ("address", "port", "user", "key", "known_hosts", "jump", "sudo", "data_address", "data_interface")


class _Section(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)


class LinkSection(_Section):
    rate: Rate = Field(None, description="The link's rate in bit/s, decimal. Left out: ask the node.", examples=["1G"])
    mtu: Mtu = Field(None, description="The MTU of the node's interface. Left out: ask the node.", examples=[1500])


class NodeSection(LinkSection):
    """One node. Every key may be left out but `address`, and that one too on a virtual rig."""

    address: Address = Field(
        None, description="Host name, address or ~/.ssh/config alias for SSH.", examples=["pi1.lan"]
    )
    port: Port = Field(None, description="SSH port. Left out: from ~/.ssh/config, else 22.", examples=[22])
    user: User = Field(None, description="SSH user. Left out: from ~/.ssh/config, else your own.", examples=["pi"])
    key: FilePath = Field(
        None,
        description="Private key file; relative to the rig file. Left out: ssh-agent and ~/.ssh/config.",
        examples=["~/.ssh/id_ed25519"],
    )
    known_hosts: FilePath = Field(
        None,
        description="File of trusted host keys; relative to the rig file. Left out: ~/.ssh/known_hosts.",
        examples=["known_hosts"],
    )
    jump: Jump = Field(None, description="Jump host, [user@]host[:port].", examples=["admin@gate.lan:2222"])
    data_address: DataAddress = Field(
        None, description="IP address the traffic uses. Left out: that of data_interface.", examples=["10.0.0.1"]
    )
    data_interface: Interface = Field(
        None, description="Interface the traffic uses. Left out: found from data_address.", examples=["eth0"]
    )
    sudo: Flag = Field(False, description="Run the agent with sudo (without a password) on this node.")


class SwitchSection(_Section):
    name: Text = Field(description="what the switch under test is called.", examples=["GigaBlox"])


def _switch(value: object) -> object:
    return value if value is None or isinstance(value, dict) else {"name": value}


def _node(value: object) -> object:
    return {} if value is None else value  # `pi1:` alone is a node with nothing to say


class RigFile(_Section):
    """A rig: the nodes around a switch under test, how to reach them, and their links."""

    title: Text = Field(
        "", description="One line for tables and pages.", examples=["Four Raspberry Pis around a switch"]
    )
    notes: LongText = Field("", description="Anything a reader of the report should know.")
    switch: Annotated[SwitchSection | None, BeforeValidator(_switch, json_schema_input_type=str | SwitchSection)] = (
        Field(None, description="The switch under test: its name.", examples=["GigaBlox"])
    )
    virtual: Annotated[Virtual | None, BeforeValidator(lambda value: _one_of("virtual", value, get_args(Virtual)))] = (
        Field(None, description="Nodes that rigctl makes on this machine. Left out: real hardware.")
    )
    ip_version: IpVersion = Field(4, description="IP version of the addresses a virtual rig makes.")
    links: LinkSection = Field(
        default_factory=LinkSection, description="What holds for every node that does not say otherwise."
    )
    nodes: dict[NodeName, Annotated[NodeSection, BeforeValidator(_node, json_schema_input_type=NodeSection | None)]] = (
        Field(
            description="the nodes by name, as in pi1: {address: pi1.lan}.",
            json_schema_extra={"additionalProperties": False, "minProperties": 2},
        )
    )


def load_rig(reference: str, relative_to: Path | None = None) -> Rig:
    """The rig in a file or of a bundled name. Raises `InputError`; `MistakesError` with all mistakes of the file.

    `relative_to` is the folder a relative path starts from; None: the working folder.
    """
    path = find(reference, what="rig", bundled=bundled_folder(), relative_to=relative_to)
    return rig_of(read_document(path), path)


def bundled_folder() -> Path:
    return resources.scenarios() / "rigs"


def bundled_rigs() -> list[str]:
    """Names of the rigs that come with rigctl."""
    return list(find_bundled(bundled_folder()))


def rig_of(document: Document, path: Path) -> Rig:
    """The rig that a document describes; `path` is its file, for paths in it. Raises `MistakesError`."""
    model, found = validated(document, RigFile)
    found += islice(mistakes(document, path.parent), MOST_FOUND)
    if found or model is None:
        raise MistakesError(in_order(found))
    return Rig(
        name=path.stem,
        title=model.title or path.stem,
        nodes={name: _resolved(name, section, model.links, path.parent) for name, section in model.nodes.items()},
        switch=model.switch.name if model.switch else None,
        notes=model.notes,
        virtual=model.virtual,
        ip_version=model.ip_version,
        text=document.text,
        source=path,
    )


def mistakes(document: Document, folder: Path) -> Iterator[Mistake]:
    """What the shape cannot say: nodes that fit the kind of rig, key files that are there."""
    data = document.data
    nodes = data.get("nodes")
    if not isinstance(nodes, dict):
        return
    if not nodes:
        yield document.mistake(("nodes",), "nodes: the rig has none. Name at least two, as in pi1: {address: pi1.lan}.")
    elif len(nodes) == 1:
        yield document.mistake(("nodes",), "nodes: there is only one. A pair needs two.")
    virtual = data.get("virtual")
    if virtual is None and "ip_version" in data:
        yield document.mistake(
            ("ip_version",), "ip_version: is for virtual rigs. The data addresses of real nodes say it.", at_key=True
        )
    places: dict[tuple[Any, ...], str] = {}
    for name, given in nodes.items():
        section = {} if given is None else given
        if not isinstance(section, dict):
            continue  # the schema has told
        yield from _node_mistakes(document, name, section, virtual, folder)
        place = (section.get("address"), section.get("port"), section.get("jump"))
        if isinstance(section.get("address"), str) and not any(isinstance(part, list | dict) for part in place):
            first = places.setdefault(place, name)
            if first != name:
                what = f'node "{name}": has the same address as "{first}". One host is one node.'
                yield document.mistake(("nodes", name, "address"), what)


def _node_mistakes(
    document: Document, name: str, section: dict[str, Any], virtual: object, folder: Path
) -> Iterator[Mistake]:
    path = ("nodes", name)
    if virtual is None and "address" not in section and NODE_NAME.fullmatch(name):
        what = f'node "{name}": "address" is missing. It says where SSH reaches the node, as in address: {name}.lan.'
        yield document.mistake(path, what, at_key=True)
    if virtual is not None:
        for key in SSH_FIELDS:
            if key in section:
                what = f'node "{name}": "{key}" is for real nodes; rigctl makes those of a virtual rig. Leave it out.'
                yield document.mistake((*path, key), what, at_key=True)
    key_file = section.get("key")
    if virtual is None and isinstance(key_file, str) and key_file.strip():
        where = _expanded(Path(key_file.strip()), folder)
        if not where.is_file():
            yield document.mistake((*path, "key"), f'key "{key_file}": there is no file {where}.')


def _resolved(name: str, section: NodeSection, links: LinkSection, folder: Path) -> Node:
    rate = section.rate if section.rate is not None else links.rate
    mtu = section.mtu if section.mtu is not None else links.mtu
    return Node(
        name=name,
        address=section.address or "127.0.0.1",  # a virtual node: rigctl.virtual fills in the real one
        link=Link(rate, mtu),
        port=section.port,
        user=section.user,
        key=_expanded(section.key, folder) if section.key else None,
        known_hosts=_expanded(section.known_hosts, folder) if section.known_hosts else None,
        jump=section.jump,
        data_address=section.data_address,
        data_interface=section.data_interface,
        sudo=section.sudo,
    )


def _expanded(path: Path, folder: Path) -> Path:
    """`path` with ~ as the home folder, relative to the rig file's folder."""
    try:
        return folder / path.expanduser()
    except RuntimeError:  # no such user's home: the plain text is what the message then shows
        return folder / path


def _one_of(name: str, value: object, known: tuple[str, ...]) -> object:
    if value not in known:
        raise FieldError(f"{name} {shown(value)}: unknown.{suggestion(str(value), known)}")
    return value
