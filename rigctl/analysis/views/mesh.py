"""Evaluate meshes (tests between all pairs of nodes): find slow nodes, and pairs whose directions differ.

The slower node of a pair limits its goodput. So the capacity of a node as sender, or as receiver, is its highest
goodput over all partners. The node whose capacity is furthest below the usual capacity is slow, and is removed from
this role. Then the other nodes are judged again, so that a slow node does not make others look slow.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean, median, median_high, median_low
from typing import Final, Literal, TypeAlias

from rigctl.analysis.views.messages import MessageResult
from rigctl.base.values import common_value, group_by, least, mean, most
from rigctl.figures.datagrams import LOSS
from rigctl.figures.messages import ROUND_TRIP_P50, ROUND_TRIP_P99
from rigctl.limits.hosts import WindowCause
from rigctl.records import Cell
from rigctl.results.summary import CellSummary, Estimate

Role: TypeAlias = Literal["sending", "receiving"]
MeshEnds: TypeAlias = tuple[str, str]  # the names of the sender and the receiver of data
LEAST: Final = 2  # a node is judged only if results with at least this number of partners are known


@dataclass(frozen=True, slots=True)
class Way:
    """The results for data from `sender` to `receiver`, as means over repetitions; None if unknown."""

    sender: str
    receiver: str
    test: int
    goodput_mbps: Estimate | None
    retransmits: float | None
    loss_pct: float | None = None  # per cent of datagrams lost; None for TCP
    limit: str | None = None  # what limits this pair; None if not measured
    rtt_p50_us: float | None = None  # median round-trip time of messages, if they are answered
    rtt_p99_us: float | None = None
    mtu: int | None = None  # path MTU
    ceiling_mbps: float | None = None
    window: WindowCause | None = None  # why the window is small, if the window is the limit

    @property
    def ends(self) -> MeshEnds:
        return self.sender, self.receiver

    @property
    def mbps(self) -> float | None:
        return None if self.goodput_mbps is None else self.goodput_mbps.mean


MeshTest: TypeAlias = tuple[Cell, Sequence[Way]]  # a test with its results, one for each sender and receiver


def of_streams(cells: Iterable[CellSummary]) -> Iterator[MeshTest]:
    """Yield each stream test (TCP or UDP) with its results."""
    for cell in cells:
        ways = [
            Way(
                *stream.stream.ends,
                cell.cell.number,
                stream.goodput_mbps,
                stream.retransmits,
                stream[LOSS],
                stream.limit if cell.counted else None,
                mtu=stream.mtu,
                ceiling_mbps=stream.ceiling_mbps,
                window=cell.window_cause if stream == cell.binding else None,
            )
            for stream in cell.streams
        ]
        yield cell.cell, ways


def of_messages(results: Iterable[MessageResult]) -> Iterator[MeshTest]:
    """Yield each test that counts messages, and its result: round-trip times if they are answered, else goodput.

    Tests that open connections, begin requests at a given rate, send bursts or send to a group have neither and are
    left out.
    """
    for result in results:
        if not result.cell.kind.transfers:
            continue
        ends, number = result.stream.ends, result.cell.number
        again = result.retransmits_each
        if result.cell.kind.round_trips:
            way = Way(*ends, number, None, again, rtt_p50_us=result[ROUND_TRIP_P50], rtt_p99_us=result[ROUND_TRIP_P99])
        else:
            rate = result.bytes_per_s
            way = Way(*ends, number, None if rate is None else Estimate(rate * 8 / 1e6), again)
        yield result.cell, [way]


def average_ways(ways: Sequence[Way]) -> Way:
    """Return the mean of results with equal sender and receiver: bidirectional tests measure a direction twice."""
    known = [way.goodput_mbps for way in ways if way.goodput_mbps is not None]
    spread = most(estimate.spread for estimate in known)
    return replace(
        ways[0],
        goodput_mbps=Estimate(fmean(estimate.mean for estimate in known), spread) if known else None,
        retransmits=mean(way.retransmits for way in ways),
        loss_pct=mean(way.loss_pct for way in ways),
        limit=common_value(way.limit for way in ways),
        rtt_p50_us=mean(way.rtt_p50_us for way in ways),
        rtt_p99_us=mean(way.rtt_p99_us for way in ways),
        mtu=least(way.mtu for way in ways),
        ceiling_mbps=mean(way.ceiling_mbps for way in ways),
    )


def by_ends(measured: Sequence[MeshTest]) -> dict[MeshEnds, Way] | None:
    """Return the results by (sender, receiver); None if a node was in two pairs at once, as they share its link."""
    if any(len(cell.nodes) < 2 * len(cell.pairs) for cell, _ in measured):
        return None
    ways = group_by((way for _, own in measured for way in own), lambda way: way.ends)
    return {ends: average_ways(own) for ends, own in ways.items()}


SLOW: Final = 0.15  # a node is slow if its capacity is below the usual capacity by more than this share
DIFFER: Final = 0.10  # directions of a pair are reported if they differ by more than this share of the faster one
_BEYOND: Final = 0.25  # a slow node does not explain a goodput that is below the node's by more than this share
FAR: Final = 1.5  # a node is far if its shortest round-trip time is more than this factor times the usual one
_OTHER: Final[dict[Role, Role]] = {"sending": "receiving", "receiving": "sending"}


@dataclass(frozen=True, slots=True)
class SlowNode:
    """A node that is slow with all partners: as sender, as receiver, or both (`roles`)."""

    node: str
    roles: tuple[Role, ...]
    mbps: float  # median goodput of the node with partners that are not slow
    others_mbps: float  # median goodput of pairs without slow nodes


@dataclass(frozen=True, slots=True)
class UnequalPair:
    """A pair whose two directions differ in goodput, with no slow node that explains the difference."""

    slower: Way
    faster: Way

    @property
    def share(self) -> float:
        """Return by which share the slower direction is below the faster direction."""
        return 1 - (self.slower.mbps or 0.0) / self.faster.mbps if self.faster.mbps else 0.0


def slow_nodes(nodes: Sequence[str], ways: Mapping[MeshEnds, Way]) -> tuple[SlowNode, ...]:
    """Return the nodes that are slow in sending, receiving or both, in the order of `nodes`."""
    mbps = {ends: way.mbps for ends, way in ways.items() if way.mbps is not None}
    active: dict[Role, list[str]] = {"sending": list(nodes), "receiving": list(nodes)}

    def values(node: str, role: Role) -> list[float]:
        """Return the goodputs of a node in a role, with all partners that are not slow in the other role."""
        ends = [(node, other) if role == "sending" else (other, node) for other in active[_OTHER[role]]]
        return [mbps[pair] for pair in ends if pair in mbps]

    while True:
        places: list[tuple[str, Role]] = [(node, role) for role, able in active.items() for node in able]
        known = {place: max(own) for place in places if len(own := values(*place)) >= LEAST}
        if not known:
            break
        node, role = min(known, key=lambda place: known[place])
        if known[node, role] >= (1 - SLOW) * median_high(known.values()):
            break
        active[role].remove(node)
    able = [value for ends, value in mbps.items() if ends[0] in active["sending"] and ends[1] in active["receiving"]]
    found = []
    for node in nodes:
        roles: tuple[Role, ...] = tuple(role for role, own in active.items() if node not in own)
        if roles and able:
            slow = [value for role in roles for value in values(node, role)]
            slow = slow or [value for ends, value in mbps.items() if node in ends]
            found.append(SlowNode(node, roles, median(slow), median(able)))
    return tuple(found)


def are_comparable(nodes: Iterable[str], ways: Iterable[Way]) -> bool:
    """Tell whether every node was measured with enough other nodes, both as sender and as receiver."""
    known = [way.ends for way in ways if way.mbps is not None]
    senders, receivers = Counter(ends[0] for ends in known), Counter(ends[1] for ends in known)
    return all(min(senders[node], receivers[node]) >= LEAST for node in nodes)


BEHIND: Final = 0.05
"""A node that is not slow is behind if its pairs are slower than all others, and than their median by this share."""


def nodes_behind(
    nodes: Sequence[str], ways: Mapping[MeshEnds, Way], apart: Collection[MeshEnds] = ()
) -> tuple[SlowNode, ...]:
    """Return the nodes, at most half of them, whose pairs are all slower than the pairs of the other nodes.

    The pairs `apart`, which have a fault of their own, are left out of the comparison.
    """
    mbps = {ends: way.mbps for ends, way in ways.items() if way.mbps is not None and ends not in apart}
    rows: dict[tuple[str, Role], dict[MeshEnds, float]] = {
        (node, role): {ends: value for ends, value in mbps.items() if ends[role == "receiving"] == node}
        for node in nodes
        for role in _OTHER
    }
    places = [place for place, own in rows.items() if len(own) >= LEAST]
    places.sort(key=lambda place: max(rows[place].values()))
    for count in range(1, len(nodes)):
        chosen = places[:count]
        inside = {ends for place in chosen for ends in rows[place]}
        rest = [value for ends, value in mbps.items() if ends not in inside]
        names = {node for node, _ in chosen}
        if len(rest) < LEAST or 2 * len(names) > len(nodes):
            return ()
        usual = median_low(rest)
        if max(mbps[ends] for ends in inside) < min((1 - BEHIND) * usual, *rest):
            roles = {node: tuple(role for role in _OTHER if (node, role) in chosen) for node in nodes if node in names}
            own = {node: [value for role in roles[node] for value in rows[node, role].values()] for node in roles}
            return tuple(SlowNode(node, roles[node], median_low(own[node]), usual) for node in roles)
    return ()


@dataclass(frozen=True, slots=True)
class FarNode:
    """A node far from all others: its median round-trip time to the nearest node, and the usual value of nodes."""

    node: str
    rtt_us: float
    others_us: float


def far_nodes(nodes: Sequence[str], ways: Mapping[MeshEnds, Way]) -> tuple[FarNode, ...]:
    """Return the nodes whose median round-trip time to the nearest node is more than `FAR` times the usual value."""
    trips = {ends: way.rtt_p50_us for ends, way in ways.items() if way.rtt_p50_us is not None}
    own = {node: [us for ends, us in trips.items() if node in ends] for node in nodes}
    shortest = {node: min(known) for node, known in own.items() if len(known) >= LEAST}
    usual = median_low(shortest.values()) if shortest else 0.0
    return tuple(FarNode(node, us, usual) for node, us in shortest.items() if us > FAR * usual)


@dataclass(frozen=True, slots=True)
class SmallFrames:
    """Nodes on whose paths the MTU is smaller than elsewhere (`others_mtu`), and the ceilings with both MTUs."""

    nodes: tuple[str, ...]
    mtu: int
    others_mtu: int
    ceiling_mbps: float | None
    others_ceiling_mbps: float | None


def small_frames(nodes: Sequence[str], ways: Mapping[MeshEnds, Way]) -> tuple[SmallFrames, ...]:
    """Return the nodes whose MTU is below the largest MTU, grouped by MTU, the smallest MTU first.

    The MTU of a pair is the smaller of both directions: the node with the larger MTU does not know the other MTU.
    """
    pairs: dict[frozenset[str], Way] = {}
    for way in ways.values():
        known = pairs.setdefault(frozenset(way.ends), way)
        if way.mtu is not None and (known.mtu is None or way.mtu < known.mtu):
            pairs[frozenset(way.ends)] = way
    by_mtu = sorted((way for way in pairs.values() if way.mtu), key=lambda way: -(way.mtu or 0))
    best = {node: next((way for way in by_mtu if node in way.ends), None) for node in nodes}
    smaller = [(node, way) for node, way in best.items() if way is not None and way.mtu != by_mtu[0].mtu]
    return tuple(
        SmallFrames(
            tuple(node for node, _ in own), mtu or 0, by_mtu[0].mtu or 0, own[0][1].ceiling_mbps, by_mtu[0].ceiling_mbps
        )
        for mtu, own in sorted(group_by(smaller, lambda one: one[1].mtu).items(), key=lambda one: one[0] or 0)
    )


def find_lopsided(
    nodes: Sequence[str], ways: Mapping[MeshEnds, Way], slow: Sequence[SlowNode]
) -> tuple[UnequalPair, ...]:
    """Return pairs whose directions differ by more than `DIFFER` and the spread, and not because of a slow node."""
    levels = {(node.node, role): node.mbps for node in slow for role in node.roles}
    found = []
    for left, right in combinations(nodes, 2):
        both = [(way.goodput_mbps, way) for ends in ((left, right), (right, left)) if (way := ways.get(ends))]
        known = [(goodput, way) for goodput, way in both if goodput is not None]
        if len(known) < 2:
            continue
        (low, slower), (high, faster) = sorted(known, key=lambda one: one[0].mean)
        level = least((levels.get((slower.sender, "sending")), levels.get((slower.receiver, "receiving"))))
        explained = level is not None and low.mean >= (1 - _BEYOND) * level
        pair, spread = UnequalPair(slower, faster), (low.spread or 0.0) + (high.spread or 0.0)
        if pair.share > DIFFER and high.mean - low.mean > spread and not explained:
            found.append(pair)
    return tuple(sorted(found, key=lambda pair: -pair.share))


@dataclass(frozen=True, slots=True)
class Mesh:
    """Results between all pairs of nodes with one combination of settings; `point` is a test with these settings."""

    point: Cell
    nodes: tuple[str, ...]
    ways: Mapping[MeshEnds, Way]
    slow: tuple[SlowNode, ...]
    lopsided: tuple[UnequalPair, ...]  # sorted: the pair with the largest difference first
    far: tuple[FarNode, ...] = ()
    small: tuple[SmallFrames, ...] = ()
    behind: tuple[SlowNode, ...] = ()  # nodes that are slower than the others, but not slow; none if some are slow

    @property
    def usual_mbps(self) -> float:
        """Return the usual capacity of a node: the median over nodes of their fastest pairs."""
        fastest = [max((way.mbps or 0.0 for way in self.known if node in way.ends), default=0.0) for node in self.nodes]
        return median_high(fastest)

    @property
    def is_comparable(self) -> bool:
        return are_comparable(self.nodes, self.ways.values())

    @property
    def known(self) -> list[Way]:
        """Return the results with a goodput, the slowest first."""
        return sorted((way for way in self.ways.values() if way.mbps is not None), key=lambda way: way.mbps or 0.0)

    @property
    def answered(self) -> list[Way]:
        """Return the results with a round-trip time, the shortest first."""
        known = (way for way in self.ways.values() if way.rtt_p50_us is not None)
        return sorted(known, key=lambda way: way.rtt_p50_us or 0.0)


def meshes(measured: Iterable[MeshTest], order: Iterable[str]) -> tuple[Mesh, ...]:
    """Return a mesh for each combination of settings with which all pairs of at least three nodes were measured.

    `order` has the names of the nodes in the order of the rig file.
    """
    points = group_by(measured, lambda one: replace(one[0], number=0, pairs=(), capture=False, group=None))
    ranks = {name: number for number, name in enumerate(order)}
    return tuple(filter(None, (_mesh(point, own, ranks) for point, own in points.items())))


def _mesh(point: Cell, measured: Sequence[MeshTest], ranks: Mapping[str, int]) -> Mesh | None:
    ways = by_ends(measured) or {}
    nodes = tuple(sorted({node for ends in ways for node in ends}, key=lambda node: ranks.get(node, len(ranks))))
    complete = len(nodes) > LEAST and len(ways) >= len(nodes) * (len(nodes) - 1)
    if not complete or not any(way.mbps or way.rtt_p50_us for way in ways.values()):
        return None
    slow = slow_nodes(nodes, ways)
    apart = {pair.slower.ends for pair in find_lopsided(nodes, ways, slow)}
    judged = not slow and are_comparable(nodes, ways.values())
    behind = (nodes_behind(nodes, ways) or nodes_behind(nodes, ways, apart)) if judged else ()
    differing = find_lopsided(nodes, ways, (*slow, *behind))
    return Mesh(point, nodes, ways, slow, differing, far_nodes(nodes, ways), small_frames(nodes, ways), behind)
