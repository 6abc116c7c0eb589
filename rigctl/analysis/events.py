"""Changes that have one cause, once: of a node in a role before its pairs, of a test before its pairs."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import log
from typing import Final

from rigctl.analysis.history import NightSeries
from rigctl.analysis.shifts import Shift

_APART: Final = 3
"""Nights between the dates of changes with one cause, at most."""
_ALIKE: Final = 1.6
"""A pair that changed by more than this times as much as its node has a cause of its own."""


def grouped(shifts: Iterable[Shift]) -> tuple[Shift, ...]:
    """`shifts` without those that others explain, which hold them."""
    made = list(shifts)
    left = _without_common(made)
    for kind in (_of_node, _of_test):
        leaders = [shift for shift in left if kind(shift.series)]
        taken: set[int] = set()
        for leader in leaders:
            own = [
                shift for shift in left if shift is not leader and id(shift) not in taken and _explained(shift, leader)
            ]
            taken |= {id(shift) for shift in own}
            left[_place(left, leader)] = replace(leader, explains=(*leader.explains, *own))
        left = [shift for shift in left if id(shift) not in taken]
    return tuple(left)


def _place(shifts: Sequence[Shift], wanted: Shift) -> int:
    return next(at for at, shift in enumerate(shifts) if shift is wanted)


def _of_node(series: NightSeries) -> bool:
    return series.subject.node is not None


def _of_test(series: NightSeries) -> bool:
    return series.subject.node is None and series.subject.stream is None


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


def _explained(shift: Shift, leader: Shift) -> bool:
    same = shift.series.subject.metric == leader.series.subject.metric and shift.better == leader.better
    if not same or abs(shift.change.at - leader.change.at) > _APART or _of_node(shift.series):
        return False
    if _of_test(leader.series):
        return shift.series.subject.stream is not None and shift.series.tests == leader.series.tests
    node, role = leader.series.subject.node, leader.series.subject.role
    streams = [shift.series.subject.stream] if shift.series.subject.stream else shift.series.cell.streams
    ends = [stream.sender if role == "sending" else stream.receiver for stream in streams if stream]
    alike = abs(log(shift.ratio)) <= _ALIKE * abs(log(leader.ratio)) + 2 * shift.change.noise
    return node in ends and alike and set(shift.series.tests) <= set(leader.series.tests)
