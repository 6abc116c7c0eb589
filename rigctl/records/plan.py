"""Records of a plan: what a run measures, and on which rig."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from rigctl.records.cell import Cell, Condition

LEAST_SKEW_S: Final = 0.010
"""Start skew that a repetition may always have, however short it is."""
MAX_LOSS: Final = 0.001
"""Share of datagrams that may be lost at the highest rate, unless a scenario has another."""


@dataclass(frozen=True, slots=True)
class Retest:
    """Cells whose repetitions vary by more than `variation`, a share of the mean, are measured `repeat` times more."""

    variation: float
    repeat: int


@dataclass(frozen=True, slots=True)
class Until:
    """Cells are measured until half the 95 % confidence interval is below `ci95`, a share of the mean: `most` times."""

    ci95: float
    most: int


class Operator(StrEnum):
    AT_LEAST = ">="
    ABOVE = ">"
    AT_MOST = "<="
    BELOW = "<"
    ONE_OF = "in"  # of the limit


@dataclass(frozen=True, slots=True)
class Expectation:
    """An expectation of a scenario for some tests: a bound of a figure, in its column's unit, or one of some words."""

    name: str  # in the scenario, as goodput
    column: str  # of rigctl.figures, as goodput_mbps
    text: str  # as given: >= 930M per pair
    comparison: Operator
    tests: tuple[int, ...]  # Cell.number of those it holds for
    bound: float | None = None  # None: of words
    words: tuple[str, ...] = ()
    per_pair: bool = False  # of each pair and direction by itself; False: of the test as a whole


@dataclass(frozen=True, slots=True)
class Link:
    """A node's link to the switch. `None`: the rig file does not say; rate and MTU the node must be asked."""

    rate_bps: int | None
    mtu: int | None
    switch: str | None = None  # its key in the rig file
    rtt_s: float | None = None  # on a virtual rig: requested round-trip time; None: no delay


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a switch and what is behind it: a node, or (the trunk) another switch."""

    switch: str  # its key in the rig file
    name: str  # interface name as the switch has it, as GigabitEthernet1/1
    node: str | None = None
    peer: str | None = None  # the other switch's key


@dataclass(frozen=True, slots=True)
class Trunk:
    """The link between the rig's two switches. `rate_bps` None: the rig file does not say."""

    ends: tuple[str, str]  # keys of the switches
    rate_bps: int | None


@dataclass(frozen=True, slots=True)
class Against:
    """Two variants in one run, measured in turn. `twins`: numbers of cells that differ in the setting only."""

    setting: str  # the name of an axis, "condition" among them
    before: str  # its value, and that of `after`: the setting's values as a scenario has them
    after: str
    twins: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The request of a run, stored with it before the first cell."""

    title: str
    notes: str
    scenario_name: str  # as given on the command line, without folder and .yaml
    scenario_yaml: str  # the text as read, with overrides named in `overrides`
    rig_name: str
    rig_yaml: str
    overrides: tuple[str, ...]  # as given: "--set window=64K"
    repeat: int
    cells: tuple[Cell, ...]
    links: dict[str, Link] = field(default_factory=dict)  # by node name
    virtual: str | None = None  # "namespaces", "loopback", "machines"; None: real hardware
    max_skew_s: float = LEAST_SKEW_S  # a repetition whose start skew is above this is invalid
    conditions: tuple[Condition, ...] = ()  # in the order of their cells
    ports: tuple[Port, ...] = ()  # of the rig's switches, as far as the rig file names them
    trunk: Trunk | None = None
    retest: Retest | None = None  # repetitions beyond `repeat` are then those of the retest
    until: Until | None = None
    max_loss: float = MAX_LOSS  # share of datagrams, of the search for the highest rate
    ip_version: int = 4  # of the data addresses, as the rig file has them
    heads: tuple[tuple[str, str], ...] = ()  # of columns of the results table: rigctl's title, the one to print
    expectations: tuple[Expectation, ...] = ()
    against: Against | None = None

    @property
    def imported(self) -> bool:
        """Tell whether the run was imported from another program's results: rigctl had no scenario to measure it."""
        return not self.scenario_yaml

    @property
    def in_messages(self) -> bool:
        """Tell whether its cells count messages: a scenario has one test."""
        return any(cell.in_messages for cell in self.cells)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return the names of the nodes that its cells use, each once, in the order of the cells."""
        return tuple(dict.fromkeys(node for cell in self.cells for node in cell.nodes))

    def condition_mtu(self, name: str | None) -> int | None:
        """Return the MTU that a condition gives every node; None: the nodes' own."""
        return next((condition.mtu for condition in self.conditions if condition.name == name), None)
