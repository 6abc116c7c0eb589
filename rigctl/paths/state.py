"""State of nodes and of a rig before traffic: filled by a check and by a run, judged by their rules."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rigctl.hosts.surroundings import Surroundings
from rigctl.paths.probing import PathState
from rigctl.records import Cell, Condition, Facts, HostSetting, RunPlan
from rigctl.rig.inventory import Node, Rig
from rigctl.switches.reading import PortCounters


@dataclass(frozen=True, slots=True)
class Failure:
    """Reason why a node cannot be used. `stage` is the step that failed: ssh, lock, agent or address."""

    stage: str
    text: str


@dataclass(slots=True)
class NodeState:
    """State of one node. None means unknown; in `failure`, `note`, `unrestored` and `deaf`, None means no problem."""

    node: Node
    facts: Facts = field(default_factory=dict)
    failure: Failure | None = None
    note: str | None = None  # why the agent is not in its usual folder
    unrestored: str | None = None  # host settings of an earlier run that could not be restored
    machine: str | None = None  # machine type of the agent, such as x86_64
    program: str | None = None  # path of the agent on a Windows node
    address: str | None = None  # data address
    clock_ahead_s: tuple[float, float] | None = None  # least and greatest lead over the controller's wall clock
    clock_error_s: float | None = None  # largest possible error of the clock offset that synchronizes flow starts
    deaf: str | None = None  # why the agent cannot listen on a data port
    refused: tuple[str, ...] = ()  # messages for settings of conditions that the node refuses
    around: Surroundings | None = None
    neighbours: Mapping[str, str | None] = field(default_factory=dict)  # MAC addresses in ARP or NDP, by peer's address

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def interface(self) -> str | None:
        """Name of the data interface; None if it was not found."""
        found: str | None = self.facts.get("interface")
        return found

    @property
    def as_root(self) -> bool | None:
        """True if the node's agent runs as root, on Windows as an administrator; None if unknown."""
        uid, administrator = self.facts.get("uid"), self.facts.get("administrator")
        return True if self.node.sudo or administrator else administrator if uid is None else uid == 0

    @property
    def is_freebsd(self) -> bool:
        return str(self.facts.get("kernel") or "").startswith("FreeBSD")

    @property
    def is_windows(self) -> bool:
        return str(self.facts.get("kernel") or "").startswith("Windows")

    def sysctl(self, name: str) -> str | None:
        value: str | None = (self.facts.get("sysctls") or {}).get(name)
        return value


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal of a node in a rehearsal, in the words of a run, and the numbers of the tests that it prevents."""

    node: str
    text: str
    tests: tuple[int, ...]
    unsure: tuple[int, ...] = ()  # tests whose condition may change what the node refuses


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Result of preparing tests as a run does. `done` tests of `wanted` were rehearsed, or others stood for them."""

    done: int
    wanted: int
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True, slots=True)
class RigState:
    """State of a rig, as the rules judge it. `plan` is None for a check without a scenario."""

    rig: Rig
    plan: RunPlan | None
    nodes: Mapping[str, NodeState]
    paths: Sequence[PathState] = ()
    ports: Mapping[str, PortCounters] = field(default_factory=dict)  # counters of each node's switch port, by node
    rehearsal: Rehearsal | None = None  # None: nothing was rehearsed
    explained: frozenset[tuple[str, str]] = frozenset()  # faulty paths whose cause another rule reports

    def reached(self) -> Iterator[NodeState]:
        """Yield the nodes whose facts are known."""
        return (state for state in self.nodes.values() if state.facts)

    def cells(self) -> tuple[Cell, ...]:
        return self.plan.cells if self.plan is not None else ()

    def conditions(self) -> tuple[Condition, ...]:
        return self.plan.conditions if self.plan is not None else ()

    def rate_bps(self, name: str) -> int | None:
        """Return a node's link rate in bit/s from the rig file, else as negotiated; None if unknown."""
        state = self.nodes[name]
        speed: int | None = state.facts.get("speed_bps")
        return state.node.link.rate_bps or speed

    def settings_of(self, cell: Cell) -> dict[str, str]:
        """Return the values of the sysctls that the condition of a test sets, by name."""
        return {str(setting.name): setting.value for setting in self._set_by(cell) if setting.kind == "sysctl"}

    def kinds_of(self, cell: Cell) -> set[str]:
        """Return the kinds of host settings that the condition of a test sets, such as "mtu" and "pause"."""
        return {setting.kind for setting in self._set_by(cell)}

    def _set_by(self, cell: Cell) -> Iterator[HostSetting]:
        own = (condition for condition in self.conditions() if condition.name == cell.condition)
        return (setting for condition in own for setting in condition.settings)
