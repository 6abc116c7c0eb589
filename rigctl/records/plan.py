"""Records of a plan: the tests of a run, and the rig on which the run measures them."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from rigctl.records.cell import Cell, Condition

LEAST_SKEW_S: Final = 0.010
"""Start skew in s that is allowed in every repetition, even the shortest."""
MAX_LOSS: Final = 0.001
"""Default of the share of datagrams that may be lost at the highest rate (`max_loss` of a scenario)."""


@dataclass(frozen=True, slots=True)
class Retest:
    """Measure tests `repeat` more times if their repetitions vary by more than `variation`, a share of the mean."""

    variation: float
    repeat: int


@dataclass(frozen=True, slots=True)
class Until:
    """Measure tests, up to `most` times, until half the 95 % confidence interval is below `ci95` × the mean."""

    ci95: float
    most: int


class Operator(StrEnum):
    AT_LEAST = ">="
    ABOVE = ">"
    AT_MOST = "<="
    BELOW = "<"
    ONE_OF = "in"  # only for the limit


@dataclass(frozen=True, slots=True)
class Expectation:
    """An expectation of a scenario for some tests: a bound in the unit of the column, or a set of allowed words."""

    name: str  # name in the scenario, such as goodput
    column: str  # name of a column of rigctl.figures, such as goodput_mbps
    text: str  # text in the scenario: >= 930M per pair
    comparison: Operator
    tests: tuple[int, ...]  # numbers of the tests with this expectation
    bound: float | None = None  # None if `words` are expected
    words: tuple[str, ...] = ()
    per_pair: bool = False  # True: for each pair and direction; False: for the test


@dataclass(frozen=True, slots=True)
class Link:
    """A node's link to the switch, as in the rig file. If rate or MTU is None, the node reports it."""

    rate_bps: int | None
    mtu: int | None
    switch: str | None = None  # key of the switch in the rig file
    rtt_s: float | None = None  # requested round-trip time on a virtual rig; None: no delay


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a switch, connected to a node or, for the trunk, to another switch."""

    switch: str  # key of the switch in the rig file
    name: str  # interface name on the switch, such as GigabitEthernet1/1
    node: str | None = None
    peer: str | None = None  # key of the other switch


@dataclass(frozen=True, slots=True)
class Trunk:
    """The link between the rig's two switches. `rate_bps` is None if the rig file does not give the rate."""

    ends: tuple[str, str]  # keys of both switches in the rig file
    rate_bps: int | None


@dataclass(frozen=True, slots=True)
class Against:
    """Two variants in one run, measured in turn. `twins` are numbers of two tests that differ only in the setting."""

    setting: str  # name of the setting that differs, which may be "condition"
    before: str  # value of the setting in the first variant, as in a scenario
    after: str
    twins: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The request of a run, stored before the first test."""

    title: str
    notes: str
    scenario_name: str  # file name without folder and .yaml
    scenario_yaml: str  # text of the file, without `overrides`
    rig_name: str
    rig_yaml: str
    overrides: tuple[str, ...]  # options of the command line, such as "--set window=64K"
    repeat: int
    cells: tuple[Cell, ...]
    links: dict[str, Link] = field(default_factory=dict)  # links by the name of the node
    virtual: str | None = None  # kind: "namespaces", "loopback", "machines"; None: real hardware
    max_skew_s: float = LEAST_SKEW_S  # a repetition whose start skew is above this is invalid
    conditions: tuple[Condition, ...] = ()  # in the order of their tests
    ports: tuple[Port, ...] = ()  # ports of the switches that the rig file names
    trunk: Trunk | None = None
    retest: Retest | None = None  # if set, repetitions beyond `repeat` belong to the retest
    until: Until | None = None
    max_loss: float = MAX_LOSS  # share of datagrams, for the search for the highest rate
    ip_version: int = 4  # IP version of the data addresses in the rig file
    heads: tuple[tuple[str, str], ...] = ()  # columns of the results table: rigctl's title, title to print
    expectations: tuple[Expectation, ...] = ()
    against: Against | None = None

    @property
    def imported(self) -> bool:
        """Tell whether the run was imported from results of another program, and so has no scenario."""
        return not self.scenario_yaml

    @property
    def in_messages(self) -> bool:
        """Tell whether the tests of the run count messages."""
        return any(cell.in_messages for cell in self.cells)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return the distinct names of the nodes that the tests use, in the order of the tests."""
        return tuple(dict.fromkeys(node for cell in self.cells for node in cell.nodes))

    def condition_mtu(self, name: str | None) -> int | None:
        """Return the MTU that a condition gives every node; None if the nodes keep their MTU."""
        return next((condition.mtu for condition in self.conditions if condition.name == name), None)
