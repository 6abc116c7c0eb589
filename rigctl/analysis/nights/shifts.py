"""Changes of level with their possible causes: changes of the setup, and a change of a node or another series."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Final

from rigctl.analysis.nights.history import Nights, NightSeries
from rigctl.analysis.nights.setup_changes import SetupChange, find_setup_changes
from rigctl.model.statistics.changes import Step
from rigctl.records import RunInfo

_APART: Final = 3
"""Most nights between two changes that have the same cause."""
_ALIKE: Final = 1.6
"""A pair that changed by more than this factor times its node's change has another cause than the node."""


@dataclass(frozen=True, slots=True)
class Shift:
    """A change of the level of a series. `explains` has changes of the same time that follow from it or add up to it.

    A change with a `why_not` of `ONE_NIGHT` is only suspected.
    """

    series: NightSeries
    change: Step
    since: RunInfo  # the first run on the new level
    facts: tuple[SetupChange, ...] = ()  # changes of the setup since the last run on the old level
    explains: tuple["Shift", ...] = ()
    returns: RunInfo | None = None  # run whose change was undone: the level before it is back

    @property
    def ratio(self) -> float:
        return self.change.ratio

    @property
    def better(self) -> bool:
        return self.change.better

    @property
    def confirmed(self) -> bool:
        """Return True if the night in which this change was found was measured twice."""
        return self.series.points[self.change.found].second is not None

    @property
    def found(self) -> int:
        """Return the index of the first night in which this change, or a change that it explains, was found."""
        return min([self.change.found, *(shift.change.found for shift in self.explains)])

    @property
    def weight(self) -> float:
        """Return the largest absolute logarithm of a ratio among this change and the changes that it explains."""
        return max(abs(log(shift.ratio)) for shift in (self, *self.explains))


def shifts_of(series: NightSeries, changes: Sequence[Step], nights: Nights, bound: float) -> Iterator[Shift]:
    """Yield the changes of a series. Levels that differ by less than `bound` count as the same level."""
    runs = nights.runs
    for number, change in enumerate(changes):
        # Nights without a value between the two levels belong to neither level: the rig was being changed.
        last = next((night for night in reversed(range(change.at)) if series.points[night].value is not None), None)
        facts = () if change.gradual or last is None else tuple(find_setup_changes(runs[last], runs[change.at]))
        same = [own for own in changes[:number] if abs(change.after / own.before - 1) < bound]
        returns = runs[same[-1].at] if same else None
        yield Shift(series, series.of_figure(change), runs[change.at], facts, returns=returns)


def group_by_cause(shifts: Iterable[Shift]) -> tuple[Shift, ...]:
    """Return the changes that are causes: of nodes, of tests with most pairs changed, and of other pairs.

    Each of the other changes is in `explains` of its cause. A test's total explains its pairs if most of them
    changed; otherwise the pair that changed most explains the total.
    """
    left = _without_common(list(shifts))
    leaders = [shift for shift in left if _of_node(shift.series)]
    explained: dict[int, list[Shift]] = {}  # explained changes by the id of the explaining change
    explained_by: dict[int, Shift] = {}

    def explain(shift: Shift, leader: Shift) -> None:
        explained.setdefault(id(leader), []).append(shift)
        explained_by[id(shift)] = leader

    for shift in left:
        if not (_of_node(shift.series) or _of_sum(shift.series)):
            leader = next((own for own in leaders if _explain_by_node(shift, own)), None)
            if leader is not None:
                explain(shift, leader)
    by_node = dict(explained_by)
    for total in [own for own in left if _of_sum(own.series)]:
        pairs = [own for own in left if _adds_to(own, total)]
        if 2 * len(pairs) > len(total.series.cell.streams) and not any(id(own) in by_node for own in pairs):
            for pair in pairs:
                explain(pair, total)
        elif pairs:
            main = max(pairs, key=lambda own: abs(log(own.ratio)))
            explain(total, by_node.get(id(main), main))
    kept = [shift for shift in left if id(shift) not in explained_by]
    return tuple(replace(shift, explains=tuple(explained.get(id(shift), ()))) for shift in kept)


def _of_node(series: NightSeries) -> bool:
    return series.subject.node is not None


def _of_sum(series: NightSeries) -> bool:
    """Tell whether a series is the total of a test with several streams."""
    return series.subject.node is None and series.subject.stream is None and len(series.cell.streams) > 1


def _without_common(shifts: Sequence[Shift]) -> list[Shift]:
    """Return the changes, without changes of nodes if most nodes in the same role changed alike."""
    roles = Counter(_event(shift) for shift in shifts if _of_node(shift.series))
    return [
        shift
        for shift in shifts
        if not _of_node(shift.series) or roles[_event(shift)] <= max(1, shift.series.peers // 2)
    ]


def _event(shift: Shift) -> tuple[object, ...]:
    subject = shift.series.subject
    return subject.test, subject.metric, subject.role, shift.better, shift.change.at // (2 * _APART)


def _at_once(one: Shift, other: Shift) -> bool:
    same = one.series.subject.metric == other.series.subject.metric and one.better == other.better
    return same and abs(one.change.at - other.change.at) <= _APART


def _adds_to(pair: Shift, total: Shift) -> bool:
    return pair.series.subject.stream is not None and pair.series.tests == total.series.tests and _at_once(pair, total)


def _explain_by_node(shift: Shift, leader: Shift) -> bool:
    if not _at_once(shift, leader):
        return False
    node, role = leader.series.subject.node, leader.series.subject.role
    streams = [shift.series.subject.stream] if shift.series.subject.stream else shift.series.cell.streams
    ends = [stream.sender if role == "sending" else stream.receiver for stream in streams if stream]
    alike = abs(log(shift.ratio)) <= _ALIKE * abs(log(leader.ratio)) + 2 * shift.change.noise
    return node in ends and alike and set(shift.series.tests) <= set(leader.series.tests)
