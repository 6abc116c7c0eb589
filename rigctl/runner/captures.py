"""Captures: from what the agents kept to pcap files beside the report, and what these say of segments sent again."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rigctl.errors import RigError
from rigctl.measure import Stream
from rigctl.model.capture import resent
from rigctl.protocol import EndpointReport
from rigctl.records import Capture

CAPTURE_BYTES: Final = 8 * 2**20
"""Of each file: about 60,000 frames."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One end of a stream and its report. `port` is the receiver's."""

    node: str
    stream: Stream
    port: int
    report: EndpointReport


def write_captures(ends: Iterable[Seen], begin: str) -> tuple[Capture, ...]:
    """A file for each end that captured; names begin with `begin`. Raises `RigError` where one can't be written."""
    return tuple(_written(end, begin) for end in ends if end.report.capture is not None)


def _written(end: Seen, begin: str) -> Capture:
    taken, pair = end.report.capture, end.stream.pair
    assert taken is not None
    way = f"{end.stream.sender}-to-{end.stream.receiver}-at-{end.node}"
    path = Path(f"{begin}-{way}.pcap")
    try:
        path.write_bytes(taken.pcap)
    except OSError as error:
        why = f"{path}: the capture cannot be written: {error.strerror}"
        raise RigError(f"{why}. Name another place by --report") from None
    sending = end.node == end.stream.sender
    totals = [flow.totals for flow in end.report.flows]
    mss = min((one.mss for one in totals if one.mss), default=None)
    whole = not taken.cut and not taken.lost and sending and mss is not None
    counts = [one.retransmits for one in totals]
    known = [count for count in counts if count is not None]
    return Capture(
        node=end.node,
        pair=pair,
        direction=end.stream.direction,
        file=path.name,
        frames=taken.frames,
        lost=taken.lost,
        cut=taken.cut,
        resent=resent(taken.pcap, end.port, mss) if whole and mss else None,
        retransmits=sum(known) if sending and known and len(known) == len(counts) else None,
    )
