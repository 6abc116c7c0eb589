"""Probes of the round trip beside streams: small datagrams at a steady pace, an endpoint of their own on both nodes."""

from collections.abc import Callable
from typing import Final

from rigctl.measure.test import Channel, Settings
from rigctl.model.latency import PROBE_BYTES
from rigctl.records import Cell

ORDER: Final = "probe"
"""The agent's word for it (docs/reference/agent-protocol.md, `test=`)."""


def settings() -> Settings:
    """One flow of datagrams with the node's own buffers, whatever the streams ask for."""
    return Settings(
        flows=1,
        window=None,
        mss=None,
        congestion=None,
        nodelay=None,
        zerocopy=None,
        copy=None,
        transport="udp",
        test=ORDER,
        size=PROBE_BYTES,
        busy=None,
        disk=None,
        folder=None,
    )


def probe_channels(cell: Cell, new_token: Callable[[], str]) -> tuple[Channel, ...]:
    """One channel beside each stream of `cell`, numbered after those of the streams; none where none is asked for."""
    if cell.latency_ms is None:
        return ()
    first = len(cell.streams) + 1
    return tuple(Channel(number, stream, new_token()) for number, stream in enumerate(cell.streams, first))
