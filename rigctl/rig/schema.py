"""The sections of a rig file: their keys, types, and descriptions for editors."""

from typing import Annotated, Any, ClassVar, Final

from pydantic import BeforeValidator, ConfigDict, Field

from rigctl.rig import fields
from rigctl.rig.inventory import CLI_PORT, DEFAULT_NIC, POLL_S, SNMP
from rigctl.yamlfile import YamlSection
from rigctl.yamlfile.fields import Flag, LongText, Text, empty_if_none

_CREDENTIALS: Final = (
    "credentials come from the environment or a 0600 file, see docs/reference/switches.md. Leave it out."
)


def _section_or_none(section: type[YamlSection]) -> BeforeValidator:
    """Return a validator that reads a key without a value, such as `pi1:` or `snmp:`, as an empty section."""
    return BeforeValidator(empty_if_none, json_schema_input_type=section | None)


class LinkSection(YamlSection):
    rate: fields.LinkRate = Field(
        None, description="Rate of the link in bit/s, decimal. Default: read from the node.", examples=["1G"]
    )
    mtu: fields.Mtu = Field(
        None, description="MTU of the node's interface. Default: read from the node.", examples=[1500]
    )
    rtt: fields.Rtt = Field(
        None, description="Virtual rig: round-trip time to a node that has no rtt, up to 10 s.", examples=["20ms"]
    )
    nic: fields.NicName | None = Field(
        None, description=f"Virtual machines: network card. Default: {DEFAULT_NIC}.", examples=["e1000e"]
    )


SSH_ONLY: Final = ("port", "user", "key", "known_hosts", "jump")  # keys of a node that is reached by SSH


class AccessSection(YamlSection):
    """Keys for how rigctl reaches a node; `defaults` may have the same keys."""

    port: fields.SshPort = Field(None, description="SSH port. Default: from ~/.ssh/config, else 22.", examples=[22])
    user: fields.User = Field(
        None, description="SSH user. Default: from ~/.ssh/config, else your own.", examples=["pi"]
    )
    key: fields.FilePath = Field(
        None,
        description="Private key file; relative to the rig file. Default: ssh-agent and ~/.ssh/config.",
        examples=["~/.ssh/id_ed25519"],
    )
    known_hosts: fields.FilePath = Field(
        None,
        description="File of trusted host keys; relative to the rig file. Default: ~/.ssh/known_hosts.",
        examples=["known_hosts"],
    )
    jump: fields.Jump = Field(None, description="Jump host, [user@]host[:port].", examples=["admin@gate.lan:2222"])
    data_interface: fields.Interface = Field(
        None, description="Interface for the traffic. Default: the interface with data_address.", examples=["eth0"]
    )
    sudo: Flag = Field(False, description="Run the agent with sudo (without a password) on this node.")


class DefaultsSection(AccessSection):
    """Default keys for all nodes, and for the nodes of a group."""

    groups: Annotated[
        dict[fields.GroupName, Annotated[AccessSection, _section_or_none(AccessSection)]],
        BeforeValidator(empty_if_none),
    ] = Field(
        default_factory=dict,
        description="Default keys for the nodes of a group; they take precedence over those for all nodes.",
        examples=[{"left": {"user": "pi"}}],
    )


class NodeSection(AccessSection, LinkSection):
    """A node. Only `address` is required, and not on a virtual rig."""

    address: fields.Address = Field(
        None,
        description="Host name, address or ~/.ssh/config alias for SSH; for srun, Slurm's name of the node; for netns, "
        "the namespace.",
        examples=["pi1.lan"],
    )
    transport: fields.TransportName | None = Field(
        None, description="How rigctl reaches this node. Default: the transport of the rig.", examples=["local"]
    )
    data_address: fields.DataAddress = Field(
        None, description="IP address for the traffic. Default: the address of data_interface.", examples=["10.0.0.1"]
    )
    bottleneck: fields.LinkRate = Field(
        None,
        description="Virtual rig: rate of a bottleneck in the node's path, such as a slow firewall.",
        examples=["3G"],
    )
    disk: fields.LinkRate = Field(
        None,
        description="Virtual rig: rate in bit/s at which the node's disk reads and writes files in /var/tmp.",
        examples=["400M"],
    )
    sysctl: Annotated[dict[fields.SysctlName, fields.SysctlValue], BeforeValidator(empty_if_none)] = Field(
        {},
        description="Virtual rig: initial values of sysctls below net.",
        examples=[{"net.ipv4.tcp_rmem": "4096 16384 65536"}],
    )
    arch: fields.ArchName | None = Field(
        None, description="Virtual machines: type of processor. Default: the controller's type.", examples=["aarch64"]
    )
    data_ports: fields.DataPorts = Field(
        None, description="Ports of receivers at this node. Default: data_ports of the rig.", examples=["5200-5299"]
    )
    switch: fields.SwitchName | None = Field(
        None, description="The switch this node is connected to, a key of switches.", examples=["force10"]
    )
    switch_port: fields.SwitchPort = Field(
        None, description="The switch port of this node, by its name on the switch.", examples=["Gi1/1"]
    )


class SnmpSection(YamlSection):
    """How rigctl reads a switch by SNMP. Rig files cannot have credentials."""

    SECRET_ADVICE: ClassVar[str] = _CREDENTIALS
    version: fields.SnmpVersion = Field(SNMP.version, description="SNMP version: 2c, or 3 with user and passphrases.")
    port: fields.SnmpPort = Field(SNMP.port, description="UDP port.")
    auth: fields.SnmpAuth = Field(SNMP.auth, description="Version 3: how messages are authenticated.")
    priv: fields.SnmpPriv = Field(SNMP.priv, description="Version 3: how messages are encrypted.")


class CliSection(YamlSection):
    """How rigctl reads a switch by its command line over SSH. Rig files cannot have credentials."""

    SECRET_ADVICE: ClassVar[str] = _CREDENTIALS
    kind: fields.CliKind = Field(description="kind of command line: cisco_ios, or dell_os9 for Force10.")
    port: fields.CliPort = Field(CLI_PORT, description="SSH port.")
    known_hosts: fields.FilePath = Field(
        None, description="File of trusted host keys; relative to the rig file. Default: ~/.ssh/known_hosts."
    )


class SwitchEntry(YamlSection):
    """A switch of the rig."""

    SECRET_ADVICE: ClassVar[str] = _CREDENTIALS
    title: Text = Field("", description="Name for tables and pages. Default: its key.", examples=["Force10 E600"])
    mtu: fields.Mtu = Field(
        None, description="Virtual rig: MTU of the ports. Default: the largest MTU of its nodes.", examples=[9216]
    )
    multicast: fields.MulticastName = Field(
        "floods",
        description="Virtual rig: what the switch does to multicast. floods: it sends every group to every port. "
        "snoops: it snoops (IGMP, MLD), without a querier. queries: it snoops and is the querier.",
    )
    address: fields.Address = Field(None, description="Host name or address for management.", examples=["10.1.1.1"])
    snmp: Annotated[SnmpSection | None, _section_or_none(SnmpSection)] = Field(
        None, description="How rigctl reads the switch's counters by SNMP."
    )
    cli: CliSection | None = Field(None, description="How rigctl reads the switch's counters by its command line.")
    poll: fields.Poll = Field(POLL_S, description="Time between two readings of the counters.", examples=["1s"])


class TrunkSection(YamlSection):
    """The link between the two switches."""

    rate: fields.LinkRate = Field(
        None, description="The trunk's rate in bit/s, decimal. Default: unknown.", examples=["8G"]
    )
    router: Flag = Field(
        False, description="Virtual rig: a router between both switches, whose nodes are in subnets of their own."
    )
    ports: dict[fields.SwitchName, fields.PortNames] = Field(
        default_factory=dict,
        description="The trunk's ports on each switch; several if the trunk bundles links.",
        examples=[{"force10": "Te 0/1", "cisco": ["Te1/1", "Te1/2"]}],
    )


class SwitchSection(YamlSection):
    name: Text = Field(description="name of the switch under test.", examples=["GigaBlox"])


def _switch(value: object) -> object:
    return value if value is None or isinstance(value, dict) else {"name": value}


def _entry(value: object) -> object:
    """Return an entry of `switches` as a mapping; a text, as in `force10: Force10 E600`, is the title."""
    return {} if value is None else value if isinstance(value, dict | list) else {"title": value}


SOURCES_OF_NODES: Final = ("nodes", "slurm", "kselftest")
"""Keys of a rig file that give its nodes; a file has one of them."""


def _one_source_of_nodes(schema: dict[str, Any]) -> None:
    schema["required"] = [key for key in schema.get("required", []) if key != "nodes"]
    schema["oneOf"] = [{"required": [key]} for key in SOURCES_OF_NODES]


class RigFile(YamlSection):
    """A rig: the nodes around a switch under test, how to reach them, and their links."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, json_schema_extra=_one_source_of_nodes)

    title: Text = Field(
        "", description="Title in tables and pages, one line.", examples=["Four Raspberry Pis around a switch"]
    )
    notes: LongText = Field("", description="Notes for readers of the report.")
    switch: Annotated[SwitchSection | None, BeforeValidator(_switch, json_schema_input_type=str | SwitchSection)] = (
        Field(None, description="The switch under test: its name.", examples=["GigaBlox"])
    )
    switches: dict[
        fields.SwitchName,
        Annotated[SwitchEntry, BeforeValidator(_entry, json_schema_input_type=str | SwitchEntry | None)],
    ] = Field(
        default_factory=dict,
        description="The one or two switches under test by name, in place of the key switch.",
        json_schema_extra={"additionalProperties": False, "minProperties": 1, "maxProperties": 2},
    )
    trunk: TrunkSection | None = Field(None, description="The link between the two switches.")
    groups: dict[fields.GroupName, fields.Members] = Field(
        default_factory=dict,
        description="Groups of nodes by name, for the pairs of scenarios.",
        examples=[{"left": "node[001..012]"}],
    )
    virtual: fields.VirtualName | None = Field(
        None, description="Kind of virtual nodes that rigctl creates on this machine. Default: real hardware."
    )
    transport: fields.TransportName = Field(
        "ssh",
        description="How rigctl reaches the nodes: ssh, openssh (ssh(1) always), srun in a Slurm allocation, local for "
        "this machine, or netns for network namespaces of this machine.",
    )
    slurm: Annotated[NodeSection | None, _section_or_none(NodeSection)] = Field(
        None,
        description="Use the nodes of the Slurm allocation instead of `nodes`, each with these keys.",
        examples=[{"data_interface": "ib0"}],
    )
    kselftest: Annotated[NodeSection | None, _section_or_none(NodeSection)] = Field(
        None,
        description="Use the two ends that NETIF, LOCAL_V4, REMOTE_V4, REMOTE_TYPE and so on name, as for the kernel's "
        "drivers/net selftests, instead of `nodes`; each has these keys.",
        examples=[{"rate": "25G"}],
    )
    ip_version: fields.IpVersion = Field(4, description="IP version of the addresses of a virtual rig.")
    data_ports: fields.DataPorts = Field(
        None,
        description="Ports that receivers listen on, for firewalls. Default: the kernel chooses.",
        examples=["5200-5299"],
    )
    links: LinkSection = Field(default_factory=LinkSection, description="Default values for the links of all nodes.")
    defaults: Annotated[DefaultsSection | None, _section_or_none(DefaultsSection)] = Field(
        None,
        description="Default keys for how rigctl reaches nodes.",
        examples=[{"user": "pi", "data_interface": "eth0"}],
    )
    nodes: dict[fields.NodeKey, Annotated[NodeSection, _section_or_none(NodeSection)]] = Field(
        description="the nodes by name, as in pi1: {address: pi1.lan}; node[01..12] stands for twelve.",
        json_schema_extra={
            "additionalProperties": False,
            # A rig has at least two nodes, or one range, which stands for several.
            "anyOf": [{"minProperties": 2}, {"minProperties": 1, "propertyNames": {"pattern": r"\["}}],
        },
    )
