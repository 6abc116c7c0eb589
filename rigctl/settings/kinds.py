"""The kinds of tests, and the engines that make and measure their traffic, one entry each.

The settings that a kind or an engine takes are in their records (`rigctl.settings.sockets`, `traffic`).
"""

from dataclasses import dataclass
from typing import Final, Literal

MAX_DATAGRAM: Final = 65507


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of test."""

    name: str  # a scenario's `test:`
    title: str  # for people
    counts: Literal["bytes", "messages", "datagrams"]  # a file is one message
    section: str  # of the report, a name in rigctl.report.sections
    bins: bool = False  # its receivers can count bytes in bins of a fixed width
    transport: str = "tcp"  # where the scenario does not choose
    order: str | None = None  # the agent's word for it (docs/reference/agent-protocol.md, `test=`); None: a stream
    sizes: tuple[int, int] = (1, 2**40)  # least and most bytes of a message, datagram or file
    round_trips: bool = False  # each message comes back, and its time is taken
    # Of files on disks, which are made before the start: no disk is taken to be slower.
    prepare_bytes_per_s: int | None = None

    @property
    def in_messages(self) -> bool:
        """Tell whether messages are counted, not a stream cut to a measurement interval."""
        return self.counts == "messages"

    @property
    def files(self) -> bool:
        """Tell whether its messages are files, read from and written to disk or memory."""
        return self.prepare_bytes_per_s is not None


TCP: Final = Kind("tcp", "TCP streams", "bytes", "streams", bins=True)
UDP: Final = Kind(
    "udp",
    "UDP streams",
    "datagrams",
    "datagrams",
    bins=True,
    transport="udp",
    sizes=(16, MAX_DATAGRAM),  # from its number and its time (docs/reference/agent-protocol.md)
)
PINGPONG: Final = Kind(
    "pingpong", "Ping-pong", "messages", "messages", order="pingpong", sizes=(1, 2**24), round_trips=True
)
BLAST: Final = Kind("blast", "Blast", "messages", "messages", order="blast", sizes=(1, 2**24))
FILE: Final = Kind("file", "File transfer", "messages", "files", bins=True, order="file", prepare_bytes_per_s=5_000_000)

KINDS: Final[dict[str, Kind]] = {kind.name: kind for kind in (TCP, UDP, PINGPONG, BLAST, FILE)}

AGENT: Final = "agent"
IPERF3: Final = "iperf3"


@dataclass(frozen=True, slots=True)
class Limits:
    """The tests and keys that an engine other than the agent takes."""

    kinds: tuple[Kind, ...]
    keys: dict[str, str]  # keys of a scenario that are refused, each with the reason


LIMITS: Final[dict[str, Limits | None]] = {
    AGENT: None,
    IPERF3: Limits(
        kinds=(TCP, UDP),
        keys={
            "bins": "its shortest interval is 100 ms",
            "capture": "it captures nothing",
        },
    ),
}
"""By the name of the engine, as the setting `engine` has it. None: it takes everything."""
