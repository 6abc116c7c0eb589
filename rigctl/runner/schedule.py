"""Decides which repetitions are measured and in which order: all of a plan, or those that a stored run lacks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from rigctl.base.errors import NodeError
from rigctl.base.values import group_by
from rigctl.model.repeating import count_planned, further
from rigctl.model.search import search
from rigctl.model.trials import Searched, at_load, searched_setting
from rigctl.records import Cell, Pair, Repetition, RunPlan, Status
from rigctl.settings import PER_SECOND, RATE

MOST_ATTEMPTS: Final = 2
"""Attempts for a repetition: an invalid repetition is measured once more."""

Blocked: TypeAlias = Mapping[tuple[int, Pair], str]
"""By test number and pair: why a pair cannot be measured, although its nodes answer."""


@dataclass(frozen=True, slots=True)
class MeasurementOrder:
    """An order to measure a cell once. `repetition` and `attempt` start at 1; attempt 2 follows an invalid attempt."""

    cell: Cell
    repetition: int
    attempt: int
    load: int | None = None  # load of this trial of a search (model.trials); None: without a limit, or no search

    @property
    def tried(self) -> Cell:
        """Return the cell as it is measured: with the load of the trial as its searched setting."""
        return at_load(self.cell, self.load)

    @property
    def rate_bps(self) -> int | None:
        """Return the sending rate of each flow; None: unlimited."""
        rate = self.tried[RATE]
        return rate if isinstance(rate, int) else None

    @property
    def per_second(self) -> int | None:
        """Return the connections or requests per second of a pair; None: one after the other."""
        count = self.tried[PER_SECOND]
        return count if isinstance(count, int) else None


def group_classes(orders: Iterable[MeasurementOrder]) -> list[tuple[MeasurementOrder, ...]]:
    """Return groups of orders that are measured at the same time: one order per traffic class of a test."""
    return [tuple(own) for own in group_by(orders, lambda order: (order.cell.first, order.repetition)).values()]


def _groups(plan: RunPlan) -> Iterable[list[Cell]]:
    return group_by(plan.cells, lambda cell: cell.first).values()


def is_open_ended(plan: RunPlan) -> bool:
    """Tell whether results may require more repetitions than the plan has."""
    return plan.retest is not None or plan.until is not None or any(map(searched_setting, plan.cells))


def further_orders(plan: RunPlan, stored: Iterable[Repetition]) -> list[MeasurementOrder]:
    """Return orders for the repetitions that `retest`, `until` or a search require after the results so far."""
    by_cell: dict[int, dict[int, Repetition]] = {}
    for repetition in stored:  # the last attempt of a repetition counts
        if repetition.status is not Status.INTERRUPTED:
            by_cell.setdefault(repetition.cell, {})[repetition.repetition] = repetition
    more = []
    for cells in _groups(plan):
        own = [by_cell.get(cell.number, {}) for cell in cells]
        if all(own):
            searched = searched_setting(cells[0])
            more += _more(plan, cells, own) if searched is None else _next_trial(plan, cells[0], searched, own[0])
    return in_turn(plan, more)


def _more(plan: RunPlan, cells: Sequence[Cell], own: Sequence[Mapping[int, Repetition]]) -> list[MeasurementOrder]:
    """Return orders for all traffic classes (`cells`) of a test if one requires further repetitions."""
    wanted = {number for cell, measured in zip(cells, own, strict=True) for number in further(plan, cell, measured)}
    return [MeasurementOrder(cell, number, 1) for number in sorted(wanted) for cell in cells]


def _next_trial(plan: RunPlan, cell: Cell, searched: Searched, own: Mapping[int, Repetition]) -> list[MeasurementOrder]:
    if any(repetition.status is Status.FAILED for repetition in own.values()):
        return []  # after a failure the search cannot continue
    following = search(searched, (searched.trial(plan, cell, one) for one in own.values()), plan.repeat).following
    return [] if following is None else [MeasurementOrder(cell, max(own) + 1, 1, following)]


def _first_load(cell: Cell) -> int | None:
    searched = searched_setting(cell)
    return None if searched is None else searched.first(cell)


def missing(plan: RunPlan, stored: Mapping[tuple[int, int, int], Status]) -> list[MeasurementOrder]:
    """Return orders for the repetitions that are still to be measured, each with its next attempt.

    `stored` has the status by cell, repetition and attempt. A second invalid attempt is final. All traffic classes of a
    test are measured again if one is missing.
    """
    orders = []
    for cells in _groups(plan):
        for repetition in range(1, count_planned(plan, cells[0]) + 1):
            own = [[stored.get((cell.number, repetition, n)) for n in range(1, MOST_ATTEMPTS + 1)] for cell in cells]
            if all(Status.OK in each or each[-1] is Status.INVALID for each in own):
                continue
            attempt = 2 if all(each[0] is Status.INVALID for each in own) else 1
            orders += [MeasurementOrder(cell, repetition, attempt, _first_load(cell)) for cell in cells]
    return in_turn(plan, orders)


def in_turn(plan: RunPlan, orders: list[MeasurementOrder]) -> list[MeasurementOrder]:
    """Return the orders of two compared variants as ABBA ABBA …, so that slow drift affects both alike.

    Variants alternate within each test. If the variants are conditions, which apply to all nodes, they alternate after
    each round of all tests. Without variants, return the orders unchanged.
    """
    if plan.against is None:
        return orders
    places = {cell.number: at for at, cell in enumerate(plan.cells)}
    firsts = {second: first for first, second in plan.against.twins}
    by_test = plan.against.setting != "condition"

    def place(order: MeasurementOrder) -> tuple[int, ...]:
        number = order.cell.number
        test, is_second = places[firsts.get(number, number)], number in firsts
        turn = is_second == (order.repetition % 2 == 1)  # the second variant is last in odd repetitions
        return (test, order.repetition, turn) if by_test else (order.repetition, turn, test)

    return sorted(orders, key=place)


def pairs_without(cell: Cell, lost: Mapping[str, NodeError]) -> tuple[Pair, ...]:
    """Return the pairs of `cell` without a lost node; none for a search with a lost node."""
    kept = tuple(pair for pair in cell.pairs if not lost.keys() & {pair.source, pair.destination})
    return () if lost and searched_setting(cell) is not None else kept
