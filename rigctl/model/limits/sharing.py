"""The highest goodput of several pairs at once, which may share links.

Pairs that send from, or to, one node share its link. Their highest sum is a maximum flow from senders to receivers
(Ford and Fulkerson, Canadian Journal of Mathematics 8, 1956) in which each node's link counts once per direction:
Ethernet is full duplex. A trunk between two switches that the rig file names is one more shared link.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rigctl.model.unknowns import total
from rigctl.records import RunPlan


@dataclass(frozen=True, slots=True)
class DataPath:
    """The path of one pair in one direction. `ceiling_mbps` is None if the rate of a link is unknown."""

    sender: str
    receiver: str
    rate_bps: int | None
    ceiling_mbps: float | None


@dataclass(frozen=True, slots=True)
class TrunkLink:
    """The rate of the trunk, and the switch that each node is connected to."""

    rate_bps: int
    switch_of: Mapping[str, str | None]

    def way(self, path: DataPath) -> tuple[str, str] | None:
        """Return the switches that `path` leaves and reaches over the trunk; None if it does not use the trunk."""
        ends = self.switch_of.get(path.sender), self.switch_of.get(path.receiver)
        return (ends[0], ends[1]) if ends[0] and ends[1] and ends[0] != ends[1] else None


def trunk_link(plan: RunPlan) -> TrunkLink | None:
    """Return the trunk of the rig file; None if there is none, or its rate is not given."""
    if plan.trunk is None or plan.trunk.rate_bps is None:
        return None
    at = {name: link.switch for name, link in plan.links.items() if link.switch in plan.trunk.ends}
    return TrunkLink(plan.trunk.rate_bps, at)


def together_mbps(
    paths: Sequence[DataPath], rates_bps: Mapping[str, int | None], trunk: TrunkLink | None = None
) -> float | None:
    """Return the highest sum of goodputs over `paths` at once; None if one of their ceilings is unknown.

    With a trunk it is the smaller of two flows, which are both upper bounds: one without the trunk, and one in which
    all paths over the trunk share one edge per direction, whichever sender belongs to which receiver.
    """
    if not paths:
        return None
    capacity: dict[tuple[str, str], float] = defaultdict(float)
    for path in paths:
        if path.ceiling_mbps is None or path.rate_bps is None:
            return None
        payload_share = path.ceiling_mbps / path.rate_bps
        sends, receives = f"tx {path.sender}", f"rx {path.receiver}"
        capacity[sends, receives] += path.ceiling_mbps
        for edge, node in ((("from", sends), path.sender), ((receives, "to"), path.receiver)):
            capacity[edge] = max(capacity[edge], (rates_bps.get(node) or path.rate_bps) * payload_share)
    free = _maximum_flow(capacity)
    crossing = [(path, way) for path in paths if trunk and (way := trunk.way(path))]
    if trunk is None or not crossing:
        return free
    for path, (one, other) in crossing:
        sends, receives = f"tx {path.sender}", f"rx {path.receiver}"
        ceiling, rate = path.ceiling_mbps or 0.0, path.rate_bps or 1
        capacity.pop((sends, receives), None)
        begins, ends = f"trunk {one} {other}", f"trunk end {one} {other}"
        capacity[sends, begins] += ceiling
        capacity[ends, receives] += ceiling
        capacity[begins, ends] = max(capacity[begins, ends], trunk.rate_bps * ceiling / rate)
    return min(free, _maximum_flow(capacity))


@dataclass(frozen=True, slots=True)
class Load:
    """The fullest link that a path has in common with others, and the share of it that all of them took."""

    share: float
    link: str


def shared_loads(
    goodputs_mbps: Sequence[tuple[DataPath, float | None]],
    rates_bps: Mapping[str, int | None],
    trunk: TrunkLink | None = None,
) -> list[Load | None]:
    """Return the load of each path; None if it shares no link, or a rate or goodput on its links is unknown."""
    taken = taken_of_links(goodputs_mbps, rates_bps, trunk)
    loads = {
        link: Load(share, link)
        for link, shares in taken.items()
        if len(shares) > 1 and (share := total(shares)) is not None
    }
    links = [[link for link, _ in links_of(path, rates_bps, trunk)] for path, _ in goodputs_mbps]
    return [
        max((loads[link] for link in own if link in loads), key=lambda load: load.share, default=None) for own in links
    ]


def taken_of_links(
    goodputs_mbps: Sequence[tuple[DataPath, float | None]],
    rates_bps: Mapping[str, int | None],
    trunk: TrunkLink | None = None,
) -> dict[str, list[float | None]]:
    """Return the shares that the paths take of each link, by its name; None for a path whose share is unknown."""
    taken: dict[str, list[float | None]] = defaultdict(list)
    for path, goodput_mbps in goodputs_mbps:
        for link, rate_bps in links_of(path, rates_bps, trunk):
            if goodput_mbps is None or not path.ceiling_mbps or not path.rate_bps or not rate_bps:
                taken[link].append(None)
            else:
                taken[link].append(goodput_mbps / path.ceiling_mbps * path.rate_bps / rate_bps)
    return taken


def links_of(
    path: DataPath, rates_bps: Mapping[str, int | None], trunk: TrunkLink | None
) -> Iterator[tuple[str, int | None]]:
    """Yield the links of a path by name, each with its rate. Each direction of an Ethernet link counts as one."""
    yield f"from {path.sender}", rates_bps.get(path.sender)
    yield f"to {path.receiver}", rates_bps.get(path.receiver)
    if trunk is not None and (way := trunk.way(path)) is not None:
        yield f"trunk {way[0]} to {way[1]}", trunk.rate_bps


def _maximum_flow(capacity: Mapping[tuple[str, str], float]) -> float:
    left = defaultdict(float, capacity)
    beside: dict[str, list[str]] = defaultdict(list)
    for start, other in sorted(capacity):
        beside[start].append(other)
        beside[other].append(start)
    flow = 0.0
    while route := _route(left, beside):
        amount = min(left[edge] for edge in route)
        for start, other in route:
            left[start, other] -= amount
            left[other, start] += amount
        flow += amount
    return flow


def _route(left: Mapping[tuple[str, str], float], beside: Mapping[str, list[str]]) -> list[tuple[str, str]]:
    """Return the edges of a route with room from "from" to "to", depth first; none if there is no such route."""
    seen, nodes = {"from"}, ["from"]
    while nodes and nodes[-1] != "to":
        here = nodes[-1]
        there = next((other for other in beside[here] if other not in seen and left[here, other] > 1e-9), None)
        if there is None:
            nodes.pop()
        else:
            seen.add(there)
            nodes.append(there)
    return list(pairwise(nodes))
