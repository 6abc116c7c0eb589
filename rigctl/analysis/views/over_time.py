"""The cells whose goodput over time is drawn: all of a small run, a few of a large matrix."""

from typing import Final

from rigctl.records import Cell, RunPlan
from rigctl.settings import MSS, WINDOW, WINDOW_TOTAL

MOST_CHARTS: Final = 48
MOST_FLOWS: Final = 4000
"""The most flows, over all repetitions, of which every sample is read: about four seconds' work."""
MOST_OF_MATRIX: Final = 12
"""The most that are drawn of a run with more cells than `MOST_CHARTS`: a chart has a line for each pair."""


def charted_cells(plan: RunPlan) -> tuple[Cell, ...]:
    """The cells whose goodput over time is drawn."""
    return charted(plan, MOST_CHARTS if len(plan.cells) <= MOST_CHARTS else MOST_OF_MATRIX)


def drawn_numbers(plan: RunPlan) -> frozenset[int]:
    """Their numbers: a page needs the interval series of these cells only (`Store.repetitions`)."""
    return frozenset(cell.number for cell in charted_cells(plan))


def sampled(plan: RunPlan) -> bool | frozenset[int]:
    """Of which cells a report reads the interval series: all, from which limits are named; of a large run those drawn.

    The others of a large run have the limits that totals show.
    """
    flows = sum(len(cell.streams) * cell.parallel for cell in plan.cells) * plan.repeat
    return True if flows <= MOST_FLOWS else drawn_numbers(plan)


def charted(plan: RunPlan, most: int) -> tuple[Cell, ...]:
    """The cells whose goodput over time is drawn: all where `most` suffice, else those with the most pairs.

    Of these, the ones with the fewest flows and with the most, evenly over conditions and windows.
    """
    if len(plan.cells) <= most:
        return plan.cells
    pairs = max(len(cell.pairs) for cell in plan.cells)
    chosen: dict[tuple[object, ...], list[Cell]] = {}
    for cell in plan.cells:
        if len(cell.pairs) == pairs:
            panel = (cell.condition, cell[WINDOW_TOTAL] or cell[WINDOW], cell[MSS])
            chosen.setdefault(panel, []).append(cell)
    ends: list[Cell] = []
    for group in chosen.values():
        by_flows = sorted(group, key=lambda cell: cell.parallel)
        ends += dict.fromkeys((by_flows[0], by_flows[-1]))
    step = max(1, -(-len(ends) // most))
    return tuple(sorted(ends[::step], key=lambda cell: cell.number))
