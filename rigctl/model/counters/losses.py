"""Find where segments were lost that TCP retransmitted: in a queue, a cable, a switch or an interface.

Two counters are evidence. A *hole* is payload that passed one counting point (interface or port) but not the next.
*Drops* are packets that a queue, port or interface counted as dropped. They may belong to other traffic, or hold
several segments. So drops are used only where holes are unknown. A place is named only if it explains `_LEAST_SHARE`
of the retransmits. Losses that other traffic could hide stay unattributed.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rigctl.base.values import group_by, total
from rigctl.model.counters.balance import Reconciliation
from rigctl.model.counters.points import CountingPoint, PointKind, Wiring, retransmitted_bytes
from rigctl.model.counters.rises import PortCount
from rigctl.records import Flow

_LEAST_SHARE: Final = 0.2
_LEAST_SEGMENTS: Final = 3  # a place is named for at least this many segments; fewer may be ARP
_MOST_EXCESS: Final = 0.25
"""A hole is unknown if points counted more than was sent, by more than this share of the hole."""
_MOST_HOLE: Final = 1.5
"""A hole larger than this multiple of the retransmits is no loss: TCP would have retransmitted more."""

_MOST_POINTS: Final = 3
"""The name of a place lists up to this many counting points; of more it gives only the number."""


class Where(StrEnum):
    """The kinds of places where segments can be lost."""

    QUEUE = "the sender's queue"
    CABLE = "the cable"
    SWITCH = "the switch"
    RECEIVER = "the receiver's interface"
    BETWEEN = "between two counting points"  # no counting point between these two was read
    NOWHERE = "nowhere on the path"  # all segments arrived at the receiver's interface
    UNATTRIBUTED = "unattributed"


@dataclass(frozen=True, slots=True)
class Attribution:
    """About how many retransmitted segments were lost at one place. `evidence` is a clause for a sentence."""

    where: Where
    name: str
    segments_about: int
    evidence: str


@dataclass(frozen=True, slots=True)
class _Stream:
    """The TCP flows from one node to another. `segments` and `octets` were retransmitted; `segments` may be unknown."""

    path: tuple[CountingPoint, ...]
    segments: int | None
    octets: int
    sizes: tuple[int, ...]  # MSS in bytes of each flow that reports one


@dataclass(frozen=True, slots=True)
class _Step:
    """A path section between counting points with known octets. `before` is empty where a path begins."""

    before: tuple[CountingPoint, ...]
    after: tuple[CountingPoint, ...]
    streams: tuple[_Stream, ...]

    @property
    def droppers(self) -> tuple[CountingPoint, ...]:
        """Return the points whose drops are losses in this step: ports in and out, and interfaces that send."""
        inside = [point for point in self.after if point.direction == "out"]
        return (*(point for point in self.before if point.kind in _INTO_SWITCH), *inside)

    @property
    def where(self) -> Where:
        before, after = ({point.kind for point in points} for points in (self.before, self.after))
        if not before:
            return Where.QUEUE if after == {PointKind.NIC_OUT} else Where.BETWEEN
        if len({point.owner for point in (*self.before, *self.after)}) == 1 and before <= _INTO_SWITCH:
            return Where.SWITCH
        return next((where for kinds, where in _BETWEEN.items() if (before, after) == kinds), Where.BETWEEN)

    def name(self, where: Where, droppers: Sequence[CountingPoint]) -> str:
        into, out_of = _names(self.after), _names(self.before)
        if where in (Where.QUEUE, Where.SWITCH):
            return _place(where, droppers if droppers and where is Where.SWITCH else self.after)
        if where is Where.BETWEEN:
            return f"between {out_of} and {into}" if out_of else f"before {into}"
        return f"the cable from {out_of} to {into}{', or that interface' if where is Where.RECEIVER else ''}"


_INTO_SWITCH: Final = frozenset({PointKind.PORT_IN, PointKind.TRUNK_IN})
_BETWEEN: Final[dict[tuple[Set[PointKind], Set[PointKind]], Where]] = {
    (frozenset({PointKind.NIC_OUT}), frozenset({PointKind.PORT_IN})): Where.CABLE,
    (frozenset({PointKind.TRUNK_OUT}), frozenset({PointKind.TRUNK_IN})): Where.CABLE,
    (frozenset({PointKind.PORT_OUT}), frozenset({PointKind.NIC_IN})): Where.RECEIVER,
}


def _place(where: Where, points: Sequence[CountingPoint]) -> str:
    if where is Where.QUEUE:
        return f"the queue of {', '.join(point.owner for point in points)}"
    if where is Where.RECEIVER:
        return str(points[0])
    return f"switch {points[0].owner}, port {', '.join('+'.join(point.ports) for point in points)}"


def _names(points: Sequence[CountingPoint]) -> str:
    if len(points) <= _MOST_POINTS:
        return ", ".join(str(point) for point in points)
    interfaces = sum(not point.ports for point in points)
    kinds = "ports" if not interfaces else "interfaces" if interfaces == len(points) else "interfaces and ports"
    return f"{len(points)} {kinds}"


def attribute(
    flows: Sequence[Flow],
    wiring: Wiring,
    counted: Mapping[CountingPoint, PortCount],
    balance: Mapping[CountingPoint, Reconciliation],
) -> list[Attribution]:
    """Return where the segments that `flows` retransmitted were lost; the last entry has the segments left over.

    The list is empty if nothing was retransmitted, or if the retransmits of a flow are unknown. Ignore UDP flows.
    """
    segmented = (flow for flow in flows if flow.sender is None or flow.sender.datagrams is None)
    by_ends = group_by(segmented, lambda flow: flow.stream.ends)
    streams = [_stream_of(wiring.path(*ends), own) for ends, own in by_ends.items()]
    retransmitted = _segments(streams)
    if not retransmitted:
        return []
    short = {point: own.short_octets for point, own in balance.items() if own.short_octets is not None}
    uncertain = {point: own.uncertain_octets for point, own in balance.items()}
    holes = [(step, _hole(step, short, uncertain)) for step in _steps(streams, short)]
    # Drops are not used within path sections whose lost payload (hole) is known.
    looked_at = {point for step, hole in holes if hole is not None for point in step.droppers}
    dropped = dict(_from_drops(streams, counted, looked_at))
    found = list(dropped.values())
    for step, hole in holes:
        explained = 0
        if step.where is Where.BETWEEN:
            inside = {point for stream in step.streams for point in stream.path if point.kind is not PointKind.NIC_IN}
            explained = sum(dropped[point].segments_about for point in inside & dropped.keys())
        own = _segments(step.streams) or 0
        lost = min(round((hole or 0.0) / _segment_bytes(step.streams)), own) - explained
        if lost >= max(_LEAST_SEGMENTS, _LEAST_SHARE * own):
            found.append(_attribution(step, lost, counted))
    left = retransmitted - sum(attribution.segments_about for attribution in found)
    if left < max(1, _LEAST_SHARE * retransmitted):
        return found
    ends = {stream.path[-1] for stream in streams}
    slack = (retransmitted - left + _LEAST_SEGMENTS) * _segment_bytes(streams)
    shorts = [short.get(point) for point in ends]
    all_short = total(shorts)
    if all_short is not None and all_short <= slack and all(abs(own or 0.0) <= slack for own in shorts):
        needless = "the receivers' interfaces counted them all: dropped behind those, or retransmitted needlessly"
        return [*found, Attribution(Where.NOWHERE, "nowhere on the path", left, needless)]
    return [*found, Attribution(Where.UNATTRIBUTED, "unattributed", left, "no counter shows where")]


def _stream_of(path: tuple[CountingPoint, ...], flows: Sequence[Flow]) -> _Stream:
    sizes = [flow.sender.tcp.mss for flow in flows if flow.sender is not None and flow.sender.tcp.mss]
    segments = total(None if flow.sender is None else flow.sender.tcp.retransmits for flow in flows)
    return _Stream(path, segments, sum(retransmitted_bytes(flow) or 0 for flow in flows), tuple(sizes))


def _segments(streams: Sequence[_Stream]) -> int | None:
    return total(stream.segments for stream in streams)


def _segment_bytes(streams: Sequence[_Stream]) -> float:
    sizes = [size for stream in streams for size in stream.sizes]
    return sum(sizes) / len(sizes) if sizes else 1448.0


def _steps(streams: Sequence[_Stream], short: Mapping[CountingPoint, float]) -> Iterator[_Step]:
    """Yield the path sections (steps) between points with known octets. Steps with a common point are merged."""
    edges: list[tuple[CountingPoint | None, CountingPoint, _Stream]] = []
    for stream in streams:
        known = [point for point in stream.path if point in short]
        edges.extend((before, point, stream) for before, point in zip([None, *known], known, strict=False))
    # A group has edges that share a first ("from") or a last ("to") point. A point may be both in different groups.
    groups: list[tuple[set[tuple[str, CountingPoint]], list[int]]] = []
    for number, (before, after, _) in enumerate(edges):
        keys, members = {("to", after)} | ({("from", before)} if before is not None else set()), [number]
        for group in [group for group in groups if not group[0].isdisjoint(keys)]:
            groups.remove(group)
            keys, members = keys | group[0], members + group[1]
        groups.append((keys, sorted(members)))
    for _, members in sorted(groups, key=lambda group: group[1]):
        own = [edges[at] for at in members]
        before_all = tuple(dict.fromkeys(point for point, _, _ in own if point is not None))
        after_all = tuple(dict.fromkeys(point for _, point, _ in own))
        step = _Step(before_all, after_all, tuple(stream for _, _, stream in own))
        least = _LEAST_SEGMENTS * _segment_bytes(step.streams)
        if any(abs(short[point]) >= least for point in before_all):
            yield step
        else:  # nothing was lost before this step, so each end point is judged alone
            for point in after_all:
                yield _Step(before_all, (point,), tuple(stream for stream in step.streams if point in stream.path))


def _hole(step: _Step, short: Mapping[CountingPoint, float], uncertain: Mapping[CountingPoint, float]) -> float | None:
    """Return how many payload octets were lost in `step`; None if that is too uncertain."""
    both = (*step.before, *step.after)
    lost_before, lost_after = (sum(max(0.0, short[point]) for point in points) for points in (step.before, step.after))
    excess = sum(max(0.0, -short[point]) for point in both)
    hole = max(0.0, lost_after - lost_before)
    retransmitted = sum(stream.octets for stream in step.streams)
    # Other traffic may hide a loss; old readings may look like a loss.
    least = _LEAST_SEGMENTS * _segment_bytes(step.streams)
    hidden = excess > max(least, _MOST_EXCESS * max(hole, _LEAST_SHARE * retransmitted))
    vague = sum(uncertain[point] for point in both) > max(least, _MOST_EXCESS * hole)
    return None if hidden or vague or hole > max(least, _MOST_HOLE * retransmitted) else hole


def _attribution(step: _Step, segments: int, counted: Mapping[CountingPoint, PortCount]) -> Attribution:
    where, drops = step.where, [(point, counted[point].drops or 0) for point in step.droppers]
    evidence = "octets counted before and after it differ by as much"
    if where is Where.QUEUE:
        evidence = "its interface sent less than the flows did, by as much"
    elif where is Where.SWITCH:
        evidence = "its octets in and out differ by as much"
    named = [point for point, number in drops if number > 0]
    if named:
        evidence += ", and " + ", ".join(f"{point} counted {counted[point].drops} drops" for point in named)
    return Attribution(where, step.name(where, named), segments, evidence)


def _from_drops(
    streams: Sequence[_Stream], counted: Mapping[CountingPoint, PortCount], looked_at: Collection[CountingPoint]
) -> Iterator[tuple[CountingPoint, Attribution]]:
    """Yield the losses that drop counters show, at points not in `looked_at`; never more than the retransmits."""
    for point in dict.fromkeys(point for stream in streams for point in stream.path):
        drops = counted[point].drops if point in counted and point not in looked_at else None
        if drops is None or drops < _LEAST_SEGMENTS:
            continue
        own = _segments([stream for stream in streams if point in stream.path]) or 0
        if own and drops >= _LEAST_SHARE * own:
            where = {PointKind.NIC_OUT: Where.QUEUE, PointKind.NIC_IN: Where.RECEIVER}.get(point.kind, Where.SWITCH)
            yield point, Attribution(where, _place(where, [point]), min(drops, own), f"it counted {drops} drops")
