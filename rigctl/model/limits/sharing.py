"""What pairs can have at once: that of their own paths, less where they share a link.

Pairs that send from, or to, one node share its link. What they can have together is a maximum flow from senders to
receivers (Edmonds and Karp, J. ACM 19, 1972), each node's link counted once per direction: Ethernet is full duplex.
A trunk between two switches that the rig file names is one more link that they share.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rigctl.records import RunPlan


@dataclass(frozen=True, slots=True)
class DataPath:
    """The path of one pair in one direction. `ceiling_mbps` is `None` where the rate of a link is not known."""

    sender: str
    receiver: str
    rate_bps: int | None
    ceiling_mbps: float | None


@dataclass(frozen=True, slots=True)
class TrunkLink:
    """The trunk for a ceiling: its rate, and the switch each node is at."""

    rate_bps: int
    switch_of: Mapping[str, str | None]

    def way(self, path: DataPath) -> tuple[str, str] | None:
        """The switches a path goes between over the trunk; `None` where it does not."""
        ends = self.switch_of.get(path.sender), self.switch_of.get(path.receiver)
        return (ends[0], ends[1]) if ends[0] and ends[1] and ends[0] != ends[1] else None


def trunk_link(plan: RunPlan) -> TrunkLink | None:
    """The trunk as the rig file gives it; `None` where it has none, or its rate is not given."""
    if plan.trunk is None or plan.trunk.rate_bps is None:
        return None
    at = {name: link.switch for name, link in plan.links.items() if link.switch in plan.trunk.ends}
    return TrunkLink(plan.trunk.rate_bps, at)


def together_mbps(
    paths: Sequence[DataPath], rates_bps: Mapping[str, int | None], trunk: TrunkLink | None = None
) -> float | None:
    """The highest sum of goodputs over `paths` at once; `None` where one of their ceilings is not known.

    With a trunk the smaller of two flows: without it, and with all paths over it led through one edge per direction.
    The latter forgets which sender belongs to which receiver, the former the trunk; none of both can be passed.
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
    """Of the fullest link that a path has in common with others: what all of them took of it, and its name."""

    share: float
    link: str


def shared_loads(
    goodputs_mbps: Sequence[tuple[DataPath, float | None]],
    rates_bps: Mapping[str, int | None],
    trunk: TrunkLink | None = None,
) -> list[Load | None]:
    """Of each path; `None` where it shares no link, or the rate of one or a goodput over it is not known."""
    links = [dict(links_of(path, rates_bps, trunk)) for path, _ in goodputs_mbps]
    taken = taken_of_links(goodputs_mbps, rates_bps, trunk)
    loads = {
        link: sum(share for share in shares if share is not None)
        for link, shares in taken.items()
        if len(shares) > 1 and None not in shares
    }
    return [
        max((Load(loads[link], link) for link in own if link in loads), key=lambda load: load.share, default=None)
        for own in links
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
    """The links of a path by name, each with its rate: Ethernet is full duplex, so each direction is one."""
    yield f"from {path.sender}", rates_bps.get(path.sender)
    yield f"to {path.receiver}", rates_bps.get(path.receiver)
    if trunk is not None and (way := trunk.way(path)) is not None:
        yield f"trunk {way[0]} to {way[1]}", trunk.rate_bps


def _maximum_flow(capacity: Mapping[tuple[str, str], float]) -> float:
    """Of each part that shares no link with the others for itself: 500 pairs of their own are 500 small ones."""
    return sum(_flow_of(part) for part in _parts(capacity))


def _parts(capacity: Mapping[tuple[str, str], float]) -> Iterator[dict[tuple[str, str], float]]:
    edges: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for edge in capacity:
        for end in edge:
            edges[end].append(edge)
    seen = {"from", "to"}
    for first in list(edges):
        part: dict[tuple[str, str], float] = {}
        waiting = [] if first in seen else [first]
        seen.add(first)
        while waiting:
            for edge in edges[waiting.pop()]:
                part[edge] = capacity[edge]
                waiting += [end for end in edge if end not in seen]
                seen.update(edge)
        if part:
            yield part


def _flow_of(capacity: Mapping[tuple[str, str], float]) -> float:
    left = dict(capacity)
    beside: dict[str, set[str]] = defaultdict(set)
    for start, other in capacity:
        beside[start].add(other)
        beside[other].add(start)
    total = 0.0
    while route := _shortest_route(left, beside):
        amount = min(left[edge] for edge in route)
        for start, other in route:
            left[start, other] -= amount
            left[other, start] = left.get((other, start), 0.0) + amount
        total += amount
    return total


def _shortest_route(left: Mapping[tuple[str, str], float], beside: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    came_from: dict[str, str] = {"from": ""}
    queue = deque(["from"])
    while queue and "to" not in came_from:
        here = queue.popleft()
        for there in sorted(beside[here]):
            if there not in came_from and left.get((here, there), 0.0) > 1e-9:
                came_from[there] = here
                queue.append(there)
    route: list[tuple[str, str]] = []
    at = "to"
    while at in came_from and at != "from":
        route.append((came_from[at], at))
        at = came_from[at]
    return route
