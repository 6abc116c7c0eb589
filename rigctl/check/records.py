"""Records of a check: gathering fills them, and the rules in `check.rules` judge them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rigctl.check.paths import PathState
from rigctl.hosts.surroundings import Surroundings
from rigctl.records import Cell, Facts, HostSetting, RunPlan
from rigctl.rig.inventory import Node, Rig
from rigctl.switches.reading import PortCounters


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a node cannot be used. `stage`: ssh, lock, agent or address."""

    stage: str
    text: str


@dataclass(slots=True)
class NodeState:
    """One node. None: not known."""

    node: Node
    facts: Facts = field(default_factory=dict)
    failure: Failure | None = None
    note: str | None = None  # on the folder of the agent
    unrestored: str | None = None  # host settings of an earlier run that could not be put back
    machine: str | None = None  # of its agent
    address: str | None = None  # of its data
    clock_ahead_s: tuple[float, float] | None = None  # wall clock minus the controller's, lowest and highest
    clock_error_s: float | None = None  # error of the clock that starts the flows
    deaf: str | None = None  # why no port can be listened on
    refused: tuple[str, ...] = ()  # of the scenario's conditions, in the words of a run
    around: Surroundings | None = None
    neighbours: Mapping[str, str | None] = field(default_factory=dict)  # the MAC addresses that it sends to, by peer

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def interface(self) -> str | None:
        """Name of the data interface that was found."""
        found: str | None = self.facts.get("interface")
        return found

    @property
    def as_root(self) -> bool | None:
        """True if its agent has root's rights; None: unknown."""
        uid = self.facts.get("uid")
        return True if self.node.sudo else None if uid is None else uid == 0

    @property
    def is_freebsd(self) -> bool:
        return str(self.facts.get("kernel") or "").startswith("FreeBSD")

    def sysctl(self, name: str) -> str | None:
        value: str | None = (self.facts.get("sysctls") or {}).get(name)
        return value


@dataclass(frozen=True, slots=True)
class RigState:
    """Everything the rules look at. `plan` is None for a check without a scenario."""

    rig: Rig
    plan: RunPlan | None
    nodes: Mapping[str, NodeState]
    paths: Sequence[PathState] = ()
    ports: Mapping[str, PortCounters] = field(default_factory=dict)  # of the switches, by the node behind them
    explained: frozenset[tuple[str, str]] = frozenset()  # paths with a fault whose cause another rule reports

    def reached(self) -> Iterator[NodeState]:
        """Yield the nodes whose facts are known."""
        return (state for state in self.nodes.values() if state.facts)

    def cells(self) -> tuple[Cell, ...]:
        return self.plan.cells if self.plan is not None else ()

    def rate_bps(self, name: str) -> int | None:
        """Return the rate of a node's link in bit/s: from the rig file, else as negotiated."""
        state = self.nodes[name]
        speed: int | None = state.facts.get("speed_bps")
        return state.node.link.rate_bps or speed

    def settings_of(self, cell: Cell) -> dict[str, str]:
        """Return the sysctls that the condition of `cell` sets."""
        return {str(setting.name): setting.value for setting in self._set_by(cell) if setting.kind == "sysctl"}

    def kinds_of(self, cell: Cell) -> set[str]:
        """Return the kinds of settings that the condition of `cell` has: "mtu", "pause"."""
        return {setting.kind for setting in self._set_by(cell)}

    def _set_by(self, cell: Cell) -> Iterator[HostSetting]:
        conditions = self.plan.conditions if self.plan is not None else ()
        return (own for condition in conditions if condition.name == cell.condition for own in condition.settings)
