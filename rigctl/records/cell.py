"""Records of the request: nodes in pairs, host settings, one point of the matrix."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Final, Literal, NamedTuple, TypeVar

from rigctl.base.errors import join_names
from rigctl.settings import (
    CONGESTION,
    NO_SETTINGS,
    SETTINGS,
    SIZE,
    WINDOW,
    WINDOW_TOTAL,
    Direction,
    Setting,
    Settings,
)
from rigctl.settings.kinds import KINDS, Kind

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pair:
    """Source node → destination node, by their names in the rig file."""

    source: str
    destination: str

    def __str__(self) -> str:
        return f"{self.source} -> {self.destination}"


class Stream(NamedTuple):
    """The flows of one pair in one direction."""

    pair: Pair
    direction: Direction  # FORWARD or REVERSE, never BOTH

    @property
    def sender(self) -> str:
        """Return the node that sends the data."""
        return self.pair.source if self.direction is Direction.FORWARD else self.pair.destination

    @property
    def receiver(self) -> str:
        return self.pair.destination if self.direction is Direction.FORWARD else self.pair.source

    @property
    def ends(self) -> tuple[str, str]:
        """Return sender and receiver."""
        return self.sender, self.receiver

    def __str__(self) -> str:
        return f"{self.pair.source} {'→' if self.direction is Direction.FORWARD else '←'} {self.pair.destination}"


_NAMED_ALONE: Final = frozenset({"sysctl", "offload"})


@dataclass(frozen=True, slots=True)
class HostSetting:
    """One host setting of a condition, as the agent applies it (docs/reference/agent-protocol.md, `set`)."""

    kind: str  # a key of a condition, as "mtu", "offload", "rings"
    value: str
    name: str | None = None  # of a sysctl (net.ipv4.tcp_rmem), an offload (gro), a ring (rx) …; None: it has none

    @property
    def label(self) -> str:
        """Return the name that tells it from all others: `mtu`, `net.ipv4.tcp_sack`, `gro`, `rings rx`."""
        if self.kind in _NAMED_ALONE:
            return self.name or self.kind
        return self.kind if self.name is None else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Condition:
    """Host settings that hold on all nodes of the rig during a group of cells; old values are back afterwards."""

    name: str
    settings: tuple[HostSetting, ...] = ()
    # True: a cell's window is only where the kernel's buffers *start* (the middle value of tcp_rmem and tcp_wmem), and
    # it resizes them; False: SO_SNDBUF and SO_RCVBUF are set, which locks them (tcp(7), tcp_moderate_rcvbuf).
    resize: bool = False

    @property
    def mtu(self) -> int | None:
        """Return the MTU that it gives every node; None: the nodes' own."""
        return next((int(setting.value) for setting in self.settings if setting.kind == "mtu"), None)


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of the matrix: one row of the table.

    `cell[MSS]` is the value asked for of any setting; None: not asked for, the node's default holds.
    """

    number: int  # 1, 2, … in the scenario's order
    test: str  # a key of rigctl.settings.kinds.KINDS, as "tcp"
    pairs: tuple[Pair, ...]
    duration_s: float  # what the senders run, the omitted start included
    omit_s: float  # cut off the start by the controller, from raw counters
    parallel: int  # flows per pair and direction
    direction: Direction = Direction.FORWARD
    condition: str | None = None  # name of one of RunPlan.conditions; None: the nodes as they are
    capture: bool = False  # the frames of its flows are kept, headers only
    bin_us: int | None = None  # of streams: receivers count their bytes in bins of that width, too
    transport: str = "tcp"  # or "udp": of "udp", and of "pingpong" where asked for
    message_bytes: int | None = None  # of a message; of "udp" the payload of a datagram; of "file" all of it
    settings: Settings = NO_SETTINGS  # those that have no field of their own here
    resize: bool = False  # of its condition: the window is where buffers start, the kernel resizes them
    folder: str | None = None  # of file transfers, for files on disks, on every node
    engine: str = "agent"  # a key of rigctl.settings.engines.LIMITS: who makes and measures the traffic
    latency_ms: int | None = None  # of streams: time between the probes of the round trip beside them; None: no probes
    traffic_class: str | None = None  # its name in `classes`; None: the scenario has none
    group: int | None = None  # number of the first of the cells that are measured together; None: it is measured alone

    def __getitem__(self, setting: Setting[T]) -> T:
        """Return the value asked for."""
        if setting.stored_as not in _FIELDS:
            return self.settings[setting]
        value: T = getattr(self, setting.stored_as)
        return value

    @property
    def kind(self) -> Kind:
        return KINDS[self.test]

    @property
    def first(self) -> int:
        """Return the number of the first of the cells that are measured together with this one."""
        return self.number if self.group is None else self.group

    @property
    def in_messages(self) -> bool:
        """Tell whether messages are counted, not a stream cut to a measurement interval."""
        return self.kind.in_messages

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return the names of the nodes in its pairs, each once, in the order of the pairs."""
        return tuple(dict.fromkeys(node for pair in self.pairs for node in (pair.source, pair.destination)))

    @property
    def streams(self) -> tuple[Stream, ...]:
        """Return each pair with each direction in which its data flow, in the scenario's order."""
        both = (Direction.FORWARD, Direction.REVERSE)
        directions = both if self.direction is Direction.BOTH else (self.direction,)
        return tuple(Stream(pair, direction) for pair in self.pairs for direction in directions)


_FIELDS: Final = frozenset(field.name for field in fields(Cell))
REQUESTED: Final = {
    setting.stored_as: setting
    for setting in SETTINGS.values()
    if setting.stored_as is not None and setting.stored_as not in _FIELDS
}
"""The settings in `Cell.settings`, by their stored names; the others have a field of their own."""


def several_sets(cells: Iterable[Cell]) -> bool:
    """Tell whether tests differ in their pairs but not in how many they are, as those of a mesh."""
    sets = {cell.pairs for cell in cells}
    return len(sets) > 1 and len({len(pairs) for pairs in sets}) == 1


def settings_words(cell: Cell, pairs: Literal["", "count", "names"] = "") -> dict[str, str]:
    """Return what a cell asks for, by setting: `window 64 KiB`, `MSS 1460`, `5 flows`; with `pairs` its pairs too."""
    words: dict[str, str] = {} if cell.condition is None else {"condition": cell.condition}
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
        value = cell[setting] if setting.phrase is not None else setting.unset
        if setting.phrase is not None and value != setting.unset and not (setting is WINDOW and cell[WINDOW_TOTAL]):
            words[setting.noun or setting.name] = setting.phrase(value)
    return words
