"""Tell which requests had an effect: a larger MSS that never went over the wire tells no tests apart."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from rigctl.base.values import group_by
from rigctl.figures import Figure
from rigctl.figures.effective import MSS_EFFECTIVE, WINDOW_EFFECTIVE
from rigctl.records import Cell
from rigctl.results.summary import CellSummary
from rigctl.settings import MSS, WINDOW, Setting

_GRANTED: Final[Mapping[Setting[Any], Figure[int]]] = {MSS: MSS_EFFECTIVE, WINDOW: WINDOW_EFFECTIVE}
"""Settings that kernels bound, each with the figure of its effective value."""


def unused_settings(cells: Sequence[CellSummary]) -> dict[Setting[Any], int]:
    """Return the settings that tests request differently, each with the effective value that all tests had."""
    counted = [cell for cell in cells if cell.counted]
    used = {}
    for setting, figure in _GRANTED.items():
        effective = {value for cell in counted for stream in cell.streams if (value := stream[figure]) is not None}
        if len(effective) == 1 and len({cell.cell[setting] for cell in counted}) > 1:
            used[setting] = effective.pop()
    return used


def used_requests(cells: Sequence[CellSummary]) -> list[Cell]:
    """Return the requests of tests without their `unused_settings`."""
    unused = dict.fromkeys(unused_settings(cells))
    return [replace(cell.cell, settings=cell.cell.settings | unused) for cell in cells]


def alike_tests(cells: Sequence[CellSummary]) -> list[list[int]]:
    """Return groups of two or more tests, by number, whose requests differ in `unused_settings` only."""
    requests = [replace(cell, number=0) for cell in used_requests(cells)]
    numbered = zip(requests, (cell.cell.number for cell in cells), strict=True)
    groups = group_by(numbered, lambda own: own[0]).values()
    return [[number for _, number in own] for own in groups if len(own) > 1]
