"""Captures: from what the agents kept to pcap files beside the report, and what these say of segments sent again."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rigctl.base.errors import RigError
from rigctl.measure.orders import Channel
from rigctl.model.capture import retransmits_seen
from rigctl.protocol import EndpointReport
from rigctl.records import Capture

CAPTURE_BYTES: Final = 8 * 2**20
"""Of each file: about 60,000 frames."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One end of a channel and its report. `port` is the receiver's."""

    node: str
    channel: Channel
    port: int
    report: EndpointReport


def write_captures(ends: Iterable[Seen], begin: str) -> tuple[Capture, ...]:
    """A file for each end that captured; names begin with `begin`. Raises `RigError` where one can't be written."""
    return tuple(_written(end, begin) for end in ends if end.report.capture is not None)


def _written(end: Seen, begin: str) -> Capture:
    taken, stream = end.report.capture, end.channel.stream
    assert taken is not None
    way = f"{stream.sender}-to-{stream.receiver}-at-{end.node}"
    path = Path(f"{begin}-{way}.pcap")
    try:
        path.write_bytes(taken.pcap)
    except OSError as error:
        why = f"{path}: the capture cannot be written: {error.strerror}"
        raise RigError(f"{why}. Name another place by --report") from None
    sending = end.node == stream.sender
    totals = [flow.totals for flow in end.report.flows]
    mss = min((counted.mss for counted in totals if counted.mss), default=None)
    whole = not taken.cut and not taken.lost and sending and mss is not None
    counts = [counted.retransmits for counted in totals]
    known = [count for count in counts if count is not None]
    return Capture(
        node=end.node,
        pair=stream.pair,
        direction=stream.direction,
        file=path.name,
        frames=taken.frames,
        lost=taken.lost,
        cut=taken.cut,
        retransmits_seen=retransmits_seen(taken.pcap, end.port, mss) if whole and mss else None,
        retransmits=sum(known) if sending and known and len(known) == len(counts) else None,
    )
