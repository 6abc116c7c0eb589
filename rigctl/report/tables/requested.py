"""The columns of what a scenario asks for: one row of `REQUESTED` each, shown where a test asks for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.records import Cell, Direction, several_sets
from rigctl.report.blocks import Column, Entry, Scalar
from rigctl.report.tables.columns import Filled
from rigctl.report.words.text import kib_text, pairs_text

DEFAULT: Final = "default"
"""Not asked for: the node's own value holds."""


@dataclass(frozen=True, slots=True)
class Requested:
    """A setting: its column, its value in a test, how that is printed, and whether the column is shown."""

    column: Column
    value: Callable[[Cell], Scalar]
    text: Callable[[Scalar], str] = str
    shown: Callable[[Sequence[Cell]], bool] | None = None  # None: where some test has a value
    unset: str = DEFAULT  # where a test has none

    def of(self, cells: Sequence[Cell]) -> Filled | None:
        values = [self.value(cell) for cell in cells]
        wanted = self.shown(cells) if self.shown is not None else any(value is not None for value in values)
        if not wanted:
            return None
        return Filled(
            self.column, tuple(Entry(self.unset if value is None else self.text(value), value) for value in values)
        )


def _kib(value: Scalar) -> str:
    return kib_text(value if isinstance(value, int) else None)


def _flag(value: Scalar) -> str:
    return "on" if value else "off"


def _mbps(value: Scalar) -> str:
    return f"{value / 1e6:g}" if isinstance(value, int) else str(value)


def _always(_: Sequence[Cell]) -> bool:
    return True


def _several(value: Callable[[Cell], Scalar]) -> Callable[[Sequence[Cell]], bool]:
    """Shown where it differs between tests."""
    return lambda cells: len({value(cell) for cell in cells}) > 1


def _column(title: str, unit: str = "", words: bool = False) -> Column:
    return Column(title, unit, "requested", words)


TEST: Final = Requested(_column("Test"), lambda cell: cell.number, shown=_always)
CONDITION: Final = Requested(_column("Condition", words=True), lambda cell: cell.condition)
PAIRS: Final = Requested(_column("Pairs"), lambda cell: len(cell.pairs), shown=_several(lambda cell: len(cell.pairs)))
SENDING: Final = Requested(_column("Pair", words=True), lambda cell: pairs_text(cell.pairs), shown=several_sets)
TOTAL_WINDOW: Final = Requested(_column("Total window", "KiB"), lambda cell: cell.window.total_bytes, _kib)
WINDOW: Final = Requested(_column("Window", "KiB"), lambda cell: cell.window.bytes, _kib)
MSS: Final = Requested(_column("MSS", "B"), lambda cell: cell.tcp.mss)
PARALLEL: Final = Requested(_column("Parallel"), lambda cell: cell.parallel, shown=_always)
PARALLEL_VARIED: Final = Requested(
    _column("Parallel"), lambda cell: cell.parallel, shown=_several(lambda cell: cell.parallel)
)
DATAGRAM: Final = Requested(_column("Datagram", "B"), lambda cell: cell.message_bytes)
LOAD: Final = Requested(_column("Offered load per flow", "Mbit/s"), lambda cell: cell.datagrams.rate, _mbps)
BURST: Final = Requested(_column("Burst requested"), lambda cell: cell.datagrams.burst)
CONGESTION: Final = Requested(_column("Congestion control", words=True), lambda cell: cell.tcp.congestion)
NODELAY: Final = Requested(_column("Nodelay", words=True), lambda cell: cell.tcp.nodelay, _flag)
ZEROCOPY: Final = Requested(_column("Zerocopy", words=True), lambda cell: cell.copying.zerocopy, _flag)
COPY: Final = Requested(_column("Copy", words=True), lambda cell: cell.copying.copy, _flag)
DIRECTION: Final = Requested(
    _column("Direction", words=True),
    lambda cell: str(cell.direction),
    shown=lambda cells: any(cell.direction is not Direction.FORWARD for cell in cells),
)
NODELAY_VARIED: Final = Requested(
    _column("Nodelay", words=True),
    lambda cell: cell.tcp.nodelay,
    _flag,
    _several(lambda cell: cell.tcp.nodelay),
)
ENGINE: Final = Requested(
    _column("Engine", words=True), lambda cell: cell.engine, shown=_several(lambda cell: cell.engine)
)
LATENCY: Final = Requested(
    _column("Probes every", "ms"),
    lambda cell: cell.latency_ms,
    shown=_several(lambda cell: cell.latency_ms),
    unset="off",
)
TRANSPORT: Final = Requested(
    _column("Transport", words=True),
    lambda cell: cell.transport.upper(),
    shown=lambda cells: any(cell.transport == "udp" for cell in cells),
)
BUSY_POLL: Final = Requested(
    _column("Busy poll", words=True),
    lambda cell: cell.messages.busy_poll,
    _flag,
    _several(lambda cell: cell.messages.busy_poll),
)
READ: Final = Requested(_column("Read", words=True), lambda cell: cell.file.read)
WRITE: Final = Requested(_column("Write", words=True), lambda cell: cell.file.write)
