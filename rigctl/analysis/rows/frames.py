"""A stored run as rows and pandas frames, one per level of the column table."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from rigctl.analysis.rows.cells import Row, Rows, derive
from rigctl.analysis.rows.series import bin_rows, bucket_rows, interval_rows
from rigctl.base.errors import InputError
from rigctl.columns import COLUMNS, Column, Level, columns_at
from rigctl.records import Repetition, RunInfo
from rigctl.settings import setting_columns

if TYPE_CHECKING:
    import pandas as pd

_TEXT: Final = frozenset(
    {"run", "status", "reason", "test", "source", "destination", "direction", "limit", "condition", "limit_detail"}
    | {"subflow_bytes"}
    | {name for name, kind in setting_columns().items() if kind is str}
)
_FLAGS: Final = frozenset({"counted"} | {name for name, kind in setting_columns().items() if kind is bool})
_OF_EACH: Final = {Level.INTERVALS: interval_rows, Level.BINS: bin_rows, Level.HISTOGRAM: bucket_rows}
"""Levels whose rows are made on use, repetition by repetition."""


def dtype(column: Column) -> str:
    """Return the pandas type of a column; all types hold unknown values as NA."""
    if column.name in _TEXT:
        return "string"
    if column.name in _FLAGS:
        return "boolean"
    return "Int64" if column.digits is None else "Float64"


def frame_of(rows: Iterable[Row], level: Level) -> "pd.DataFrame":
    """Return rows, also of several runs, as a frame with exactly the columns of `columns_at(level)`."""
    import pandas as pd

    types = {column.name: dtype(column) for column in columns_at(level)}
    return pd.DataFrame(list(rows), columns=list(types)).astype(types)


def _frame(level: Level) -> "cached_property[pd.DataFrame]":
    def made(frames: "Frames") -> "pd.DataFrame":
        return frame_of(frames.rows(level), level)

    return cached_property(made)


class Frames:
    """The rows of a run at each level, and the same as frames with exactly the columns of `columns_at(level)`."""

    def __init__(self, info: RunInfo, repetitions: Sequence[Repetition], derived: Rows) -> None:
        self.info, self.repetitions, self.derived = info, repetitions, derived

    def rows(self, level: Level) -> list[Row]:
        """Return the rows of a level. Those over time and of histograms are made anew each time."""
        if level in (Level.CELLS, Level.PAIRS):
            return self.derived.cells if level is Level.CELLS else self.derived.pairs
        if level is Level.FLOWS:
            return self.derived.flows
        cells = {cell.number: cell for cell in self.info.plan.cells}
        each = ((cells[repetition.cell], repetition) for repetition in self.repetitions)
        return [row for cell, repetition in each for row in _OF_EACH[level](self.info, cell, repetition)]

    cells = _frame(Level.CELLS)
    pairs = _frame(Level.PAIRS)
    flows = _frame(Level.FLOWS)
    intervals = _frame(Level.INTERVALS)
    bins = _frame(Level.BINS)
    histogram = _frame(Level.HISTOGRAM)


def load(info: RunInfo, repetitions: Iterable[Repetition]) -> Frames:
    """Return the frames of a run, each made on first use. Raise InputError if the records contradict each other."""
    kept = tuple(repetitions)
    _check(info, kept)
    return Frames(info, kept, derive(info, kept))


def _check(info: RunInfo, repetitions: Iterable[Repetition]) -> None:
    planned = {cell.number for cell in info.plan.cells}
    for repetition in repetitions:
        if repetition.cell not in planned:
            what = "the run's plan has no such test"
        elif repetition.window_s is not None and repetition.window_s <= 0:
            what = "its measurement interval ends before it begins"
        else:
            continue
        raise InputError(
            f"run {info.run}, test {repetition.cell}, repetition {repetition.repetition}: {what}. The store is "
            "damaged, or another program changed it: name another run, or an older copy with --store"
        )


assert {column.name for column in COLUMNS} >= _TEXT | _FLAGS
