"""A column of exports and frames: its name, unit, meaning and the levels that have it."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class Level(IntEnum):
    """What one row stands for."""

    CELLS = 0
    PAIRS = 1
    FLOWS = 2
    INTERVALS = 3
    BINS = 4
    HISTOGRAM = 5


MEASURED: Final = frozenset({Level.CELLS, Level.PAIRS, Level.FLOWS})
ONLY_FLOWS: Final = frozenset({Level.FLOWS})
BUCKETS: Final = frozenset({Level.HISTOGRAM})


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `rigctl.columns.COLUMNS`."""

    name: str
    unit: str  # "" for names and plain counts
    levels: frozenset[Level]
    meaning: str
    digits: int | None = None  # decimals in tables; None: as it is

    @property
    def header(self) -> str:
        return f"{self.name} [{self.unit}]" if self.unit else self.name
