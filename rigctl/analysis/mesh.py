"""Meshes: goodput from every node to every other, nodes that are slow to or from all, pairs whose directions differ.

A pair is taken to reach what the slower of its ends can do: min(sending of its source, receiving of its destination).
So a node's capacity in a role is seen where its partner is fast: it is the highest goodput of its row or column. The
node whose capacity is furthest below the usual one is slow and leaves that role; then the rest is looked at again, so
that a slow node does not make others look slow.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median, median_high
from typing import Final, Literal, TypeAlias

from rigctl.analysis.summary import CellSummary, Estimate, StreamSummary
from rigctl.model.unknowns import mean
from rigctl.records import Cell

Role: TypeAlias = Literal["sending", "receiving"]
Ends: TypeAlias = tuple[str, str]
"""Sender and receiver of the data."""

SLOW: Final = 0.15
"""A node is slow whose capacity is below the usual one by more than this share."""
DIFFER: Final = 0.10
"""Directions of a pair that differ by more than this share of the faster are reported."""
BEYOND: Final = 0.25
"""A direction that is slower than its slow node by more than this share is not explained by that node."""
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
    limit: str | None = None  # None: the test had other pairs, too

    @property
    def ends(self) -> Ends:
        return self.sender, self.receiver

    @property
    def mbps(self) -> float | None:
        return None if self.goodput_mbps is None else self.goodput_mbps.mean


@dataclass(frozen=True, slots=True)
class SlowNode:
    """A node that is slow to (`sending`) or from (`receiving`) everybody, or both."""

    node: str
    roles: tuple[Role, ...]
    mbps: float  # median of its pairs in these roles, without those with other slow nodes
    others_mbps: float  # median of the pairs of no slow node


@dataclass(frozen=True, slots=True)
class Lopsided:
    """A pair whose directions differ, which no slow node explains."""

    slower: Way
    faster: Way

    @property
    def share(self) -> float:
        """By what share of the faster."""
        return 1 - (self.slower.mbps or 0.0) / self.faster.mbps if self.faster.mbps else 0.0


@dataclass(frozen=True, slots=True)
class Mesh:
    """A point of the other axes: `point` is its settings, without pairs."""

    point: Cell
    nodes: tuple[str, ...]
    ways: Mapping[Ends, Way]
    slow: tuple[SlowNode, ...]
    lopsided: tuple[Lopsided, ...]  # the largest difference first

    @property
    def known(self) -> list[Way]:
        """The measured ways, the slowest first."""
        return sorted((way for way in self.ways.values() if way.mbps is not None), key=lambda way: way.mbps or 0.0)


def meshes(cells: Sequence[CellSummary], order: Iterable[str]) -> tuple[Mesh, ...]:
    """A mesh for each point of the axes at which every node sent to every other, three nodes or more.

    No node may have been in two pairs at once: those would share its link. `order` is that of the nodes in the rig.
    """
    points: dict[Cell, list[CellSummary]] = {}
    for cell in cells:
        points.setdefault(replace(cell.cell, number=0, pairs=(), capture=False), []).append(cell)
    ranks = {name: number for number, name in enumerate(order)}
    found = (_mesh(point, own, ranks) for point, own in points.items())
    return tuple(mesh for mesh in found if mesh is not None)


def _mesh(point: Cell, cells: Sequence[CellSummary], ranks: Mapping[str, int]) -> Mesh | None:
    grouped: dict[Ends, list[tuple[CellSummary, StreamSummary]]] = {}
    for cell in cells:
        busy = [node for pair in cell.cell.pairs for node in (pair.source, pair.destination)]
        if len(busy) > len(set(busy)):
            return None
        for stream in cell.streams:
            grouped.setdefault(stream.stream.ends, []).append((cell, stream))
    nodes = tuple(sorted({node for ends in grouped for node in ends}, key=lambda node: ranks.get(node, len(ranks))))
    if len(nodes) <= LEAST or len(grouped) < len(nodes) * (len(nodes) - 1):
        return None
    ways = {ends: _way(ends, own) for ends, own in grouped.items()}
    slow = slow_nodes(nodes, ways)
    return Mesh(point, nodes, ways, slow, lopsided(nodes, ways, slow)) if any(w.mbps for w in ways.values()) else None


def _way(ends: Ends, measured: Sequence[tuple[CellSummary, StreamSummary]]) -> Way:
    """Where both directions were measured at once each way is there twice, and the mean of both is taken."""
    known = [stream.goodput_mbps for _, stream in measured if stream.goodput_mbps is not None]
    spreads = [estimate.spread for estimate in known if estimate.spread is not None]
    goodput = Estimate(fmean(item.mean for item in known), max(spreads, default=None)) if known else None
    losses = mean(stream.datagrams.loss_pct for _, stream in measured if stream.datagrams is not None)
    again = mean(stream.retransmits for _, stream in measured)
    cell = measured[0][0]
    limit = cell.limit if len(cell.streams) == 1 and cell.counted else None
    return Way(*ends, cell.cell.number, goodput, again, losses, limit)


def slow_nodes(nodes: Sequence[str], ways: Mapping[Ends, Way]) -> tuple[SlowNode, ...]:
    """The slow nodes, in the order of `nodes`, each once."""
    mbps = {ends: way.mbps for ends, way in ways.items() if way.mbps is not None}
    active: dict[Role, list[str]] = {"sending": list(nodes), "receiving": list(nodes)}
    while True:
        known = {
            (node, role): capacity
            for role, able in active.items()
            for node in able
            if (capacity := _capacity(_values(node, role, mbps, active))) is not None
        }
        if not known:
            break
        node, role = min(known, key=lambda place: known[place])
        if known[node, role] >= (1 - SLOW) * median_high(known.values()):
            break
        active[role].remove(node)
    fast = [value for (sender, receiver), value in mbps.items() if _able(active, sender, receiver)]
    made = []
    for node in nodes:
        roles: tuple[Role, ...] = tuple(role for role, able in active.items() if node not in able)
        if roles and fast:
            own = [value for role in roles for value in _values(node, role, mbps, active)]
            own = own or [value for ends, value in mbps.items() if node in ends]
            made.append(SlowNode(node, roles, median(own), median(fast)))
    return tuple(made)


def _values(node: str, role: Role, mbps: Mapping[Ends, float], active: Mapping[Role, Sequence[str]]) -> list[float]:
    """A node's goodput in a role, with the partners that are not slow in theirs."""
    partners = active["receiving" if role == "sending" else "sending"]
    ends = [(node, other) if role == "sending" else (other, node) for other in partners if other != node]
    return [mbps[pair] for pair in ends if pair in mbps]


def _capacity(values: Sequence[float]) -> float | None:
    return max(values) if len(values) >= LEAST else None


def _able(active: Mapping[Role, Sequence[str]], sender: str, receiver: str) -> bool:
    return sender in active["sending"] and receiver in active["receiving"]


def lopsided(nodes: Sequence[str], ways: Mapping[Ends, Way], slow: Sequence[SlowNode]) -> tuple[Lopsided, ...]:
    """Pairs whose directions differ by more than `DIFFER` and by more than both spreads; without what is explained."""
    levels: dict[tuple[str, Role], float] = {(node.node, role): node.mbps for node in slow for role in node.roles}
    found = []
    for number, left in enumerate(nodes):
        for right in nodes[number + 1 :]:
            both = [ways[ends] for ends in ((left, right), (right, left)) if ways[ends].mbps is not None]
            if len(both) < len((left, right)):
                continue
            pair = Lopsided(*sorted(both, key=lambda way: way.mbps or 0.0))
            if pair.share > DIFFER and _difference(pair) > _spread(pair) and not _explained(pair.slower, levels):
                found.append(pair)
    return tuple(sorted(found, key=lambda pair: -pair.share))


def _difference(pair: Lopsided) -> float:
    return (pair.faster.mbps or 0.0) - (pair.slower.mbps or 0.0)


def _spread(pair: Lopsided) -> float:
    estimates = (pair.slower.goodput_mbps, pair.faster.goodput_mbps)
    return sum(estimate.spread or 0.0 for estimate in estimates if estimate is not None)


def _explained(slower: Way, levels: Mapping[tuple[str, Role], float]) -> bool:
    own = [levels.get((slower.sender, "sending")), levels.get((slower.receiver, "receiving"))]
    known = [level for level in own if level is not None]
    return bool(known) and (slower.mbps or 0.0) >= (1 - BEYOND) * min(known)
