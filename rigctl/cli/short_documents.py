"""Models of what `--json` of `expect`, `init --list`, `runs prune`, `tag`, `rig status` and `agent list` prints."""

from typing import Literal

from pydantic import Field

from rigctl.cli.json_model import Instant, Model


class ExpectedRate(Model):
    """The best application rate for a payload at a link rate."""

    protocol: Literal["tcp", "udp"]
    payload_bytes: int
    frame_bytes: int
    rate_mbps: float = Field(description="The link rate.")
    system_mbps: float = Field(description="rate x payload / frame.")
    link_mbps: float = Field(description="rate x payload / (frame + 20): with preamble and gap.")


class WindowRate(Model):
    """The rate of one TCP flow that its window allows."""

    window_bytes: int
    rtt_s: float
    goodput_mbps: float


class ExpectDocument(Model):
    """Best possible application rates, by arithmetic."""

    version: Literal[1] = 1
    mtu: int
    rates: list[ExpectedRate]
    windows: list[WindowRate] = Field(description="Of --window and --rtt.")


class BundledFile(Model):
    """A scenario or rig that comes with rigctl."""

    name: str
    title: str
    file: str


class InitListDocument(Model):
    """The bundled scenarios and rigs."""

    version: Literal[1] = 1
    scenarios: list[BundledFile]
    rigs: list[BundledFile]


class PrunedRun(Model):
    """A run that is old enough to go."""

    run: str
    started_at: Instant
    bytes: int | None = Field(description="Approximate size in the store.")


class KeptRun(Model):
    """A run that stays although it is as old."""

    run: str
    why: str


class PruneDocument(Model):
    """Runs that `runs prune` removes."""

    version: Literal[1] = 1
    removed: bool = Field(description="false: nothing was removed, --yes was not given.")
    runs: list[PrunedRun]
    kept: list[KeptRun]


class TagDocument(Model):
    """The tags of a run."""

    version: Literal[1] = 1
    run: str
    tags: dict[str, str]


class VirtualNode(Model):
    """How OpenSSH reaches a node of a virtual rig."""

    node: str
    address: str
    port: int
    user: str | None
    key: str | None
    known_hosts: str | None
    data_address: str | None
    data_interface: str | None
    rate_mbps: float | None = Field(description="null: not shaped.")
    mtu: int | None


class VirtualRig(Model):
    """A virtual rig that is up."""

    pid: int
    current: bool = Field(description="false: it was started from another version of the file.")
    nodes: list[VirtualNode] = Field(description="Empty where it is not current.")


class RigStatusDocument(Model):
    """State of a virtual rig."""

    version: Literal[1] = 1
    rig: str
    up: list[VirtualRig]


class AgentBinary(Model):
    """An agent that rigctl carries."""

    machine: str
    bytes: int
    sha256: str
    file: str


class AgentsDocument(Model):
    """The agents that rigctl carries."""

    version: Literal[1] = 1
    agents: list[AgentBinary]
