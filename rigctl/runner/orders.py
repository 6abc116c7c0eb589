"""What is to be measured, in order: the whole plan, or what a stored run lacks of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from rigctl.model.repeating import further
from rigctl.records import Cell, Repetition, RunPlan, Status

MOST_ATTEMPTS: Final = 2
"""An invalid repetition is measured once more."""


@dataclass(frozen=True, slots=True)
class Order:
    """Which measurement: the cell, its repetition (from 1), the attempt (2 after an invalid one)."""

    cell: Cell
    repetition: int
    attempt: int


def further_orders(plan: RunPlan, stored: Iterable[Repetition]) -> list[Order]:
    """The repetitions beyond the plan's own that are wanted now, by `retest` or `until`, in the order of the cells."""
    if plan.retest is None and plan.until is None:
        return []
    by_cell: dict[int, dict[int, Repetition]] = {}
    for one in stored:  # the last attempt of each counts
        if one.status is not Status.INTERRUPTED:
            by_cell.setdefault(one.cell, {})[one.repetition] = one
    return [
        Order(cell, number, 1)
        for cell in plan.cells
        if (own := by_cell.get(cell.number))
        for number in further(plan, cell, own)
    ]


def missing(plan: RunPlan, stored: Mapping[tuple[int, int, int], Status]) -> list[Order]:
    """The repetitions that are still to be measured, in order, each with its next attempt.

    `stored`: status by cell, repetition and attempt. A second invalid attempt is final: it is the rig's answer.
    """
    orders = []
    for cell in plan.cells:
        for repetition in range(1, plan.repeat + 1):
            own = [stored.get((cell.number, repetition, attempt)) for attempt in range(1, MOST_ATTEMPTS + 1)]
            if Status.OK in own or own[-1] is Status.INVALID:
                continue
            orders.append(Order(cell, repetition, 2 if own[0] is Status.INVALID else 1))
    return orders
