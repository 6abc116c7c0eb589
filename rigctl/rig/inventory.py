"""A rig, resolved: what the rooms above need to reach its nodes. Real or virtual, nobody can tell."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rigctl.records import Link

Virtual = Literal["namespaces", "loopback"]


@dataclass(frozen=True, slots=True)
class Node:
    """How to reach one node, and where its data flow."""

    name: str
    address: str  # for SSH
    link: Link
    port: int | None = None  # None: from ~/.ssh/config, else 22
    user: str | None = None
    key: Path | None = None
    known_hosts: Path | None = None  # None: the user's own
    jump: str | None = None  # [user@]host[:port]
    data_address: str | None = None  # None: the first global address of data_interface, else `address`
    data_interface: str | None = None  # None: found from data_address
    sudo: bool = False


@dataclass(frozen=True, slots=True)
class Rig:
    name: str
    title: str
    nodes: dict[str, Node]
    switch: str | None  # what the switch under test is called
    notes: str = ""
    virtual: Virtual | None = None
    ip_version: Literal[4, 6] = 4  # of the data addresses a virtual rig makes
    text: str = ""  # the rig file as read
    source: Path | None = None
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
