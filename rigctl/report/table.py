"""A table of a report: columns, rows of texts, notes and legend."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TableColumn:
    """`group` is `asked`, `measured` or `derived`: the table may be split between them where it is too wide."""

    title: str
    unit: str
    group: str
    words: bool = False  # left-aligned

    @property
    def header(self) -> str:
        return f"{self.title} [{self.unit}]" if self.unit else self.title


@dataclass(frozen=True, slots=True)
class TableRow:
    number: int
    cells: tuple[str, ...]
    notes: tuple[int, ...]  # numbers of the notes below the table, from 1
    counted: bool  # some repetition counts
    line_rate: bool


@dataclass(frozen=True, slots=True)
class ComparisonTable:
    columns: tuple[TableColumn, ...]
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...] = ()
    legend: tuple[str, ...] = field(default=())
