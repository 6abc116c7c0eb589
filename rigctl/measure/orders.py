"""Convert tests to orders for agents: number the endpoints of all streams, and describe their sockets."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from rigctl.model.bursts import drained_ms
from rigctl.model.latency import PROBE_BYTES, probe_interval_ms
from rigctl.model.trials import searched_setting
from rigctl.protocol.orders import Sockets, encode
from rigctl.records import Cell, Stream
from rigctl.settings import BURST, READ, SETTINGS, WINDOW, WRITE, Settings
from rigctl.settings.traffic import MAX_BURST

_SEARCH_BURST_S: Final = 0.001
"""Longest burst in a search for the highest rate, in seconds of traffic. Longer bursts overflow small token buckets."""


@dataclass(frozen=True, slots=True)
class StreamEnds:
    """A stream of a measurement, or its round-trip probes. `endpoint` is the number by which both agents know it."""

    endpoint: int
    stream: Stream
    token: str  # 32 hexadecimal digits, with which data connections must begin
    probing: bool = False  # True for probes of the round-trip time beside the stream
    traffic_class: str | None = None  # None: the test has no traffic classes
    span_s: tuple[float, float] = (0.0, 0.0)  # when the flows start and stop, in s after the start of the test

    @property
    def sender(self) -> str:
        return self.stream.sender

    @property
    def receiver(self) -> str:
        return self.stream.receiver


def channels(cells: Iterable[Cell], new_token: Callable[[], str]) -> tuple[StreamEnds, ...]:
    """Return the streams of tests that are measured together, and the probes of each stream, numbered from 1.

    Only a test with `latency_ms` has probes. `new_token()` returns 128 random bits.
    """
    wanted = [
        (stream, token or new_token(), probing, cell.traffic_class, cell.span_s)
        for cell in cells
        # The datagrams of a multicast test are sent once, so all its receivers know them by one token.
        for token in [new_token() if cell.kind.multicast else None]
        for probing in ((False,) if cell.latency_ms is None else (False, True))
        for stream in cell.streams
    ]
    return tuple(StreamEnds(number, *each) for number, each in enumerate(wanted, 1))


def role_of(cell: Cell, stream: Stream, *, sends: bool) -> str | None:
    """Return the role of an end of a stream of a multicast test; None in other tests. The first pair's sender sends."""
    if not cell.kind.multicast:
        return None
    if sends:
        return "send" if stream == cell.streams[0] else "wait"
    return "watch" if stream in cell.unjoined else "join"


def sockets(
    cell: Cell, channel: StreamEnds, *, sends: bool, interval_ms: int, wait_ms: int, interface: str | None = None
) -> Sockets:
    """Return the part of the order `connect` (if `sends`) or `listen` that describes the sockets of `channel`.

    With `resize` no socket gets a buffer size, which would stop the kernel from resizing (tcp(7), tcp_moderate_rcvbuf).
    The initial size is then a host setting (`runner.conditions`). Probes use the default buffers of the node.
    """
    asked = {setting: (setting.order, cell[setting]) for setting in SETTINGS.values() if setting.order is not None}
    if channel.probing:
        return Sockets(
            channel.token,
            flows=1,
            interval_ms=probe_interval_ms(cell),
            wait_ms=wait_ms,
            settings=Settings((setting, value) for setting, (order, value) in asked.items() if order.probes),
            interface=interface,
            transport="udp",
            test="probe",
            size=PROBE_BYTES,
        )
    if cell.resize and cell.transport == "tcp":
        del asked[WINDOW]
    on_disk = cell[READ if sends else WRITE] == "disk" if cell.kind.files else None
    return Sockets(
        channel.token,
        flows=cell.parallel,
        interval_ms=drained_ms(cell) if cell.kind.by_burst else interval_ms,  # a row of samples for each burst
        wait_ms=wait_ms,
        settings=Settings(
            (setting, value if order.of_end is None else order.of_end(value, sends))
            for setting, (order, value) in asked.items()
            if order.ends.has(sender=sends)
        ),
        interface=interface,
        transport=None if cell.transport == "tcp" else cell.transport,
        test=cell.kind.order,
        size=cell.message_bytes,
        disk=on_disk,
        folder=encode(cell.folder) if on_disk and cell.folder else None,
        role=role_of(cell, channel.stream, sends=sends),
    )


def burst(cell: Cell, rate_bps: int | None) -> int | None:
    """Return the longest burst to order, in datagrams. None: there is no rate, or the agent uses its default."""
    if rate_bps is None:
        return None
    if searched_setting(cell) is None or cell[BURST] is not None or cell.message_bytes is None:
        return cell[BURST]
    return min(MAX_BURST, 1 + int(_SEARCH_BURST_S * rate_bps / (8 * cell.message_bytes)))
