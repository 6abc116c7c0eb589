"""Changes that have one cause, once: of a node in a role before its pairs, of a test before its pairs."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import log
from typing import Final

from rigctl.analysis.nights.history import NightSeries
from rigctl.analysis.nights.shifts import Shift

_APART: Final = 3
"""Nights between the dates of changes with one cause, at most."""
_ALIKE: Final = 1.6
"""A pair that changed by more than this times as much as its node has a cause of its own."""


def grouped(shifts: Iterable[Shift]) -> tuple[Shift, ...]:
    """Return the changes that name a cause: nodes before their pairs, tests whose pairs changed, else the pairs.

    The others are in `explains` of the change that explains them. A sum of pairs explains them only where most of them
    changed; else it is a consequence of the pair that changed most.
    """
    left = _without_common(list(shifts))
    explained: dict[int, list[Shift]] = {}
    leaders = [shift for shift in left if _of_node(shift.series)]
    rest = [shift for shift in left if not _of_node(shift.series)]
    for shift in [own for own in rest if not _of_sum(own.series)]:
        leader = next((own for own in leaders if _explained_by_node(shift, own)), None)
        if leader is not None:
            explained.setdefault(id(leader), []).append(shift)
            rest.remove(shift)
    by_node = {id(own): leader for leader in leaders for own in explained.get(id(leader), ())}
    for total in [own for own in rest if _of_sum(own.series)]:
        pairs = [own for own in left if _adds_to(own, total)]
        if not pairs:
            continue
        main = max(pairs, key=lambda own: abs(log(own.ratio)))
        if 2 * len(pairs) > len(total.series.cell.streams) and not any(id(own) in by_node for own in pairs):
            explained[id(total)] = pairs
            rest = [own for own in rest if not any(own is pair for pair in pairs)]
        else:
            explained.setdefault(id(by_node.get(id(main), main)), []).append(total)
            rest = [own for own in rest if own is not total]
    kept = [shift for shift in left if any(shift is own for own in (*leaders, *rest))]
    return tuple(replace(shift, explains=tuple(explained.get(id(shift), ()))) for shift in kept)


def _of_node(series: NightSeries) -> bool:
    return series.subject.node is not None


def _of_sum(series: NightSeries) -> bool:
    """Tell whether it is the sum over the pairs of a test."""
    return series.subject.node is None and series.subject.stream is None and len(series.cell.streams) > 1


def _without_common(shifts: Sequence[Shift]) -> list[Shift]:
    """Without nodes in a role in which most nodes changed alike: what they have in common is no node."""
    roles: Counter[tuple[object, ...]] = Counter()
    for shift in shifts:
        if _of_node(shift.series):
            roles[_event(shift)] += 1
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


def _explained_by_node(shift: Shift, leader: Shift) -> bool:
    if not _at_once(shift, leader):
        return False
    node, role = leader.series.subject.node, leader.series.subject.role
    streams = [shift.series.subject.stream] if shift.series.subject.stream else shift.series.cell.streams
    ends = [stream.sender if role == "sending" else stream.receiver for stream in streams if stream]
    alike = abs(log(shift.ratio)) <= _ALIKE * abs(log(leader.ratio)) + 2 * shift.change.noise
    return node in ends and alike and set(shift.series.tests) <= set(leader.series.tests)
