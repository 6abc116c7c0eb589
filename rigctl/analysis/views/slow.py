"""Nodes of a mesh or star that are slow to or from all, and pairs whose directions differ.

A pair is taken to reach what the slower of its ends can do: min(sending of its source, receiving of its destination).
So a node's capacity in a role is seen where its partner is fast: it is the highest goodput of its row or column. The
node whose capacity is furthest below the usual one is slow and leaves that role; then the rest is looked at again, so
that a slow node does not make others look slow.

Around the centre of a star each other node has one value in each role. Where all are low in one role, it is the centre
that is slow in the other; else the nodes are compared with their median in that role.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, median_high, median_low
from typing import Final

from rigctl.analysis.views.directions import LEAST, Ends, Role, Way

SLOW: Final = 0.15
"""A node is slow whose capacity is below the usual one by more than this share."""
DIFFER: Final = 0.10
"""Directions of a pair that differ by more than this share of the faster are reported."""
BEYOND: Final = 0.25
"""A direction that is slower than its slow node by more than this share is not explained by that node."""
FAR: Final = 1.5
"""A node is far whose shortest round trip is this much longer than the usual one."""
_OTHER: Final[dict[Role, Role]] = {"sending": "receiving", "receiving": "sending"}


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


@dataclass(frozen=True, slots=True)
class FarNode:
    """A node from which even the shortest round trip is long; medians."""

    node: str
    rtt_us: float
    others_us: float


def slow_around(centre: str, nodes: Sequence[str], ways: Mapping[Ends, Way]) -> tuple[SlowNode, ...]:
    """The slow nodes of a star, in the order of `nodes`, each once."""
    values: dict[Role, dict[str, float]] = {"sending": {}, "receiving": {}}
    for way in ways.values():
        if way.mbps is not None:
            role: Role = "receiving" if way.sender == centre else "sending"
            values[role][way.receiver if way.sender == centre else way.sender] = way.mbps
    slow: dict[str, list[Role]] = {}
    for role, own in values.items():
        other = values[_OTHER[role]]
        if min(len(own), len(other)) >= LEAST and max(own.values()) < (1 - SLOW) * max(other.values()):
            slow.setdefault(centre, []).append(_OTHER[role])
        elif len(own) >= LEAST:
            usual = median_high(own.values())
            for node in [node for node, mbps in own.items() if mbps < (1 - SLOW) * usual]:
                slow.setdefault(node, []).append(role)
    return tuple(_around(node, tuple(slow[node]), values, centre, slow) for node in nodes if node in slow)


def _around(
    node: str,
    roles: tuple[Role, ...],
    values: Mapping[Role, Mapping[str, float]],
    centre: str,
    slow: Mapping[str, Sequence[Role]],
) -> SlowNode:
    """With the medians of its ways, and of those of no slow node: of the centre's in its other role."""
    sides = [_OTHER[role] for role in roles] if node == centre else list(roles)
    own = [mbps for role in sides for other, mbps in values[role].items() if node in (centre, other)]
    fair = [_OTHER[role] for role in sides] if node == centre else sides
    fast = [mbps for role in fair for other, mbps in values[role].items() if role not in slow.get(other, ())]
    return SlowNode(node, roles, median(own), median(fast))


def far_nodes(nodes: Sequence[str], ways: Mapping[Ends, Way]) -> tuple[FarNode, ...]:
    """Nodes whose shortest round trip is more than `FAR` times that of the usual node."""
    trips = {ends: way.rtt_p50_us for ends, way in ways.items() if way.rtt_p50_us is not None}
    own = {node: [us for ends, us in trips.items() if node in ends] for node in nodes}
    shortest = {node: min(known) for node, known in own.items() if len(known) >= LEAST}
    usual = median_low(shortest.values()) if shortest else 0.0
    return tuple(FarNode(node, us, usual) for node, us in shortest.items() if us > FAR * usual)


@dataclass(frozen=True, slots=True)
class SmallFrames:
    """Nodes whose paths all have a smaller MTU than those of others; ceilings of one of each."""

    nodes: tuple[str, ...]
    mtu: int
    others_mtu: int
    ceiling_mbps: float | None
    others_ceiling_mbps: float | None


def small_frames(nodes: Sequence[str], ways: Mapping[Ends, Way]) -> tuple[SmallFrames, ...]:
    """One for each MTU that is smaller than the largest, the smallest first.

    The MTU of a pair is the smaller of both directions: a sender with a larger one knows its peer's from the MSS only.
    """
    pairs: dict[frozenset[str], Way] = {}
    for way in ways.values():
        known = pairs.setdefault(frozenset(way.ends), way)
        if way.mtu is not None and (known.mtu is None or way.mtu < known.mtu):
            pairs[frozenset(way.ends)] = way
    best = max(pairs.values(), key=_mtu, default=None)
    grouped: dict[int, list[tuple[str, Way]]] = {}
    for node in nodes:
        own = max((way for ends, way in pairs.items() if node in ends), key=_mtu, default=None)
        if own is not None and best is not None and 0 < _mtu(own) < _mtu(best):
            grouped.setdefault(_mtu(own), []).append((node, own))
    others = (0, None) if best is None else (_mtu(best), best.ceiling_mbps)
    return tuple(
        SmallFrames(tuple(node for node, _ in members), mtu, others[0], members[0][1].ceiling_mbps, others[1])
        for mtu, members in sorted(grouped.items())
    )


def _mtu(way: Way) -> int:
    return way.mtu or 0


def lopsided(nodes: Sequence[str], ways: Mapping[Ends, Way], slow: Sequence[SlowNode]) -> tuple[Lopsided, ...]:
    """Pairs whose directions differ by more than `DIFFER` and by more than both spreads; without what is explained."""
    levels: dict[tuple[str, Role], float] = {(node.node, role): node.mbps for node in slow for role in node.roles}
    found = []
    for number, left in enumerate(nodes):
        for right in nodes[number + 1 :]:
            both = [ways[ends] for ends in ((left, right), (right, left)) if _known(ways, ends)]
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


def _known(ways: Mapping[Ends, Way], ends: Ends) -> bool:
    return ends in ways and ways[ends].mbps is not None
