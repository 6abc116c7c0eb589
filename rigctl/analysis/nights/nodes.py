"""Build time series of nodes, as sender and as receiver, from the changes that more than half of their pairs share.

A pair is judged first, alone. What it has in common with the other pairs of a node is the part of its change that more
than half of these pairs show at the same time; only this part becomes a change of the node. So pairs that changed one
after the other, each for its own reason, are no change of their node.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, log
from statistics import median
from typing import Final, TypeAlias

from rigctl.analysis.nights.comparison import FigureSubject
from rigctl.analysis.nights.history import NightSeries
from rigctl.analysis.views.mesh import LEAST, Role
from rigctl.model.statistics.changes import NightPoint, Regression

APART: Final = 3  # most nights between two changes that have the same cause
ALIKE: Final = 1.6  # a pair that changed by more than this factor times its node's change has another cause
_WINDOW: Final = 7  # nights before and after a change that tell whether another pair changed as well
_SHARE: Final = 0.5  # a pair changed with its node if it changed by at least this share of the node's change
Judged: TypeAlias = tuple[NightSeries, Regression]


@dataclass(frozen=True, slots=True)
class NodeMember:
    """A pair of a node: its nightly values as logarithms, and its segments (first night, level as a logarithm)."""

    series: NightSeries
    values: Mapping[int, tuple[float, ...]]  # by night, one or two measurements; only measured nights
    segments: tuple[tuple[int, float], ...]
    known: dict[tuple[int, bool], float | None] = field(default_factory=dict)  # results of `change_at`

    @property
    def steps(self) -> Iterator[tuple[int, float]]:
        """Yield the first night and the size of each change between two segments, as a logarithm."""
        for (_, before), (night, after) in zip(self.segments, self.segments[1:], strict=False):
            yield night, after - before

    def change_at(self, night: int, *, rises: bool) -> float | None:
        """Return how much this pair changed at about a night, as a logarithm; None if not measured around it.

        The nights just before the change are compared with those just after it, up to the pair's other changes. Steps
        in the direction `rises`, at most `APART` nights away, are the same change.
        """
        key = night, rises
        if key not in self.known:
            self.known[key] = self._change_at(night, rises)
        return self.known[key]

    def _change_at(self, night: int, rises: bool) -> float | None:
        steps = list(self.steps)
        same = [at for at, size in steps if (size > 0) is rises and abs(at - night) <= APART]
        first, last = min([night, *same]), max([night, *same])
        begin = max([first - _WINDOW, *(at for at, _ in steps if at < first)])
        end = min([last + _WINDOW, *(at for at, _ in steps if at > last)])
        before = [value for at in range(begin, first) for value in self.values.get(at, ())]
        if not before:
            return None
        level = median(before)
        after = [min((value - level for value in self.values[at]), key=abs) for at in range(last, end) if self._has(at)]
        return _lower_median(after) if after else None

    def _has(self, night: int) -> bool:
        return night in self.values


def _lower_median(values: Sequence[float]) -> float:
    """Return the median; of two middle values, the one nearer to 0, which more than half of the values exceed."""
    ordered = sorted(values)
    return min(ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2], key=abs)


def common_change(members: Iterable[NodeMember], night: int, *, rises: bool) -> float:
    """Return by how much more than half of the pairs changed together at about a night, as a logarithm; else 0."""
    changes = [change for own in members if (change := own.change_at(night, rises=rises)) is not None]
    if len(changes) < LEAST:
        return 0.0
    common = _lower_median(changes)
    return common if (common > 0) is rises else 0.0


def changed_pairs(members: Sequence[NodeMember], night: int, ratio: float) -> tuple[NightSeries, ...]:
    """Return the pairs that changed with a node by about `ratio` in a night; empty unless more than half did."""
    size = log(ratio)
    known = [(own, own.change_at(night, rises=size > 0)) for own in members]
    changes = [(own.series, change) for own, change in known if change is not None]
    changed = tuple(series for series, change in changes if change / size >= _SHARE)
    return changed if 2 * len(changed) > len(changes) else ()


@dataclass(frozen=True, slots=True)
class NodePairs:
    """A node in one role with its pairs."""

    series: NightSeries
    members: tuple[NodeMember, ...]


def node_pairs_of(judged: Sequence[Judged], nights: int, least: float) -> tuple[NodePairs, ...]:
    """Return each node that sends to, or receives from, several nodes, with the series of what its pairs share.

    A point of the series is the median over the pairs. `least` is the smallest common change, as a logarithm.
    """
    groups: dict[FigureSubject, list[Judged]] = {}
    for own, verdict in judged:
        stream = own.stream
        if stream is None:
            continue
        settings = str(replace(own.cell, number=0, pairs=()))
        roles: tuple[tuple[str, Role], ...] = ((stream.sender, "sending"), (stream.receiver, "receiving"))
        for node, role in roles:
            subject = FigureSubject(settings, own.subject.metric, node=node, role=role)
            groups.setdefault(subject, []).append((own, verdict))
    seen = {subject: own for subject, own in groups.items() if len(_partners(own, subject)) >= LEAST}
    peers = Counter((subject.test, subject.metric, subject.role) for subject in seen)
    members = {id(own): _member(own, verdict) for own, verdict in judged}
    found = []
    for subject, pairs in seen.items():
        tests = tuple(sorted({number for own, _ in pairs for number in own.tests}))
        own_members = tuple(members[id(own)] for own, _ in pairs)
        count = peers[subject.test, subject.metric, subject.role]
        points = _points(own_members, nights, least)
        found.append(NodePairs(NightSeries(subject, pairs[0][0].cell, tests, points, count), own_members))
    return tuple(found)


def _partners(pairs: Iterable[Judged], subject: FigureSubject) -> set[str]:
    streams = [own.stream for own, _ in pairs if own.stream is not None]
    return {stream.receiver if subject.role == "sending" else stream.sender for stream in streams}


def _member(own: NightSeries, verdict: Regression) -> NodeMember:
    values = {
        night: tuple(log(value) for value in (point.value, point.second) if value)
        for night, point in enumerate(own.points)
        if point.value
    }
    return NodeMember(own, values, tuple((night, log(level)) for night, level in verdict.segments))


def _points(members: Sequence[NodeMember], nights: int, least: float) -> tuple[NightPoint, ...]:
    """Return per night the median over the pairs of value ÷ own level, with the changes that the pairs share."""
    shared = [dict(_shared_steps(own, members, least)) for own in members]
    values = [_around_level(own, steps) for own, steps in zip(members, shared, strict=True)]
    middles = [_middles([own[night] for own in values if night in own], len(members)) for night in range(nights)]
    known = [first for first, _ in middles if first is not None]
    usual = median(known) if known else 0.0
    return tuple(NightPoint(*(None if one is None else exp(one - usual) for one in both)) for both in middles)


def _shared_steps(own: NodeMember, members: Sequence[NodeMember], least: float) -> Iterator[tuple[int, float]]:
    """Yield the changes of a pair that more than half of the pairs share: the night, and the size of that part."""
    for night, size in own.steps:
        common = common_change(members, night, rises=size > 0)
        if abs(common) >= least:
            yield night, size if abs(size) <= ALIKE * abs(common) else common


def _around_level(own: NodeMember, shared: Mapping[int, float]) -> dict[int, tuple[float, ...]]:
    """Return the values of a pair by night, as distances from its own level plus the shared changes up to then."""
    found, levels, node, level = {}, dict(own.segments), 0.0, 0.0
    for night in range(max(own.values, default=-1) + 1):
        level = levels.get(night, level)
        node += shared.get(night, 0.0)
        if night in own.values:
            found[night] = tuple(value - level + node for value in own.values[night])
    return found


def _middles(values: Sequence[tuple[float, ...]], members: int) -> tuple[float | None, float | None]:
    """Return the median of first and of second measurements over the pairs; None if too few pairs have one."""
    seconds = [own[1] for own in values if len(own) > 1]
    return _middle([own[0] for own in values], members), _middle(seconds, members)


def _middle(values: Sequence[float], members: int) -> float | None:
    return None if len(values) < max(LEAST, members / 2) else _lower_median(values)
