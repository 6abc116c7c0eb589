"""Attribute retransmits to the place where the segments were lost, if counters show it.

There are two kinds of evidence. A *hole* is payload that passed one counting point and not the next. *Drops* are what a
queue, a port or an interface counted itself; they may be of other traffic, and a drop may be a super-packet, so they
count only without a balance at that point. A place is named only if its share of the retransmits is `LEAST_SHARE` or
more. Losses that other traffic could hide are not guessed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rigctl.model.counters.balance import Reconciliation
from rigctl.model.counters.points import (
    Counted,
    CountingPoint,
    PointKind,
    Wiring,
    by_ends_of,
    retransmitted_bytes,
)
from rigctl.model.unknowns import total
from rigctl.records import Flow

LEAST_SHARE: Final = 0.2
LEAST_SEGMENTS: Final = 3  # fewer are below what an address lookup or two add to an interface's counters
MOST_EXCESS: Final = 0.25
"""If a point counted more than the flows sent, by this share of the next hole or more, that hole's size is unknown."""
MOST_HOLE: Final = 1.5
"""A hole larger than this multiple of the retransmits is no loss: TCP would have retransmitted that too."""

MOST_POINTS: Final = 3
"""A name lists at most this many counting points, and counts more."""


class Where(StrEnum):
    """The places where segments can be lost."""

    QUEUE = "the sender's queue"
    CABLE = "the cable"
    SWITCH = "the switch"
    RECEIVER = "the receiver's interface"
    BETWEEN = "between two counting points"  # nothing counts in between
    NOWHERE = "nowhere on the path"  # they arrived: dropped behind the interface, or retransmitted needlessly
    UNATTRIBUTED = "unattributed"


@dataclass(frozen=True, slots=True)
class Attribution:
    """About how many of the retransmitted segments were lost at one place. `evidence` is part of a sentence."""

    where: Where
    name: str
    segments_about: int
    evidence: str


@dataclass(frozen=True, slots=True)
class _Stream:
    """The flows from one node to another: their path and what they retransmitted; None is unknown."""

    path: tuple[CountingPoint, ...]
    segments: int | None
    octets: int
    sizes: tuple[int, ...]  # the MSS of each flow that reports it


@dataclass(frozen=True, slots=True)
class _Step:
    """Some counting points and the next known ones on the streams' paths. `before` empty: from the agents."""

    before: tuple[CountingPoint, ...]
    after: tuple[CountingPoint, ...]
    streams: tuple[_Stream, ...]


def attribute(
    flows: Sequence[Flow],
    wiring: Wiring,
    counted: Mapping[CountingPoint, Counted],
    balance: Mapping[CountingPoint, Reconciliation],
) -> list[Attribution]:
    """Return where the segments that `flows` retransmitted were lost; the rest is unattributed.

    The result is empty without retransmits, and if those of some flow are unknown.
    """
    streams = [_stream_of(wiring.path(*ends), own) for ends, own in by_ends_of(flows).items()]
    retransmitted = _segments(streams)
    if not retransmitted:
        return []
    holes = [(step, hole) for step in _steps(streams, balance) for hole in _hole(step, balance)]
    # A balance that covers the point that counted drops has precedence.
    looked_at = {point for step, _ in holes for point in _droppers(step)}
    dropped = dict(_from_drops(streams, counted, looked_at))
    found = list(dropped.values())
    for step, hole in holes:
        told = 0
        if dropped and _where(step) is Where.BETWEEN:
            inside = {point for stream in step.streams for point in stream.path if point.kind is not PointKind.NIC_IN}
            told = sum(dropped[point].segments_about for point in inside & dropped.keys())
        found.extend(_from_hole(step, hole, told, counted))
    left = retransmitted - sum(attribution.segments_about for attribution in found)
    if left < max(1, LEAST_SHARE * retransmitted):
        return found
    if _all_arrived(streams, balance, retransmitted - left):
        needless = "the receivers' interfaces counted them all: dropped behind those, or retransmitted needlessly"
        return [*found, Attribution(Where.NOWHERE, "nowhere on the path", left, needless)]
    return [*found, Attribution(Where.UNATTRIBUTED, "unattributed", left, "no counter shows where")]


def _stream_of(path: tuple[CountingPoint, ...], flows: Sequence[Flow]) -> _Stream:
    sizes = [flow.sender.tcp.mss for flow in flows if flow.sender is not None and flow.sender.tcp.mss]
    return _Stream(
        path,
        total(None if flow.sender is None else flow.sender.tcp.retransmits for flow in flows),
        sum(retransmitted_bytes(flow) or 0 for flow in flows),
        tuple(sizes),
    )


def _segments(streams: Sequence[_Stream]) -> int | None:
    return total(stream.segments for stream in streams)


def _segment_bytes(streams: Sequence[_Stream]) -> float:
    sizes = [size for stream in streams for size in stream.sizes]
    return sum(sizes) / len(sizes) if sizes else 1448.0


def _steps(streams: Sequence[_Stream], balance: Mapping[CountingPoint, Reconciliation]) -> list[_Step]:
    """Return the steps of all paths over the points whose balance is known; steps that share a point are one."""
    edges: list[tuple[CountingPoint | None, CountingPoint, _Stream]] = []
    for stream in streams:
        known = [point for point in stream.path if _is_known(balance.get(point))]
        edges.extend((known[at - 1] if at else None, point, stream) for at, point in enumerate(known))
    groups: dict[int, list[int]] = {}
    # A point is the start of one step and the end of another: these are different keys.
    group_of: dict[tuple[str, CountingPoint], int] = {}
    for number, (before, after, _) in enumerate(edges):
        keys = [("to", after), *([("from", before)] if before is not None else [])]
        groups[number] = [number]
        for other in {group_of[key] for key in keys if key in group_of}:
            groups[number] += groups.pop(other)
        for member in groups[number]:
            left, reached, _ = edges[member]
            group_of["to", reached] = number
            if left is not None:
                group_of["from", left] = number
    steps = [_step_of([edges[at] for at in sorted(group)]) for group in sorted(groups.values(), key=min)]
    return [part for step in steps for part in _parts(step, balance)]


def _parts(step: _Step, balance: Mapping[CountingPoint, Reconciliation]) -> Iterator[_Step]:
    """Split a step to several points into one step to each, if nothing was missing before it."""
    least = LEAST_SEGMENTS * _segment_bytes(step.streams)
    if any(abs(balance[point].short_octets or 0.0) >= least for point in step.before):
        yield step
        return
    for point in step.after:
        yield _Step(step.before, (point,), tuple(stream for stream in step.streams if point in stream.path))


def _step_of(edges: Sequence[tuple[CountingPoint | None, CountingPoint, _Stream]]) -> _Step:
    before = tuple(dict.fromkeys(point for point, _, _ in edges if point is not None))
    after = tuple(dict.fromkeys(point for _, point, _ in edges))
    return _Step(before, after, tuple(stream for _, _, stream in edges))


def _is_known(balance: Reconciliation | None) -> bool:
    return balance is not None and balance.short_octets is not None


def _hole(step: _Step, balance: Mapping[CountingPoint, Reconciliation]) -> Iterator[float]:
    """Yield the payload octets that were lost in `step`, if that is certain enough to report."""
    lost_before = sum(max(0.0, balance[point].short_octets or 0.0) for point in step.before)
    lost_after = sum(max(0.0, balance[point].short_octets or 0.0) for point in step.after)
    excess = sum(max(0.0, -(balance[point].short_octets or 0.0)) for point in (*step.before, *step.after))
    uncertain = sum(balance[point].uncertain_octets for point in (*step.before, *step.after))
    hole = max(0.0, lost_after - lost_before)
    retransmitted = sum(stream.octets for stream in step.streams)
    # Other traffic at one of the points may hide a loss there, or look like one here.
    least = LEAST_SEGMENTS * _segment_bytes(step.streams)
    hidden = excess > max(least, MOST_EXCESS * max(hole, LEAST_SHARE * retransmitted))
    if not hidden and uncertain <= max(least, MOST_EXCESS * hole) and hole <= max(least, MOST_HOLE * retransmitted):
        yield hole


def _from_hole(step: _Step, hole: float, told: int, counted: Mapping[CountingPoint, Counted]) -> Iterator[Attribution]:
    """Yield the attribution of a hole; `told` of its segments are already attributed to drops within it."""
    own = _segments(step.streams) or 0
    lost = min(round(hole / _segment_bytes(step.streams)), own) - told
    if lost >= max(LEAST_SEGMENTS, LEAST_SHARE * own):
        yield _named(step, lost, counted)


def _named(step: _Step, segments: int, counted: Mapping[CountingPoint, Counted]) -> Attribution:
    where = _where(step)
    drops = [
        (point, number) for point in _droppers(step) if (number := counted[point].drops) is not None and number > 0
    ]
    evidence = "its octets in and out differ by as much"
    if where is Where.QUEUE:
        evidence = "its interface sent less than the flows did, by as much"
    elif where is not Where.SWITCH:
        evidence = "octets counted before and after it differ by as much"
    if drops:
        evidence += ", and " + ", ".join(f"{point} counted {number} drops" for point, number in drops)
    return Attribution(where, _name(where, step, [point for point, _ in drops]), segments, evidence)


def _droppers(step: _Step) -> tuple[CountingPoint, ...]:
    """Return the points whose own drops lie within the step: those of an interface on sending, of a port either way."""
    inside = [point for point in step.after if point.direction == "out"]
    return (*(point for point in step.before if point.kind in (PointKind.PORT_IN, PointKind.TRUNK_IN)), *inside)


def _where(step: _Step) -> Where:
    after = {point.kind for point in step.after}
    if not step.before:
        return Where.QUEUE if after == {PointKind.NIC_OUT} else Where.BETWEEN
    before = {point.kind for point in step.before}
    if len({point.owner for point in (*step.before, *step.after)}) == 1 and before <= {
        PointKind.PORT_IN,
        PointKind.TRUNK_IN,
    }:
        return Where.SWITCH
    if (before, after) in (({PointKind.NIC_OUT}, {PointKind.PORT_IN}), ({PointKind.TRUNK_OUT}, {PointKind.TRUNK_IN})):
        return Where.CABLE
    return Where.RECEIVER if (before, after) == ({PointKind.PORT_OUT}, {PointKind.NIC_IN}) else Where.BETWEEN


def _name(where: Where, step: _Step, droppers: Sequence[CountingPoint]) -> str:
    into, out_of = _names(step.after), _names(step.before)
    if where is Where.QUEUE:
        return f"the queue of {', '.join(point.owner for point in step.after)}"
    if where is Where.SWITCH:
        ports = droppers or step.after
        names = ", ".join("+".join(point.ports) for point in ports)
        return f"switch {step.after[0].owner}, port {names}"
    if where is Where.CABLE:
        return f"the cable from {out_of} to {into}"
    if where is Where.RECEIVER:
        return f"the cable from {out_of} to {into}, or that interface"
    return f"between {out_of} and {into}" if out_of else f"before {into}"


def _names(points: Sequence[CountingPoint]) -> str:
    if len(points) <= MOST_POINTS:
        return ", ".join(str(point) for point in points)
    interfaces = sum(point.kind in (PointKind.NIC_OUT, PointKind.NIC_IN) for point in points)
    kinds = "ports" if not interfaces else "interfaces" if interfaces == len(points) else "interfaces and ports"
    return f"{len(points)} {kinds}"


def _from_drops(
    streams: Sequence[_Stream], counted: Mapping[CountingPoint, Counted], looked_at: set[CountingPoint]
) -> Iterator[tuple[CountingPoint, Attribution]]:
    """Yield the drops that points counted themselves, if no balance covers them; at most the retransmits."""
    passing: dict[CountingPoint, list[_Stream]] = {}
    for stream in streams:
        for point in stream.path:
            passing.setdefault(point, []).append(stream)
    for point, own_streams in passing.items():
        counts, own = counted.get(point), _segments(own_streams) or 0
        drops = counts.drops if counts is not None and point not in looked_at else None
        if not own or drops is None or drops < max(LEAST_SEGMENTS, LEAST_SHARE * own):
            continue
        where = {PointKind.NIC_OUT: Where.QUEUE, PointKind.NIC_IN: Where.RECEIVER}.get(point.kind, Where.SWITCH)
        name = {Where.QUEUE: f"the queue of {point.owner}", Where.RECEIVER: str(point)}.get(
            where, f"switch {point.owner}, port {'+'.join(point.ports)}"
        )
        yield point, Attribution(where, name, min(drops, own), f"it counted {drops} drops")


def _all_arrived(streams: Sequence[_Stream], balance: Mapping[CountingPoint, Reconciliation], lost: int) -> bool:
    """Tell whether the receivers' interfaces counted everything sent but the `lost` segments."""
    ends = {stream.path[-1] for stream in streams}
    if not all(_is_known(balance.get(point)) for point in ends):
        return False
    shorts = [balance[point].short_octets or 0.0 for point in ends]
    slack = (lost + LEAST_SEGMENTS) * _segment_bytes(streams)
    return all(abs(short) <= slack for short in shorts) and sum(shorts) <= slack
