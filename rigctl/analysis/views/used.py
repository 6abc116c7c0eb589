"""Tell which requests had an effect: a larger MSS that never went over the wire tells no tests apart."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from rigctl.figures import Figure
from rigctl.figures.effective import MSS_EFFECTIVE, WINDOW_EFFECTIVE
from rigctl.records import Cell
from rigctl.results.summary import CellSummary
from rigctl.settings import MSS, WINDOW, Setting

_GRANTED: Final[Mapping[Setting[Any], Figure[int]]] = {MSS: MSS_EFFECTIVE, WINDOW: WINDOW_EFFECTIVE}
"""Settings that kernels bound, each with the figure of its effective value."""


def unused_settings(cells: Sequence[CellSummary]) -> tuple[Setting[Any], ...]:
    """Return the settings that tests request differently, although all tests had the same effective value."""
    counted = [cell for cell in cells if cell.counted]
    return tuple(
        setting
        for setting, figure in _GRANTED.items()
        if len({cell.cell[setting] for cell in counted}) > 1
        and len({stream[figure] for cell in counted for stream in cell.streams} - {None}) == 1
    )


def used_requests(cells: Sequence[CellSummary]) -> list[Cell]:
    """Return the requests of tests without their `unused_settings`."""
    unused = dict.fromkeys(unused_settings(cells))
    return [replace(cell.cell, settings=cell.cell.settings | unused) for cell in cells]
