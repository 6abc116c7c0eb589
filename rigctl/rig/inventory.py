"""Records of a rig, real or virtual: nodes, switches, and how rigctl reaches them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from rigctl.records import Link, Port, Trunk

Virtual = Literal["namespaces", "loopback", "machines"]
Arch = Literal["x86_64", "aarch64"]
Multicast = Literal["floods", "snoops", "queries"]
Nic = Literal["virtio-net", "e1000e"]
Transport = Literal["ssh", "openssh", "srun", "local", "netns"]
"""How rigctl reaches a node: by SSH, by ssh(1), in a step of a Slurm job, or on this machine, maybe in a namespace."""
BY_SSH: Final = ("ssh", "openssh")
"""Transports that use SSH."""
VIRTUAL_MTU: Final = 1500  # default MTU of the links of a virtual rig
DEFAULT_NIC: Final = "virtio-net"
CLI_PORT: Final = 22
POLL_S: Final = 1.0  # default time between two readings of a switch's counters


@dataclass(frozen=True, slots=True)
class Node:
    """A node: how rigctl reaches it, and which address and interface carry its data."""

    name: str
    address: str  # host of the SSH server, the node's name in Slurm, or a network namespace
    link: Link
    port: int | None = None  # SSH port; None: from ~/.ssh/config, or else 22
    user: str | None = None
    key: Path | None = None
    known_hosts: Path | None = None  # file of SSH host keys; None: ~/.ssh/known_hosts
    jump: str | None = None  # jump host: [user@]host[:port]
    data_address: str | None = None  # None: first global address of data_interface, or else `address`
    data_interface: str | None = None  # None: the interface that has data_address
    sudo: bool = False
    data_ports: tuple[int, int] | None = None  # first and last port on which receivers may listen; None: any port
    transport: Transport = "ssh"
    # The following fields are for virtual rigs only.
    configured: bool = True  # False: ignore ~/.ssh/config, because rigctl started the SSH server
    bottleneck_bps: int | None = None
    sysctls: tuple[tuple[str, str], ...] = ()
    disk_bps: int | None = None
    arch: Arch | None = None  # type of processor; None: the controller's type
    nic: Nic = DEFAULT_NIC
    patience: int = 1  # factor of all timeouts, because emulated machines are slow


@dataclass(frozen=True, slots=True)
class Secrets:
    """Credentials of a switch, read from the environment or from a file with mode 0600, never from a rig file."""

    community: str | None = field(default=None, repr=False)  # community for SNMP v2c
    user: str | None = None  # user for SNMP v3 or the command line
    auth: str | None = field(default=None, repr=False)  # SNMP v3: passphrase for authentication
    priv: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)  # password for the command line
    enable: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Snmp:
    """How rigctl reads a switch by SNMP. `auth` and `priv` are protocols of version 3, such as sha256 and aes128."""

    version: Literal["2c", "3"] = "2c"
    port: int = 161
    auth: str = "sha"
    priv: str = "aes"


SNMP: Final = Snmp()  # default SNMP settings, for a rig file with `snmp:` without a value


@dataclass(frozen=True, slots=True)
class Cli:
    """How rigctl reads a switch by its command line over SSH."""

    kind: Literal["cisco_ios", "dell_os9"]
    port: int = CLI_PORT
    known_hosts: Path | None = None  # file of SSH host keys; None: ~/.ssh/known_hosts


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch under test. Without an address, rigctl cannot read its counters."""

    key: str
    title: str
    mtu: int | None = None  # virtual rig: MTU of the switch's ports; None: largest MTU of the nodes
    address: str | None = None  # address of the management interface
    snmp: Snmp | None = None
    cli: Cli | None = None
    poll_s: float = POLL_S
    secrets: Secrets | None = None  # credentials; if None, rigctl.switches looks them up
    multicast: Multicast = "floods"  # virtual rig: what the switch does to multicast


@dataclass(frozen=True, slots=True)
class Rig:
    name: str
    title: str
    nodes: dict[str, Node]
    switch: str | None  # title of the switch under test
    notes: str = ""
    virtual: Virtual | None = None
    ip_version: Literal[4, 6] = 4  # IP version of the data addresses
    text: str = ""  # text of the rig file
    source: Path | None = None
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)  # names of nodes by group
    switches: dict[str, Switch] = field(default_factory=dict)  # switches by key; empty if the file has only `switch`
    ports: tuple[Port, ...] = ()
    trunk: Trunk | None = None
    routed: bool = False  # virtual rig: True if a router connects both switches
