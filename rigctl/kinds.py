"""The kinds of tests, one entry each: what a kind takes, what it counts, which section of the report tells of it."""

from dataclasses import dataclass
from typing import Final, Literal

TCP_AXES: Final = frozenset({"mss", "congestion", "nodelay"})
"""Axes that only a TCP connection has."""
COPY_AXES: Final = frozenset({"zerocopy", "copy"})
"""Axes that only a TCP stream has."""
OWN_AXES: Final = (
    TCP_AXES | COPY_AXES | {"size", "iterations", "rate", "burst", "transport", "busy_poll", "read", "write", "latency"}
)
"""Axes that not every kind takes; the others are common to all."""
MAX_DATAGRAM: Final = 65507


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of test. `axes` and `needs` are names of scenario.axes.AXES."""

    name: str  # a scenario's `test:`
    title: str  # for people
    counts: Literal["bytes", "messages", "datagrams"]  # a file is one message
    section: str  # of the report, a name in rigctl.report.sections
    axes: frozenset[str]  # of OWN_AXES, those it takes
    needs: frozenset[str] = frozenset()  # of these, those without a default
    bins: bool = False  # its receivers can count bytes in bins of a fixed width
    transport: str = "tcp"  # where the scenario does not choose
    order: str | None = None  # the agent's word for it (docs/reference/agent-protocol.md, `test=`); None: a stream
    sizes: tuple[int, int] = (1, 2**40)  # least and most bytes of a message, datagram or file
    round_trips: bool = False  # each message comes back, and its time is taken
    # Of files on disks, which are made before the start: no disk is taken to be slower.
    prepare_bytes_per_s: int | None = None

    @property
    def in_messages(self) -> bool:
        """Whether it is messages that are counted, not a stream cut to a measurement interval."""
        return self.counts == "messages"

    @property
    def files(self) -> bool:
        """Whether its messages are files, read from and written to disk or memory."""
        return self.prepare_bytes_per_s is not None


_ALL: Final = (
    Kind("tcp", "TCP streams", "bytes", "streams", TCP_AXES | COPY_AXES | {"latency"}, bins=True),
    Kind(
        "udp",
        "UDP streams",
        "datagrams",
        "datagrams",
        frozenset({"size", "rate", "burst", "latency"}),
        needs=frozenset({"rate"}),
        bins=True,
        transport="udp",
        sizes=(16, MAX_DATAGRAM),  # from its number and its time (docs/reference/agent-protocol.md)
    ),
    Kind(
        "pingpong",
        "Ping-pong",
        "messages",
        "messages",
        TCP_AXES | {"size", "iterations", "transport", "busy_poll"},
        needs=frozenset({"size"}),
        order="pingpong",
        sizes=(1, 2**24),
        round_trips=True,
    ),
    Kind(
        "blast",
        "Blast",
        "messages",
        "messages",
        TCP_AXES | {"size", "iterations"},
        needs=frozenset({"size"}),
        order="blast",
        sizes=(1, 2**24),
    ),
    Kind(
        "file",
        "File transfer",
        "messages",
        "files",
        TCP_AXES | {"size", "read", "write"},
        needs=frozenset({"size"}),
        bins=True,
        order="file",
        prepare_bytes_per_s=5_000_000,
    ),
)

KINDS: Final[dict[str, Kind]] = {kind.name: kind for kind in _ALL}
