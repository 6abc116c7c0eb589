"""Goodput over time: resampled to common instants, and the cells of which it is drawn."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from rigctl.model.window import Times, received_at
from rigctl.records import Cell, RunPlan, Side
from rigctl.settings import MSS, WINDOW, WINDOW_TOTAL

MOST_CHARTS: Final = 48
MOST_FLOWS: Final = 4000
"""The most flows, over all repetitions, of which every sample is read: about four seconds' work."""
MOST_OF_MATRIX: Final = 12
"""The most that are drawn of a run with more cells than `MOST_CHARTS`: a chart has a line for each pair."""


def goodput_mbps(receivers: Sequence[Side], start_ns: int, edges: Times) -> Times:
    """Return the goodput of all receivers together between each two of `edges`, in Mbit/s."""
    received = np.sum([received_at(side, start_ns, edges) for side in receivers], axis=0)
    goodput: Times = np.diff(received) * 8e-6 / np.diff(edges)
    return goodput


def resampled(
    receivers: Sequence[Side | None], start_ns: int, length_s: float, most: int
) -> tuple[list[float], list[float]] | None:
    """Return the middles of at most `most` equal bins in seconds, and the goodput of all receivers in Mbit/s.

    None if a receiver, or the samples of one, are missing.
    """
    known = [side for side in receivers if side is not None]
    samples = min((len(side.series.columns.get("t_ns", ())) for side in known), default=0)
    if samples < 2 or len(known) < len(receivers):
        return None
    edges = np.linspace(0.0, length_s, min(most, samples) + 1)
    return ((edges[1:] + edges[:-1]) / 2).tolist(), goodput_mbps(known, start_ns, edges).tolist()


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
