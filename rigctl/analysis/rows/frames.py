"""A stored run as rows and pandas frames, one per level of the column table."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rigctl.analysis.rows.cells import Row, Rows, derive
from rigctl.analysis.rows.series import bin_rows, bucket_rows, interval_rows
from rigctl.base.errors import InputError
from rigctl.columns import COLUMNS, Column, Level, columns_at
from rigctl.records import Cell, Repetition, RunInfo
from rigctl.settings import setting_columns

if TYPE_CHECKING:
    import pandas as pd

_TEXT: Final = frozenset(
    {"run", "status", "reason", "test", "source", "destination", "direction", "limit", "condition", "limit_detail"}
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


@dataclass(frozen=True)
class Frames:
    """The rows of a run at each level, and the same as frames with exactly the columns of `columns_at(level)`."""

    info: RunInfo
    repetitions: tuple[Repetition, ...]
    derived: Rows
    _made: dict[Level, "pd.DataFrame"] = field(default_factory=dict, repr=False, compare=False)

    def rows(self, level: Level) -> list[Row]:
        if level in _OF_EACH:
            return self._of_each(_OF_EACH[level])
        if level is Level.CELLS:
            return self.derived.cells
        return self.derived.pairs if level is Level.PAIRS else self.derived.flows

    def _of_each(self, rows_of: Callable[[RunInfo, Cell, Repetition], list[Row]]) -> list[Row]:
        cells = {cell.number: cell for cell in self.info.plan.cells}
        return [
            row for repetition in self.repetitions for row in rows_of(self.info, cells[repetition.cell], repetition)
        ]

    def frame(self, level: Level) -> "pd.DataFrame":
        if level not in self._made:
            self._made[level] = frame_of(self.rows(level), level)
        return self._made[level]

    @property
    def cells(self) -> "pd.DataFrame":
        return self.frame(Level.CELLS)

    @property
    def pairs(self) -> "pd.DataFrame":
        return self.frame(Level.PAIRS)

    @property
    def flows(self) -> "pd.DataFrame":
        return self.frame(Level.FLOWS)

    @property
    def intervals(self) -> "pd.DataFrame":
        return self.frame(Level.INTERVALS)

    @property
    def bins(self) -> "pd.DataFrame":
        return self.frame(Level.BINS)

    @property
    def histogram(self) -> "pd.DataFrame":
        return self.frame(Level.HISTOGRAM)


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
