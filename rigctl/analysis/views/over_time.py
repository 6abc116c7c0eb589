"""Goodput over time: resampled to common instants, and the cells whose goodput is charted."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from rigctl.model.window import Times, received_at
from rigctl.records import Cell, RunPlan, Side
from rigctl.settings import MSS, WINDOW, WINDOW_TOTAL

MOST_CHARTS: Final = 48
MOST_FLOWS: Final = 4000
"""A run with more flows, over all repetitions, reads the samples of charted cells only: this takes 4 s."""
MOST_OF_MATRIX: Final = 12
"""The most charts of a run with more cells than `MOST_CHARTS`, as a chart has a line for each pair."""


def goodput_mbps(receivers: Sequence[Side], start_ns: int, edges: Times) -> Times:
    """Return the goodput of all receivers together between each two of `edges`, in Mbit/s."""
    received = np.sum([received_at(side, start_ns, edges) for side in receivers], axis=0)
    goodput: Times = np.diff(received) * 8e-6 / np.diff(edges)
    return goodput


def resampled(
    receivers: Sequence[Side | None], start_ns: int, length_s: float, most: int
) -> tuple[list[float], list[float]] | None:
    """Return the middles of at most `most` equal bins in seconds, and the goodput of all receivers in Mbit/s.

    Return None if a receiver, or the samples of one, are missing.
    """
    known = [side for side in receivers if side is not None]
    samples = min((len(side.series.columns.get("t_ns", ())) for side in known), default=0)
    if samples < 2 or len(known) < len(receivers):
        return None
    edges = np.linspace(0.0, length_s, min(most, samples) + 1)
    return ((edges[1:] + edges[:-1]) / 2).tolist(), goodput_mbps(known, start_ns, edges).tolist()


def charted_cells(plan: RunPlan) -> tuple[Cell, ...]:
    """Return the cells whose goodput over time is charted."""
    return charted(plan, MOST_CHARTS if len(plan.cells) <= MOST_CHARTS else MOST_OF_MATRIX)


def drawn_numbers(plan: RunPlan) -> frozenset[int]:
    """Return the numbers of the charted cells: a page needs only their interval series (`Store.repetitions`)."""
    return frozenset(cell.number for cell in charted_cells(plan))


def sampled(plan: RunPlan) -> bool | frozenset[int]:
    """Return the numbers of the cells whose interval series a report reads, or True for all.

    Limits follow from the series. In a large run only charted cells are read; the others have the limits that their
    totals show.
    """
    flows = sum(len(cell.streams) * cell.parallel for cell in plan.cells) * plan.repeat
    return True if flows <= MOST_FLOWS else drawn_numbers(plan)


def charted(plan: RunPlan, most: int) -> tuple[Cell, ...]:
    """Return all cells, or if they are more than `most`, a choice of those with the most pairs.

    The choice has the fewest and the most flows, evenly over conditions and windows.
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
