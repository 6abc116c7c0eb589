"""Makes table columns of requested settings from the records in `settings`; shown if a test requests the setting."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Final, Protocol, TypeVar

from rigctl import settings
from rigctl.figures.effective import COUNTED
from rigctl.findings.text import UNKNOWN, pairs_text
from rigctl.records import Cell, Direction, several_sets
from rigctl.report.blocks import CellValue, Column, Entry
from rigctl.report.tables.columns import ColumnOf, FilledColumn, significant, to_needed, words
from rigctl.settings import DEFAULT, Setting
from rigctl.settings.kinds import TCP

_Item = TypeVar("_Item", bound="_Result")
_SCALED: Final[dict[str, Callable[[int], float]]] = {
    "KiB": lambda size: significant(size / 1024, 5),
    "Mbit/s": lambda rate_bps: rate_bps / 1e6,
}
"""Conversion of numbers with these units. All numbers of the column then get equal decimals."""
_SHORT: Final[dict[str, tuple[str | None, str]]] = {
    "Parallel": ("Flows", "{} flows"),
    "MSS": ("MSS", "MSS {}"),
    "Congestion control": (None, "{}"),
    "Kind": (None, "{}"),
    "Datagram": ("Size\nB", "datagrams of {} B"),
    "Offered load per flow": ("Offered\nMbit/s", ""),
}
"""By column title: a short column head or None, and the phrase for a value that all tests share."""


class _Result(Protocol):
    """One row of a table: any result that names its test."""

    @property
    def cell(self) -> Cell: ...


@dataclass(frozen=True, slots=True)
class Requested:
    """A table column for a setting: its value in a test, the printed text, and whether the column is shown."""

    column: Column
    value: Callable[[Cell], CellValue]
    text: Callable[[CellValue], str] = str
    wanted: Callable[[Sequence[Cell]], bool] | None = None  # None: shown if some test has a value
    varied: bool = False  # True: shown only if the values of tests differ
    unset: str = DEFAULT  # text for a test without a value
    takes: Callable[[Cell], bool] = lambda _: True  # whether the setting exists for a test; if not, a dash is printed

    def of(self, items: Sequence[_Result]) -> FilledColumn | None:
        """Return the column with the setting of each row's test, or None if the column is not shown."""
        cells = [item.cell for item in items]
        values = [self.value(cell) for cell in cells]
        if self.varied:
            shown = len(set(values)) > 1
        else:
            shown = self.wanted(cells) if self.wanted is not None else any(value is not None for value in values)
        if not shown:
            return None
        scale = _SCALED.get(self.column.unit)
        numbers = [scale(value) if scale and isinstance(value, int) else None for value in values]
        aligned = to_needed()(numbers)
        texts = (
            aligned(number)
            if number is not None
            else self.text(value)
            if value is not None
            else self.unset
            if self.takes(cell)
            else UNKNOWN
            for cell, value, number in zip(cells, values, numbers, strict=True)
        )
        return FilledColumn(self.column, tuple(map(Entry, texts, values)))


def _flag(value: CellValue) -> str:
    return "on" if value else "off"


def _mbps(value: CellValue) -> str:
    return f"{value / 1e6:g}" if isinstance(value, int) else str(value)


def _column(title: str, unit: str = "", words: bool = False) -> Column:
    short, phrase = _SHORT.get(title, (None, ""))
    return Column(title, unit, "requested", words, short, phrase)


def requested_column(
    setting: Setting[Any], title: str = "", unit: str = "", text: Callable[[Any], str] | None = None
) -> Requested:
    """Return the column of a setting. `title` and `unit` are used only if the record of the setting has none."""
    if setting.title is not None:
        title, unit, text = setting.title.text, setting.title.unit, text or setting.title.value
    return Requested(
        _column(title, unit, setting.type in (bool, str)),
        itemgetter(setting),
        text or (_flag if setting.type is bool else str),
        unset=setting.default,
        takes=lambda cell: setting.takes(cell.kind),
    )


def _minor(own: Requested) -> Requested:
    return replace(own, column=replace(own.column, minor=1))


def main_column(own: Requested) -> Requested:
    """Return the column as a main column, which phones show beside the main figures: it tells rows apart."""
    return replace(own, column=replace(own.column, minor=-1))


def varying_column(setting: Setting[Any], title: str = "") -> Requested:
    """Return the column of a setting, shown only if tests differ in the setting."""
    return replace(requested_column(setting, title), varied=True)


def columns_of_counts(effective: Callable[[_Item], Iterable[Mapping[str, str | None]]]) -> list[ColumnOf[_Item]]:
    """Return a column for each setting in `COUNTED`, with the effective values; shown if a test requests the setting.

    `effective` returns a mapping from setting name to value for each stream of a row.
    """

    def column(setting: Setting[Any]) -> ColumnOf[_Item]:
        return words(
            f"Effective {setting.title.text if setting.title else setting.name}",
            lambda item: (values[setting.name] for values in effective(item)),
            lambda item: item.cell[setting] is not None,
        )

    return [column(setting) for setting in COUNTED]


TEST_COLUMN: Final = Requested(_column("Test"), lambda cell: cell.number)
CLASS_COLUMN: Final = Requested(_column("Class", words=True), lambda cell: cell.traffic_class)
_PART: Final = Requested(_column("Part", words=True), lambda cell: cell.part)
CONDITION_COLUMN: Final = requested_column(settings.CONDITION, "Condition")
_PAIRS: Final = Requested(_column("Pairs"), lambda cell: len(cell.pairs), varied=True)
SENDING: Final = Requested(_column("Pair", words=True), lambda cell: pairs_text(cell.pairs), wanted=several_sets)
_PARALLEL: Final = requested_column(settings.PARALLEL, "Parallel")
_DIRECTION: Final = Requested(
    _column("Direction", words=True),
    lambda cell: str(cell.direction),
    wanted=lambda cells: any(cell.direction is not Direction.FORWARD for cell in cells),
)
_ENGINE: Final = Requested(_column("Engine", words=True), lambda cell: cell.engine, varied=True)
_LATENCY: Final = Requested(_column("Probes every", "ms"), lambda cell: cell.latency_ms, varied=True, unset="off")
TRANSPORT_COLUMN: Final = Requested(
    _column("Transport", words=True),
    lambda cell: cell.transport.upper(),
    wanted=lambda cells: any(cell.transport == "udp" for cell in cells),
)
PLACEMENT_COLUMN: Final = requested_column(settings.PLACEMENT)
_BEFORE: Final = (settings.WINDOW_TOTAL, settings.WINDOW, settings.MSS)
_AFTER: Final = tuple(
    setting
    for setting in settings.SETTINGS.values()
    if setting.title is not None and setting.takes(TCP) and setting not in (*_BEFORE, settings.PLACEMENT)
)
OF_ALL: Final = tuple(requested_column(setting) for setting in _AFTER if setting.kinds is None)
"""The columns for tests of every kind, without the window columns."""
STREAM_COLUMNS: Final = (
    TEST_COLUMN,
    CONDITION_COLUMN,
    _PAIRS,
    SENDING,
    *map(requested_column, _BEFORE),
    _PARALLEL,
    *map(requested_column, _AFTER),
    requested_column(settings.RATE, "Rate per flow", "Mbit/s", _mbps),
    PLACEMENT_COLUMN,
    _DIRECTION,
    _ENGINE,
    _LATENCY,
)
"""The columns of tests of kind tcp."""
DATAGRAM_COLUMNS: Final = (
    TEST_COLUMN,
    CONDITION_COLUMN,
    _PAIRS,
    SENDING,
    requested_column(settings.WINDOW),
    _PARALLEL,
    requested_column(settings.SIZE, "Datagram", "B"),
    requested_column(settings.RATE, "Offered load per flow", "Mbit/s", _mbps),
    requested_column(settings.BURST, "Burst requested"),
    *OF_ALL,
    PLACEMENT_COLUMN,
    _DIRECTION,
    _ENGINE,
    _LATENCY,
)
"""The columns of tests of kind udp."""
CLASSED: Final = (
    Requested(_column("Kind", words=True), lambda cell: cell.test),
    CONDITION_COLUMN,
    _PAIRS,
    SENDING,
    *map(requested_column, _BEFORE),
    _PARALLEL,
    *map(_minor, DATAGRAM_COLUMNS[6:9]),
    *(_minor(requested_column(each)) if each is settings.CONGESTION else requested_column(each) for each in _AFTER),
    _DIRECTION,
)
"""The columns for traffic classes that are measured together; they follow the name of the class."""
COMPARED: Final = (
    _PART,
    CLASS_COLUMN,
    CONDITION_COLUMN,
    _PAIRS,
    SENDING,
    *map(requested_column, _BEFORE),
    _PARALLEL,
    *DATAGRAM_COLUMNS[6:9],
    *map(requested_column, _AFTER),
    PLACEMENT_COLUMN,
    _DIRECTION,
    _ENGINE,
    _LATENCY,
    TRANSPORT_COLUMN,
    requested_column(settings.BUSY_POLL, "Busy poll"),
    requested_column(settings.READ, "Read"),
    requested_column(settings.WRITE, "Write"),
)
"""The columns of a comparison of two runs, for tests of any kind; it shows those in which its tests differ."""
