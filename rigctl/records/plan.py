"""Define records of a request: pairs of nodes, conditions (host settings), tests (`Cell`), and the plan of a run."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Final, Literal, NamedTuple, TypeVar

from rigctl.base.errors import join_names
from rigctl.settings import (
    CONGESTION,
    NO_SETTINGS,
    SETTINGS,
    SIZE,
    UNJOINED,
    WINDOW,
    WINDOW_TOTAL,
    Direction,
    Setting,
    Settings,
)
from rigctl.settings.kinds import KINDS, Kind

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Pair:
    """A source node and a destination node, by their names in the rig file."""

    source: str
    destination: str

    def __str__(self) -> str:
        return f"{self.source} -> {self.destination}"


class Stream(NamedTuple):
    """The flows of one pair in one direction."""

    pair: Pair
    direction: Direction  # direction of the data: FORWARD or REVERSE

    @property
    def sender(self) -> str:
        """Return the name of the node that sends the data."""
        return self.pair.source if self.direction is Direction.FORWARD else self.pair.destination

    @property
    def receiver(self) -> str:
        return self.pair.destination if self.direction is Direction.FORWARD else self.pair.source

    @property
    def ends(self) -> tuple[str, str]:
        """Return the names of the sender and the receiver."""
        return self.sender, self.receiver

    def __str__(self) -> str:
        return f"{self.pair.source} {'→' if self.direction is Direction.FORWARD else '←'} {self.pair.destination}"


@dataclass(frozen=True, slots=True)
class HostSetting:
    """One host setting of a condition, with keys of the agent's command `set` (docs/reference/agent-protocol.md)."""

    kind: str  # a key of a condition, such as "mtu", "offload" or "rings"
    value: str
    name: str | None = None  # name of a sysctl (net.ipv4.tcp_rmem), offload (gro) or ring (rx)

    @property
    def label(self) -> str:
        """Return the unique name of a setting: `mtu`, `net.ipv4.tcp_sack`, `gro`, `rings rx`."""
        if self.kind in ("sysctl", "offload"):
            return self.name or self.kind
        return self.kind if self.name is None else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Condition:
    """Host settings of all nodes during a group of tests. Agents restore the old values afterwards."""

    name: str
    settings: tuple[HostSetting, ...] = ()
    # True: the requested window is the *initial* size of buffers (middle value of tcp_rmem and tcp_wmem), which the
    # kernel resizes. False: the agent sets SO_SNDBUF and SO_RCVBUF, which fixes the size (tcp(7), tcp_moderate_rcvbuf).
    resize: bool = False

    @property
    def mtu(self) -> int | None:
        """Return the MTU that the condition gives every node; None if the nodes keep their MTU."""
        return next((int(setting.value) for setting in self.settings if setting.kind == "mtu"), None)


@dataclass(frozen=True, slots=True)
class Cell:
    """A test: one combination of the settings that a scenario varies. It is one row of the results table.

    `cell[MSS]` is the requested value of a setting; None if not requested: then the default of the node applies.
    """

    number: int  # number of the test, from 1, in the scenario's order
    test: str  # a key of rigctl.settings.kinds.KINDS, such as "tcp"
    pairs: tuple[Pair, ...]
    duration_s: float  # time for which senders send, `omit_s` included
    omit_s: float  # time at the start that results leave out
    parallel: int  # number of flows per pair and direction
    direction: Direction = Direction.FORWARD
    condition: str | None = None  # name of a condition (RunPlan.conditions); None: no host settings
    capture: bool = False  # True: nodes capture the headers of the flows' frames
    bin_us: int | None = None  # streams: receivers count bytes per bin of this width; None: no bins
    transport: str = "tcp"  # "tcp" or "udp"; the test "pingpong" takes either
    message_bytes: int | None = None  # payload of a message, file or datagram
    settings: Settings = NO_SETTINGS  # requested values of settings that have no field here
    resize: bool = False  # copy of Condition.resize
    folder: str | None = None  # folder on every node for the files of file transfers
    engine: str = "agent"  # program that makes and measures the traffic: a key of rigctl.settings.kinds.CAPABILITIES
    latency_ms: int | None = None  # streams: interval between round-trip probes; None: no probes
    traffic_class: str | None = None  # name of a traffic class of the scenario (`classes`), if any
    group: int | None = None  # number of the first of the tests measured together; None: measured alone
    start_s: float = 0.0  # when the flows start, in s after the start of the test; only classes start later
    stop_s: float | None = None  # when the flows stop, in s after the start of the test; None: at its end
    frame_ns: int | None = None  # bursts: time for which the slowest link carries a datagram; None: unknown
    part: str | None = None  # name of the part of the scenario (`parts`); None: the scenario has no parts

    def __getitem__(self, setting: Setting[_T]) -> _T:
        """Return the requested value of a setting; None if not requested."""
        if setting.stored_as not in _FIELDS:
            return self.settings[setting]
        value: _T = getattr(self, setting.stored_as)
        return value

    @property
    def kind(self) -> Kind:
        return KINDS[self.test]

    @property
    def first(self) -> int:
        """Return the number of the first of the tests measured together; of this test if it is measured alone."""
        return self.number if self.group is None else self.group

    @property
    def in_messages(self) -> bool:
        """Tell whether the test counts messages; other tests count bytes in a measurement interval."""
        return self.kind.in_messages

    @property
    def span_s(self) -> tuple[float, float]:
        """Return when the flows start and stop, in s after the start of the test."""
        return self.start_s, self.duration_s if self.stop_s is None else self.stop_s

    @property
    def sending_s(self) -> float:
        """Return for how long the flows send, `omit_s` included."""
        start_s, stop_s = self.span_s
        return stop_s - start_s

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return the names of all nodes in the pairs of the test, each once, in the order of the pairs."""
        return tuple(dict.fromkeys(node for pair in self.pairs for node in (pair.source, pair.destination)))

    @property
    def streams(self) -> tuple[Stream, ...]:
        """Return the streams of the test: each pair with each direction of data, in the scenario's order."""
        return streams_of(self.pairs, self.direction)

    @property
    def unjoined(self) -> tuple[Stream, ...]:
        """Return the streams of a multicast test whose receivers do not join the group."""
        return self.streams[len(self.streams) - (self[UNJOINED] or 0) :]


def streams_of(pairs: Iterable[Pair], direction: Direction) -> tuple[Stream, ...]:
    """Return the streams of these pairs: each pair with each direction of data."""
    both = (Direction.FORWARD, Direction.REVERSE)
    directions = both if direction is Direction.BOTH else (direction,)
    return tuple(Stream(pair, each) for pair in pairs for each in directions)


_FIELDS: Final = frozenset(field.name for field in fields(Cell))
REQUESTED: Final = {
    setting.stored_as: setting
    for setting in SETTINGS.values()
    if setting.stored_as is not None and setting.stored_as not in _FIELDS
}
"""Maps a stored name to its setting, for the settings in `Cell.settings`; other settings have a field in `Cell`."""


def nodes_of_tests(cells: Iterable[Cell]) -> tuple[str, ...]:
    """Return the names of all nodes of some tests, each once, in the order of the tests."""
    return tuple(dict.fromkeys(node for cell in cells for node in cell.nodes))


def several_sets(cells: Iterable[Cell]) -> bool:
    """Tell whether tests use different pairs of nodes but all the same number of pairs, as in a mesh.

    Traffic classes may have pairs of their own, which are no mesh.
    """
    every = tuple(cells)
    sets = {cell.pairs for cell in every}
    if len(sets) < 2 or len({len(pairs) for pairs in sets}) > 1:
        return False
    return len({(cell.first, cell.pairs) for cell in every}) == len({cell.first for cell in every})


def have_roles(cells: Iterable[Cell]) -> bool:
    """Tell whether traffic classes that are measured together have different pairs, or send at different times."""
    roles = {(cell.first, cell.pairs, cell.span_s) for cell in cells}
    return len(roles) > len({first for first, _, _ in roles})


def settings_words(cell: Cell, pairs: Literal["", "count", "names"] = "") -> dict[str, str]:
    """Return the words for a test by setting, such as `window 64 KiB`. `pairs`: omit, count or name the node pairs."""
    words: dict[str, str] = {} if cell.part is None else {"part": f"part {cell.part}"}
    if cell.condition is not None:
        words["condition"] = cell.condition
    if cell.traffic_class is not None:
        words["class"] = f"class {cell.traffic_class}"
    if pairs == "names":
        words["pairs"] = join_names([f"{pair.source} → {pair.destination}" for pair in cell.pairs])
    elif pairs:
        words["pairs"] = f"{len(cell.pairs)} pair{'s' if len(cell.pairs) > 1 else ''}"
    for setting in SETTINGS.values():
        if setting is CONGESTION:
            words["flows"] = f"{cell.parallel} flow{'s' if cell.parallel > 1 else ''}"
        if setting is SIZE and cell.transport == "udp" and cell.message_bytes is not None:
            words["size"] = f"datagrams of {cell.message_bytes} byte{'s' * (cell.message_bytes != 1)}"
        if setting.phrase and cell[setting] != setting.unset and not (setting is WINDOW and cell[WINDOW_TOTAL]):
            words[setting.noun or setting.name] = setting.phrase(cell[setting])
    return words


LEFT_OUT: Final = "# Left out: this run is anonymous.\n"
"""The text of the scenario file and of the rig file of an anonymous run."""
LEAST_SKEW_S: Final = 0.010  # start skew that is allowed in every repetition, even the shortest
MAX_LOSS: Final = 0.001
"""Default for `max_loss` of a scenario: share of datagrams that may be lost at the highest rate."""
MOST_TRIALS: Final = 15
"""Most trials of a search for the highest rate."""


@dataclass(frozen=True, slots=True)
class Retest:
    """Request to measure a test `repeat` more times if its repetitions vary by more than `variation` × the mean."""

    variation: float
    repeat: int


@dataclass(frozen=True, slots=True)
class Until:
    """Request to repeat a test until half the 95 % confidence interval is below `ci95` × the mean, or `most` times."""

    ci95: float
    most: int


class Operator(StrEnum):
    AT_LEAST = ">="
    ABOVE = ">"
    AT_MOST = "<="
    BELOW = "<"
    ONE_OF = "in"  # one of `Expectation.words`; only for the column `limit`


@dataclass(frozen=True, slots=True)
class Expectation:
    """An expectation of a scenario for some tests: a bound in the unit of the column, or the allowed words."""

    name: str  # name of the figure in the scenario, such as "goodput"
    column: str  # name of the column in rigctl.figures, such as "goodput_mbps"
    text: str  # text of the expectation, such as ">= 930M per pair"
    comparison: Operator
    tests: tuple[int, ...]  # test numbers with this expectation
    bound: float | None = None  # bound of the value; None if one of `words` is expected
    words: tuple[str, ...] = ()
    per_pair: bool = False  # True: applies to each pair and direction; False: to the whole test


@dataclass(frozen=True, slots=True)
class Link:
    """The link of a node to the switch, as in the rig file. A rate or MTU of None is read from the node."""

    rate_bps: int | None
    mtu: int | None
    switch: str | None = None  # key of the switch in the rig file
    rtt_s: float | None = None  # virtual rig: requested round-trip time; None: no delay


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a switch, connected to a node (`node`) or to another switch (`peer`)."""

    switch: str  # key of the switch in the rig file
    name: str  # name of the port on the switch, such as "GigabitEthernet1/1"
    node: str | None = None
    peer: str | None = None  # key of the switch at the other end of a trunk


@dataclass(frozen=True, slots=True)
class Trunk:
    """The link between two switches of the rig. `rate_bps` is None if the rig file does not give the rate."""

    ends: tuple[str, str]  # keys of both switches in the rig file
    rate_bps: int | None


@dataclass(frozen=True, slots=True)
class Against:
    """Two variants measured alternately in one run. `twins` has pairs of tests that differ only in `setting`."""

    setting: str  # name of the setting that differs; may be "condition"
    before: str  # value of the setting in the first variant, as in a scenario
    after: str
    twins: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The request of a run: what to measure, and on which rig. The plan is stored before the first test."""

    title: str
    notes: str
    scenario_name: str  # name of the scenario file without folder and .yaml
    scenario_yaml: str  # text of the scenario file, which does not show `overrides`
    rig_name: str
    rig_yaml: str
    overrides: tuple[str, ...]  # options of the command line that change the scenario: "--set window=64K"
    repeat: int
    cells: tuple[Cell, ...]
    links: dict[str, Link] = field(default_factory=dict)  # links by name of the node
    virtual: str | None = None  # kind of virtual rig: "namespaces", "loopback", "machines"; None: real hardware
    max_skew_s: float = LEAST_SKEW_S  # largest start skew of a valid repetition
    conditions: tuple[Condition, ...] = ()  # conditions in the order of the tests that use them
    ports: tuple[Port, ...] = ()  # switch ports that the rig file names
    trunk: Trunk | None = None
    retest: Retest | None = None  # if set, repetitions with a number above `repeat` are the retest
    until: Until | None = None
    max_loss: float = MAX_LOSS  # search for the highest rate: share of datagrams that may be lost
    max_latency_s: float | None = None  # search for the most requests per second: longest 99th percentile
    ip_version: int = 4  # IP version (4 or 6) of the data addresses in the rig file
    heads: tuple[tuple[str, str], ...] = ()  # changed titles in the results table: (usual title, title to print)
    expectations: tuple[Expectation, ...] = ()
    against: Against | None = None

    @property
    def imported(self) -> bool:
        """Tell whether the run was imported from results of another program; such a run has no scenario."""
        return not self.scenario_yaml

    @property
    def anonymous(self) -> bool:
        """Tell whether names and texts of the run were replaced or left out (`rigctl.records.anonymous`)."""
        return self.rig_yaml == LEFT_OUT

    @property
    def in_messages(self) -> bool:
        """Tell whether the tests of the run count messages or files instead of a stream of bytes."""
        return any(cell.in_messages for cell in self.cells)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return the names of all nodes in the tests, each once, in the order of the tests."""
        return nodes_of_tests(self.cells)

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the names of the scenario's parts, in their order; none if the scenario has no parts."""
        return tuple(dict.fromkeys(cell.part for cell in self.cells if cell.part is not None))

    def of_part(self, name: str) -> "RunPlan":
        """Return the plan of one part, as if the part were a scenario of its own; its tests keep their numbers."""
        cells = tuple(replace(cell, part=None) for cell in self.cells if cell.part == name)
        numbers = {cell.number for cell in cells}
        return replace(
            self,
            cells=cells,
            expectations=tuple(one for one in self.expectations if not numbers.isdisjoint(one.tests)),
        )

    def settings_of(self, cell: Cell) -> tuple[HostSetting, ...]:
        """Return the host settings that the condition of a test sets."""
        return next((condition.settings for condition in self.conditions if condition.name == cell.condition), ())

    def condition_mtu(self, name: str | None) -> int | None:
        """Return the MTU that the condition `name` gives every node; None if the nodes keep their MTU."""
        return next((condition.mtu for condition in self.conditions if condition.name == name), None)
