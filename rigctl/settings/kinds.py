"""The kinds of tests, and the engines: the programs that make and measure the traffic.

The record of a setting names the kinds and the engines that take it (`rigctl.settings.sockets`, `traffic`).
"""

from dataclasses import dataclass
from typing import Final, Literal

MAX_DATAGRAM: Final = 65507


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of test, such as tcp or pingpong."""

    name: str  # value of `test:` in a scenario
    title: str  # name in reports
    counts: Literal["bytes", "messages", "datagrams"]  # what a test counts; a transferred file counts as one message
    section: str  # section of the report: the part on its tests (rigctl.report.document)
    bins: bool = False  # True if receivers can count bytes in bins of a fixed width
    transport: str = "tcp"  # default transport
    order: str | None = None  # value of `test=` in the agent protocol; None for streams
    sizes: tuple[int, int] = (1, 2**40)  # least and most bytes of a message, datagram or file, in this order
    round_trips: bool = False  # True if each message is answered and its round-trip time measured
    connects: bool = False  # True if the sender opens connections, one after the other; each counts as one message
    scheduled: bool = False  # True if the sender begins messages at equal intervals, and each is answered
    by_burst: bool = False  # True if the sender sends bursts, each of many datagrams at once; each counts as a message
    multicast: bool = False  # True if datagrams are sent once, to a group that the receivers join and leave
    # Assumed speed of a disk, for the longest time to create files before the start. None: the kind has no files.
    prepare_bytes_per_s: int | None = None

    @property
    def in_messages(self) -> bool:
        """Tell whether tests count messages; other tests count the bytes of streams during a measurement interval."""
        return self.counts == "messages"

    @property
    def pooled(self) -> bool:
        """Tell whether figures are computed over the messages of all repetitions, not as means over repetitions."""
        return self.in_messages and not self.by_burst

    @property
    def timed(self) -> bool:
        """Tell whether the sender measures the time of each message: a round trip, a connection, or a request."""
        return self.round_trips or self.connects or self.scheduled

    @property
    def transfers(self) -> bool:
        """Tell whether messages are sent as fast as possible, so that tests have a throughput of messages."""
        return self.in_messages and not (self.connects or self.scheduled or self.by_burst or self.multicast)

    @property
    def files(self) -> bool:
        """Tell whether messages are files, which are read from and written to disk or memory."""
        return self.prepare_bytes_per_s is not None


TCP: Final = Kind("tcp", "TCP streams", "bytes", "streams", bins=True)
UDP: Final = Kind(
    "udp",
    "UDP streams",
    "datagrams",
    "datagrams",
    bins=True,
    transport="udp",
    sizes=(1, MAX_DATAGRAM),
)
PINGPONG: Final = Kind(
    "pingpong", "Ping-pong", "messages", "messages", order="pingpong", sizes=(1, 2**24), round_trips=True
)
BLAST: Final = Kind("blast", "Blast", "messages", "messages", order="blast", sizes=(1, 2**24))
CONNECT: Final = Kind("connect", "Connections", "messages", "connections", order="connect", sizes=(1, 1), connects=True)
REQUESTS: Final = Kind(
    "requests", "Requests", "messages", "requests", order="requests", sizes=(1, 2**24), scheduled=True
)
BURST_KIND: Final = Kind(
    "burst",
    "Bursts",
    "messages",
    "bursts",
    transport="udp",
    order="burst",
    sizes=(16, MAX_DATAGRAM),
    by_burst=True,
)
MULTICAST: Final = Kind(
    "multicast",
    "Multicast",
    "messages",
    "multicast",
    transport="udp",
    order="multicast",
    sizes=(16, MAX_DATAGRAM),
    multicast=True,
)
FILE: Final = Kind("file", "File transfer", "messages", "files", bins=True, order="file", prepare_bytes_per_s=5_000_000)

KINDS: Final[dict[str, Kind]] = {
    kind.name: kind for kind in (TCP, UDP, PINGPONG, BLAST, FILE, CONNECT, REQUESTS, BURST_KIND, MULTICAST)
}

AGENT: Final = "agent"
IPERF3: Final = "iperf3"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The kinds of tests that an engine takes, and the keys of a scenario that it refuses."""

    kinds: tuple[Kind, ...]
    keys: dict[str, str]  # maps a refused key to the reason


CAPABILITIES: Final[dict[str, Capabilities | None]] = {
    AGENT: None,
    IPERF3: Capabilities(
        kinds=(TCP, UDP), keys={"bins": "its shortest interval is 100 ms", "capture": "it captures nothing"}
    ),
}
"""Maps the name of an engine to its limits; None if the engine takes all tests and keys."""
