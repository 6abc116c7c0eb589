"""Evaluate goodput over time: resample it to common times, choose the tests to chart."""

import math
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import numpy as np

from rigctl.analysis.run_view import RunView
from rigctl.base.values import group_by
from rigctl.model.window import Times, bytes_at
from rigctl.records import Cell, Repetition, RunPlan, Side, Status
from rigctl.settings import MSS, WINDOW, WINDOW_TOTAL

_DIP: Final = 0.05  # goodput dips if it is more than this share below its median
MOST_CHARTS: Final = 48
MOST_OF_MATRIX: Final = 12
"""Most charts of a run with more tests than `MOST_CHARTS`, as each chart has a line for each pair."""


def goodput_mbps(receivers: Sequence[Side], start_ns: int, edges: Times) -> Times:
    """Return total goodput in Mbit/s between successive times of `edges`, in s after `start_ns`."""
    received = np.sum([bytes_at(side, start_ns, edges) for side in receivers], axis=0)
    goodput: Times = np.diff(received) * 8e-6 / np.diff(edges)
    return goodput


class Grid(NamedTuple):
    """Equal bins of a multiple of the sampling interval. The last bin ends at the end of the measurement interval."""

    bin_s: float
    middles_s: list[float]
    edges: Times


def grid(sides: Sequence[Side], length_s: float, most: int) -> Grid | None:
    """Return at most `most` bins over `length_s` seconds; None if the samples are too few to tell their interval."""
    steps = [np.diff(side.series.columns["t_ns"]) for side in sides if len(side.series.columns.get("t_ns", ())) > 1]
    if not steps:
        return None
    interval_s = max(round(float(np.median(np.concatenate(steps))) / 1e6), 1) / 1e3
    bin_s = interval_s * max(1, math.ceil(round(length_s / interval_s / most, 3)))
    edges: Times = bin_s * np.arange(max(1, round(length_s / bin_s)) + 1, dtype=np.float64)
    edges[-1] = length_s
    return Grid(bin_s, [round((number + 0.5) * bin_s, 6) for number in range(len(edges) - 1)], edges)


def resample(
    receivers: Sequence[Side | None], start_ns: int, length_s: float, most: int
) -> tuple[list[float], list[float]] | None:
    """Return middles of bins in s, and total goodput in Mbit/s; None if the samples of a receiver are missing."""
    known = [side for side in receivers if side is not None and len(side.series.columns.get("t_ns", ())) > 1]
    bins = grid(known, length_s, most)
    if bins is None or len(known) < len(receivers):
        return None
    return bins.middles_s, goodput_mbps(known, start_ns, bins.edges).tolist()


class Dip(NamedTuple):
    """How long goodput stayed more than 5 % below its median: at most without a break, and in all."""

    longest_s: float
    below_s: float
    median_mbps: float


def dip_of(goodput: Times, bin_s: float) -> Dip:
    """Return the dips of goodput in Mbit/s, which has a value for each bin of `bin_s`."""
    longest = run = 0
    middle = float(np.median(goodput))
    below = goodput < (1 - _DIP) * middle
    for low in below:
        run = run + 1 if low else 0
        longest = max(longest, run)
    return Dip(longest * bin_s, float(below.sum()) * bin_s, middle)


def last_counted(view: RunView, cells: Collection[Cell]) -> dict[int, Repetition]:
    """Return the last valid repetition of each of the tests `cells`, with samples, by test number."""
    numbers = {cell.number for cell in cells}
    last = {one.cell: one for one in view.repetitions if one.status is Status.OK and one.cell in numbers}
    return {repetition.cell: repetition for repetition in view.stored.whole(last.values(), samples=True)}


def numbers_to_chart(plan: RunPlan) -> frozenset[int]:
    """Return the numbers of the tests to chart."""
    return frozenset(cell.number for cell in cells_to_chart(plan))


def cells_to_chart(plan: RunPlan, most: int = MOST_CHARTS) -> tuple[Cell, ...]:
    """Return the tests to chart over time: all tests, if there are at most `most`.

    Otherwise return up to `MOST_OF_MATRIX` tests among those with the most pairs: for each condition, window and MSS
    the tests with the fewest and the most flows, thinned out evenly.
    """
    if len(plan.cells) <= most:
        return plan.cells
    pairs = max(len(cell.pairs) for cell in plan.cells)
    panels = group_by(
        (cell for cell in plan.cells if len(cell.pairs) == pairs),
        lambda cell: (cell.condition, cell[WINDOW_TOTAL] or cell[WINDOW], cell[MSS]),
    )
    by_flows = (sorted(group, key=lambda cell: cell.parallel) for group in panels.values())
    ends = [cell for group in by_flows for cell in dict.fromkeys((group[0], group[-1]))]
    step = max(1, -(-len(ends) // min(most, MOST_OF_MATRIX)))
    return tuple(sorted(ends[::step], key=lambda cell: cell.number))
