"""What one node sent to another: the ways of a run, which a mesh or a star puts together."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, Literal, TypeAlias

from rigctl.analysis.limits.window_cause import WindowCause
from rigctl.analysis.summary import CellSummary, Estimate
from rigctl.analysis.views.message_results import MessageResult
from rigctl.model.unknowns import least, mean
from rigctl.records import Cell

Role: TypeAlias = Literal["sending", "receiving"]
Ends: TypeAlias = tuple[str, str]
"""Sender and receiver of the data."""

LEAST: Final = 2
"""Fewer partners say nothing of a node."""


@dataclass(frozen=True, slots=True)
class Way:
    """What one node sent to another, means over repetitions."""

    sender: str
    receiver: str
    test: int
    goodput_mbps: Estimate | None
    retransmits: float | None
    loss_pct: float | None = None  # of datagrams
    limit: str | None = None  # its own, whatever limited others of its test; None: nothing was measured
    rtt_p50_us: float | None = None  # of messages that come back
    rtt_p99_us: float | None = None
    mtu: int | None = None  # of the path
    ceiling_mbps: float | None = None
    window: WindowCause | None = None  # where its window is the limit

    @property
    def ends(self) -> Ends:
        return self.sender, self.receiver

    @property
    def mbps(self) -> float | None:
        return None if self.goodput_mbps is None else self.goodput_mbps.mean


Measured: TypeAlias = tuple[Cell, Sequence[Way]]
"""A test with what it measured."""


def of_streams(cells: Iterable[CellSummary]) -> Iterator[Measured]:
    """The ways of tests that count bytes or datagrams."""
    for cell in cells:
        ways = []
        for stream in cell.streams:
            way = Way(
                *stream.stream.ends,
                cell.cell.number,
                stream.goodput_mbps,
                stream.retransmits,
                None if stream.datagrams is None else stream.datagrams.loss_pct,
                stream.limit if cell.counted else None,
                mtu=stream.mtu,
                ceiling_mbps=stream.ceiling_mbps,
                window=cell.window_cause if stream == cell.binding else None,
            )
            ways.append(way)
        yield cell.cell, ways


def of_messages(results: Iterable[MessageResult]) -> Iterator[Measured]:
    """The ways of tests that count messages: round trips where messages come back, else goodput."""
    for result in results:
        ends, number = result.stream.ends, result.cell.number
        again = result.retransmits / len(result.elapsed_s) if result.retransmits is not None else None
        if result.cell.kind.round_trips:
            way = Way(*ends, number, None, again, rtt_p50_us=result.rtt_us(50), rtt_p99_us=result.rtt_us(99))
        else:
            rate = result.bytes_per_s
            way = Way(*ends, number, None if rate is None else Estimate(rate * 8 / 1e6), again)
        yield result.cell, [way]


def merged(ways: Sequence[Way]) -> Way:
    """Where both directions were measured at once each way is there twice, and the mean of both is taken."""
    if len(ways) == 1:
        return ways[0]
    known = [way.goodput_mbps for way in ways if way.goodput_mbps is not None]
    spreads = [estimate.spread for estimate in known if estimate.spread is not None]
    limits = {way.limit for way in ways}
    return Way(
        *ways[0].ends,
        ways[0].test,
        Estimate(fmean(item.mean for item in known), max(spreads, default=None)) if known else None,
        mean(way.retransmits for way in ways),
        mean(way.loss_pct for way in ways),
        limits.pop() if len(limits) == 1 else None,
        mean(way.rtt_p50_us for way in ways),
        mean(way.rtt_p99_us for way in ways),
        least(way.mtu for way in ways),
        mean(way.ceiling_mbps for way in ways),
        ways[0].window,
    )


def by_ends(measured: Iterable[Measured]) -> dict[Ends, Way] | None:
    """The ways of one point; `None` where a node was in two pairs at once: those would share its link."""
    grouped: dict[Ends, list[Way]] = {}
    for cell, ways in measured:
        busy = [node for pair in cell.pairs for node in (pair.source, pair.destination)]
        if len(busy) > len(set(busy)):
            return None
        for way in ways:
            grouped.setdefault(way.ends, []).append(way)
    return {ends: merged(own) for ends, own in grouped.items()}


def centre_of(nodes: Sequence[str], ways: Mapping[Ends, Way]) -> str | None:
    """The node that every way leads to or from, and between which and each other node both were measured."""
    common = set(nodes).intersection(*ways)
    return common.pop() if len(common) == 1 and len(ways) == 2 * (len(nodes) - 1) else None
