"""What is asked: nodes in pairs, host settings, one point of the matrix."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rigctl.kinds import KINDS, Kind


class Direction(StrEnum):
    """Which way the data of a pair flow; connections are opened by the sender of the data."""

    FORWARD = "forward"  # source -> destination
    REVERSE = "reverse"  # destination -> source
    BOTH = "both"  # at once


@dataclass(frozen=True, slots=True)
class Pair:
    """Source node → destination node, by their names in the rig file."""

    source: str
    destination: str

    def __str__(self) -> str:
        return f"{self.source} -> {self.destination}"


@dataclass(frozen=True, slots=True)
class Stream:
    """The flows of one pair in one direction."""

    pair: Pair
    direction: Direction  # FORWARD or REVERSE, never BOTH

    @property
    def sender(self) -> str:
        """The node that sends the data."""
        return self.pair.source if self.direction is Direction.FORWARD else self.pair.destination

    @property
    def receiver(self) -> str:
        return self.pair.destination if self.direction is Direction.FORWARD else self.pair.source

    @property
    def ends(self) -> tuple[str, str]:
        """Sender and receiver."""
        return self.sender, self.receiver

    def __str__(self) -> str:
        return f"{self.pair.source} {'→' if self.direction is Direction.FORWARD else '←'} {self.pair.destination}"


@dataclass(frozen=True, slots=True)
class Setting:
    """One host setting of a condition, as the agent applies it (docs/reference/agent-protocol.md, `set`)."""

    kind: str  # "mtu", "sysctl", "offload", "governor"
    value: str
    name: str | None = None  # of a sysctl (net.ipv4.tcp_rmem) or an offload (gro); None for the others


@dataclass(frozen=True, slots=True)
class Condition:
    """Host settings that hold on all nodes of the rig during a group of cells; old values are back afterwards."""

    name: str
    settings: tuple[Setting, ...] = ()
    # True: a cell's window is only where the kernel's buffers *start* (the middle value of tcp_rmem and tcp_wmem), and
    # it resizes them; False: SO_SNDBUF and SO_RCVBUF are set, which locks them (tcp(7), tcp_moderate_rcvbuf).
    resize: bool = False

    @property
    def mtu(self) -> int | None:
        """The MTU it gives every node; `None`: the nodes' own."""
        return next((int(setting.value) for setting in self.settings if setting.kind == "mtu"), None)


UNLIMITED: Final = "unlimited"
"""As a rate: as fast as the sender can."""

MAX_RATE: Final = "max"
"""As a rate: the highest with a loss within RunPlan.max_loss, found by search."""


@dataclass(frozen=True, slots=True)
class WindowSettings:
    """Socket buffers asked for, SO_SNDBUF and SO_RCVBUF."""

    bytes: int | None = None  # of each flow
    total_bytes: int | None = None  # asked for over all flows of a pair; `bytes` is then each one's share
    resize: bool = False  # of its condition: the window is where buffers start, the kernel resizes them


@dataclass(frozen=True, slots=True)
class TcpSettings:
    """Of the connections."""

    mss: int | None = None
    congestion: str | None = None
    nodelay: bool | None = None


@dataclass(frozen=True, slots=True)
class CopySettings:
    """Of TCP streams: which end copies bytes between its program and its kernel."""

    zerocopy: bool | None = None  # senders do without (MSG_ZEROCOPY); False, None: they copy
    copy: bool | None = None  # receivers copy; False, None: they discard within the kernel


@dataclass(frozen=True, slots=True)
class MessageSettings:
    """Of tests that count messages."""

    iterations: int | None = None  # messages of each flow; None: as many as the duration allows
    busy_poll: bool | None = None  # of a ping-pong: waits without sleeping


@dataclass(frozen=True, slots=True)
class DatagramSettings:
    """Of streams of datagrams."""

    rate: int | str | None = None  # of each flow: payload bit/s, UNLIMITED or MAX_RATE
    burst: int | None = None  # most datagrams that a late sender makes up for at once


@dataclass(frozen=True, slots=True)
class FileSettings:
    """Of file transfers."""

    read: str | None = None  # where the sender has it, "disk" or "memory" …
    write: str | None = None  # … and the receiver puts it
    folder: str | None = None  # for files on disks, on every node


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of the matrix: one row of the table. `None` for a setting: not asked for, the node's default holds.

    What only some kinds of test take is nested.
    """

    number: int  # 1, 2, … in the scenario's order
    test: str  # a key of rigctl.kinds.KINDS, as "tcp"
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
    window: WindowSettings = WindowSettings()
    tcp: TcpSettings = TcpSettings()
    copying: CopySettings = CopySettings()
    messages: MessageSettings = MessageSettings()
    datagrams: DatagramSettings = DatagramSettings()
    file: FileSettings = FileSettings()
    engine: str = "agent"  # a key of rigctl.engines.LIMITS: who makes and measures the traffic
    latency_ms: int | None = None  # of streams: time between the probes of the round trip beside them; None: no probes

    @property
    def kind(self) -> Kind:
        return KINDS[self.test]

    @property
    def in_messages(self) -> bool:
        """Whether it is messages that are counted, not a stream cut to a measurement interval."""
        return self.kind.in_messages

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return the names of the nodes in its pairs, each once, in the order of the pairs."""
        return tuple(dict.fromkeys(node for pair in self.pairs for node in (pair.source, pair.destination)))

    @property
    def streams(self) -> tuple[Stream, ...]:
        """Each pair with each direction in which its data flow, in the scenario's order."""
        both = (Direction.FORWARD, Direction.REVERSE)
        directions = both if self.direction is Direction.BOTH else (self.direction,)
        return tuple(Stream(pair, direction) for pair in self.pairs for direction in directions)


def several_sets(cells: Iterable[Cell]) -> bool:
    """Whether tests differ in their pairs but not in how many they are, as those of a mesh."""
    sets = {cell.pairs for cell in cells}
    return len(sets) > 1 and len({len(pairs) for pairs in sets}) == 1
