"""Records of a rig, real or virtual: nodes, switches, and how to reach them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from rigctl.records import Link, Port, Trunk

Virtual = Literal["namespaces", "loopback", "machines"]
Arch = Literal["x86_64", "aarch64"]
Nic = Literal["virtio-net", "e1000e"]
Transport = Literal["ssh", "srun", "local"]
"""The transport to a node: SSH, a step of a Slurm job, or none for this machine (`remote.transport`)."""
VIRTUAL_MTU: Final = 1500
"""MTU of the links of a virtual rig whose file gives none."""
DEFAULT_NIC: Final = "virtio-net"
CLI_PORT: Final = 22
POLL_S: Final = 1.0
"""Time between two readings of a switch's counters."""


@dataclass(frozen=True, slots=True)
class Node:
    """How to reach one node, and where its data flow."""

    name: str
    address: str  # for its transport: of an SSH server, or Slurm's name of the node
    link: Link
    port: int | None = None  # None: from ~/.ssh/config, else 22
    user: str | None = None
    key: Path | None = None
    known_hosts: Path | None = None  # None: the user's own
    jump: str | None = None  # [user@]host[:port]
    data_address: str | None = None  # None: the first global address of data_interface, else `address`
    data_interface: str | None = None  # None: found from data_address
    sudo: bool = False
    data_ports: tuple[int, int] | None = None  # first and last port of its receivers; None: the kernel chooses
    transport: Transport = "ssh"
    # Virtual rigs only.
    configured: bool = True  # ~/.ssh/config applies; not to a server that rigctl made
    bottleneck_bps: int | None = None
    sysctls: tuple[tuple[str, str], ...] = ()
    arch: Arch | None = None  # None: the controller's
    nic: Nic = DEFAULT_NIC
    patience: int = 1  # factor on all timeouts: an emulated machine is slow


@dataclass(frozen=True, slots=True)
class Secrets:
    """Credentials of a switch, from the environment or a file with mode 0600 (rigctl.switches), never from the rig."""

    community: str | None = field(default=None, repr=False)  # SNMP v2c
    user: str | None = None  # for SNMP v3 or the command line
    auth: str | None = field(default=None, repr=False)  # SNMP v3 passphrases
    priv: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)  # for the command line
    enable: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Snmp:
    """How a switch is read by SNMP. `auth` and `priv` are protocols of version 3, as sha256 and aes128."""

    version: Literal["2c", "3"] = "2c"
    port: int = 161
    auth: str = "sha"
    priv: str = "aes"


SNMP: Final = Snmp()
"""SNMP settings of a switch whose rig file says only `snmp:`."""


@dataclass(frozen=True, slots=True)
class Cli:
    """How a switch is read by its command line over SSH."""

    kind: Literal["cisco_ios", "dell_os9"]
    port: int = CLI_PORT
    known_hosts: Path | None = None  # None: the user's own


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch under test. Without an address its counters are unknown."""

    key: str
    title: str
    mtu: int | None = None  # of its ports on a virtual rig; None: the largest of its nodes'
    address: str | None = None  # of its management interface
    snmp: Snmp | None = None
    cli: Cli | None = None
    poll_s: float = POLL_S
    secrets: Secrets | None = None  # None: looked up when the switch is asked


@dataclass(frozen=True, slots=True)
class Rig:
    name: str
    title: str
    nodes: dict[str, Node]
    switch: str | None  # title of the switch under test
    notes: str = ""
    virtual: Virtual | None = None
    ip_version: Literal[4, 6] = 4  # of the data addresses
    text: str = ""  # the rig file as read
    source: Path | None = None
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)  # node names by group name
    switches: dict[str, Switch] = field(default_factory=dict)  # by key; empty: one switch, called `switch`
    ports: tuple[Port, ...] = ()
    trunk: Trunk | None = None
