"""Bursts through a port of known size, frame by frame, and runs with tests of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import builders
from builders import BEGIN_NS

from rigctl.records import (
    Cell,
    Datagrams,
    Flow,
    Link,
    NicCounters,
    NodeUsage,
    Pair,
    Repetition,
    RunInfo,
    Series,
    Side,
    Status,
)
from rigctl.settings import LENGTH, Settings

SIZE: Final = 1458
WIRE_BITS: Final = 8 * (SIZE + 66)
"""Bits of a datagram's frame on the wire, with headers, check sequence, preamble and gap."""
EVERY_NS: Final = 10**9


@dataclass(frozen=True)
class Port:
    """A port that holds `room` frames, the one that it sends included, and sends a frame in `frame_ns`."""

    room: int
    frame_ns: int = 1_000_000

    def passes(self, arrivals: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return when each frame that is not lost has left, in order. `arrivals`: times and the senders' numbers."""
        left: list[tuple[int, int]] = []
        gone = 0  # how many of these have left by the time
        for at, sender in sorted(arrivals):
            while gone < len(left) and left[gone][0] <= at:
                gone += 1
            if len(left) - gone < self.room:
                left.append((max(at, left[-1][0] if left else 0) + self.frame_ns, sender))
        return left


@dataclass(frozen=True)
class Sender:
    """A sender of bursts: `length` frames, one every `gap_ns`, the first `late_ns` after the time of the burst."""

    length: int
    gap_ns: int = 1000
    late_ns: int = 0


def sides(port: Port, senders: Sequence[Sender], bursts: int = 3, **counted: Any) -> list[tuple[Side, Side]]:
    """Return both ends of a flow for each sender. `counted`: other counts of the receivers."""
    rows: list[tuple[list[list[int]], list[list[int]]]] = [([], []) for _ in senders]
    for burst in range(bursts):
        begin_ns = BEGIN_NS + burst * EVERY_NS
        arrivals = [
            (begin_ns + sender.late_ns + place * sender.gap_ns, number)
            for number, sender in enumerate(senders)
            for place in range(sender.length)
        ]
        left = port.passes(arrivals)
        for number, (sent, came) in enumerate(rows):
            sent.append([at for at, own in arrivals if own == number])
            came.append([at for at, own in left if own == number])
    return [(_side(sent), _side(came, sending=False, **counted)) for sent, came in rows]


def _side(bursts: Sequence[Sequence[int]], *, sending: bool = True, **counted: Any) -> Side:
    columns: dict[str, list[int]] = {"t_ns": [], "bytes": [], "span_ns": []}
    count = 0
    for times in bursts:
        count += len(times)
        columns["t_ns"].append(times[0] if times else BEGIN_NS)
        columns["bytes"].append(count * SIZE)
        columns["span_ns"].append(times[-1] - times[0] if times else 0)
    counts = Datagrams(count, refused=0) if sending else replace(Datagrams(count, overflow=0), **counted)
    ends = (columns["t_ns"][0], columns["t_ns"][-1] + columns["span_ns"][-1])
    return Side(count * SIZE, *ends, datagrams=counts, series=Series(columns))


def flows_of(cell: Cell, ends: Sequence[tuple[Side, Side]]) -> tuple[Flow, ...]:
    """Return a flow of each pair of a test."""
    return tuple(Flow(pair, cell.direction, 1, *both) for pair, both in zip(cell.pairs, ends, strict=True))


def cell(number: int = 1, length: int | str = 100, pairs: int = 1, **fields: Any) -> Cell:
    """Return a test with so many senders to n1."""
    named = tuple(Pair(f"n{other}", "n1") for other in range(2, pairs + 2))
    settings = Settings({LENGTH: length})
    base = Cell(number, "burst", named, 10.0, 0.0, 1, transport="udp", message_bytes=SIZE, settings=settings)
    return replace(base, **fields)


def measured(
    the_cell: Cell, port: Port, *senders: Sender, number: int = 1, nic: dict[str, int] | None = None, **counted: Any
) -> Repetition:
    """Return a repetition of bursts. `nic`: counters of each node's card; `counted`: other counts of the receivers."""
    flows = flows_of(the_cell, sides(port, senders, **counted))
    usage = tuple(NodeUsage(node, nic=NicCounters(**nic)) for node in the_cell.nodes if nic is not None)
    return Repetition(the_cell.number, number, 1, Status.OK, None, 0.0, 1.0, flows=flows, nodes=usage)


def run(*cells: Cell, rates_bps: dict[str, int] | None = None) -> RunInfo:
    """Return a run on links of 100 Gbit/s; `rates_bps` has other rates by node."""
    nodes = dict.fromkeys(node for one in cells for node in one.nodes)
    links = {node: Link((rates_bps or {}).get(node, 10**11), 1500) for node in nodes}
    plan = replace(builders.plan(cells), links=links, virtual=None)
    return replace(builders.run(plan), facts={})
