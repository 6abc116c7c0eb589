"""Where segments were lost: retransmits are attributed to the counting point whose counters
show it, or to none.

Two kinds of evidence. A *hole*: payload that passed one counting point and not the next. And *drops* that a queue, a
port or an interface counted itself; they may be of other traffic, and a drop may be a super-packet, so they count only
where there is no hole to look at. A point is named only where its share of the retransmits is `LEAST_SHARE` or more;
what other traffic could have hidden is not guessed.
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
"""Where a point counted more than the flows sent, by this share of the next hole or more, the size of that hole is
unknown."""
MOST_HOLE: Final = 1.5
"""A hole larger than this multiple of what was retransmitted is no loss: TCP would have retransmitted that too."""

MOST_POINTS: Final = 3
"""More counting points than this are counted in a name, not listed."""


class Where(StrEnum):
    """Where segments can be lost."""

    QUEUE = "the sender's queue"
    CABLE = "the cable"
    SWITCH = "the switch"
    RECEIVER = "the receiver's interface"
    BETWEEN = "between two counting points"  # nothing counts in between
    NOWHERE = "nowhere on the path"  # they reached the receiver: dropped behind that, or retransmitted needlessly
    UNATTRIBUTED = "unattributed"


@dataclass(frozen=True, slots=True)
class Attribution:
    """About how many of the retransmitted segments were lost where. `evidence` is part of a sentence."""

    where: Where
    name: str
    segments_about: int
    evidence: str


@dataclass(frozen=True, slots=True)
class _Stream:
    """The flows from one node to another: their path and what they retransmitted; `segments` `None`: unknown."""

    path: tuple[CountingPoint, ...]
    segments: int | None
    octets: int
    mss_sum: int  # over the flows that know theirs
    mss_flows: int


@dataclass(frozen=True, slots=True)
class _Step:
    """From some counting points to the next known ones of the streams between them. `before` empty: from the agents."""

    before: tuple[CountingPoint, ...]
    after: tuple[CountingPoint, ...]
    streams: tuple[_Stream, ...]


def attribute(
    flows: Sequence[Flow],
    wiring: Wiring,
    counted: Mapping[CountingPoint, Counted],
    balance: Mapping[CountingPoint, Reconciliation],
) -> list[Attribution]:
    """Where the segments that `flows` retransmitted were lost; the rest as unattributed. Empty without retransmits.

    Unknown values are never guessed: where the retransmits of some flow are unknown, the result is empty.
    """
    streams = [_stream_of(wiring.path(*ends), own) for ends, own in by_ends_of(flows).items()]
    retransmitted = _segments(streams)
    if not retransmitted:
        return []
    holes = [(step, hole) for step in _steps(streams, balance) for hole in _hole(step, balance)]
    # Where a balance covers the point that counted drops, the balance is used.
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
        total([None if flow.sender is None else flow.sender.tcp.retransmits for flow in flows]),
        sum(retransmitted_bytes(flow) or 0 for flow in flows),
        sum(sizes),
        len(sizes),
    )


def _segments(streams: Sequence[_Stream]) -> int | None:
    """Retransmits of all of them."""
    return total([stream.segments for stream in streams])


def _segment_bytes(streams: Sequence[_Stream]) -> float:
    known = sum(stream.mss_flows for stream in streams)
    return sum(stream.mss_sum for stream in streams) / known if known else 1448.0


def _steps(streams: Sequence[_Stream], balance: Mapping[CountingPoint, Reconciliation]) -> list[_Step]:
    """The steps of all streams' paths over the points whose balance is known; those that share a point are one."""
    edges: list[tuple[CountingPoint | None, CountingPoint, _Stream]] = []
    for stream in streams:
        known = [point for point in stream.path if _is_known(balance.get(point))]
        edges.extend((known[at - 1] if at else None, point, stream) for at, point in enumerate(known))
    groups: dict[int, list[int]] = {}
    # A point is left in one step and reached in another: these are different keys.
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
    """A step to several points as one step to each, where nothing was missing before: each loss is then its own."""
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
    """Payload octets that were lost in `step`, where that is certain enough to report."""
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


def _from_hole(
    step: _Step,
    hole: float,
    told: int,
    counted: Mapping[CountingPoint, Counted],
) -> Iterator[Attribution]:
    """What to report of a hole; `told` of its segments are already attributed to drops that lie within it."""
    size = _segment_bytes(step.streams)
    own = _segments(step.streams) or 0
    lost = min(round(hole / size), own) - told
    if lost < max(LEAST_SEGMENTS, LEAST_SHARE * own):
        return
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
    """The points whose own drops lie within the step: what an interface drops on sending, and a port either way."""
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
    """What counting points counted as dropped themselves, where no balance covers them. Never more than was
    retransmitted."""
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
    """Whether the receivers' interfaces counted everything sent but the `lost` segments known about."""
    ends = {stream.path[-1] for stream in streams}
    if not all(_is_known(balance.get(point)) for point in ends):
        return False
    shorts = [balance[point].short_octets or 0.0 for point in ends]
    slack = (lost + LEAST_SEGMENTS) * _segment_bytes(streams)
    return all(abs(short) <= slack for short in shorts) and sum(shorts) <= slack
