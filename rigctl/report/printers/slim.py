"""Fits a table into a terminal or a page of any width, without splitting the table.

One sentence states the values that all rows share. An effective value is printed only if it differs from the requested
value, as `8960→1448`. Each stream gets its own column. Minor columns that do not fit are omitted, first the limit and
the ceiling: `Fitted.left_out` has them. Only where settings and main figures alone do not fit, the values of all
streams share a column, and a sentence names the streams.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from rigctl.findings.text import UNKNOWN, lower_first, upper_first
from rigctl.report.blocks import Column, Entry, Row, Table
from rigctl.settings import DEFAULT

_GAP: Final = "  "
_BAR: Final = 5
"""Width in characters of the bar that shows a percentage."""
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
_TELLS_APART: Final = -2  # below each `minor`
_SHORT: Final = 12
"""Width in characters at which a column head wraps; longer words are kept."""
_DECIMALS: Final = re.compile(r"(\d{3,})\.\d+")
_SUPERSCRIPTS: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_STYLES: Final = {"good": "green", "warn": "bold magenta", "": ""}
"""Styles of entries. A figure in yellow could not be read on white."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A column as printed. Columns with the same `group` share a common head."""

    column: Column
    entries: tuple[Entry, ...]
    counted: tuple[bool, ...]  # for each row: whether its test has a result
    head: tuple[str, ...]
    group: str = ""
    longest: int = 1000  # a text with more characters is wrapped

    @property
    def width(self) -> int:
        return max(min(self.longest, cell_len(text)) for text in (*self.head, *(entry.text for entry in self.entries)))

    @property
    def common(self) -> str | None:
        """Return the text that all rows with a result share; None if they differ or an entry has a warning."""
        known = self._known
        marked = any(entry.mark == "warn" for entry in known)
        return known[0].text if len({entry.text for entry in known}) == 1 and not marked else None

    @property
    def is_zero(self) -> bool:
        """Tell whether all measured values of the column are 0, as of a run without losses."""
        values = [entry.value if isinstance(entry.value, tuple) else (entry.value,) for entry in self._known]
        numbers = [value for own in values for value in own if isinstance(value, int | float)]
        return bool(values) and not any(numbers) and len(numbers) == sum(map(len, values))

    @property
    def _known(self) -> list[Entry]:
        rows = zip(self.entries, self.counted, strict=True)
        return [entry for entry, counted in rows if counted or entry.text != UNKNOWN]

    @property
    def is_setting(self) -> bool:
        """Tell whether the column has requested or granted values, not results."""
        return self.column.group == "requested" or bool(self.column.granted)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A table fitted to a width: columns that fit, columns left out, and a sentence on values that all rows share."""

    table: Table
    columns: tuple[Shown, ...]
    left_out: tuple[Shown, ...]
    alike: str

    @property
    def width(self) -> int:
        return _width(self.columns)

    @property
    def lines(self) -> tuple[Text, ...]:
        return tuple(_lines(self.table, self.columns))

    @property
    def titles_left_out(self) -> tuple[str, ...]:
        return tuple(lower_first(each.column.title) for each in self.left_out)

    @property
    def phrases_left_out(self) -> list[tuple[str, ...]]:
        """Return the omitted values of each row as phrases."""
        rows = range(len(self.table.rows))
        return [tuple(_phrase(each.column, each.entries[at].text) for each in self.left_out) for at in rows]


def superscript_text(number: int) -> str:
    return str(number).translate(_SUPERSCRIPTS)


def slim(table: Table, width: int) -> Fitted:
    """Return `table` fitted to a terminal of `width` characters, with bars for percentages, and with note numbers."""
    rows = tuple(replace(row, entries=(_noted(row), *row.entries[1:])) for row in table.rows)
    return fit(replace(table, rows=rows), width, bars=True)


def fit(table: Table, width: int, *, bars: bool = False, longest: int = 1000) -> Fitted:
    """Return `table` fitted to `width` characters. `bars` adds a bar to each percentage of the ceiling."""
    shown = [_slim_column(table, number, longest) for number in range(len(table.columns))]
    for merge in (_merge, _merge_values):
        alike, rest = _find_shared(table, merge(shown), width)
        apart = [_by_stream(table, rest), _by_stream(table, rest, main_only=True)]
        if bars:
            apart.insert(0, _with_bars(apart[0]))
        kept = next((each for each in apart if _width(each) <= width), None)
        if kept is not None:
            return Fitted(table, tuple(kept), (), _alike_text(table, alike))
    for merge in (_merge_values, _merge_if_differing):
        alike, rest = _find_shared(table, merge(shown), width)
        whole = _by_stream(table, rest, main_only=True)
        kept = _fewer(whole, width)
        if _width(kept) <= width and all(each in kept for each in whole if _rank(each) == _TELLS_APART):
            left = tuple(each for each in whole if each not in kept)
            return Fitted(table, tuple(kept), left, _alike_text(table, alike))
    kept = rest if _width(rest) <= width else _fewer(rest, width)
    left = tuple(each for each in rest if each not in kept)
    return Fitted(table, tuple(kept), left, _alike_text(table, alike, _order_of_streams(table, kept)))


def left_out_of_phones(columns: Sequence[Shown], width: int) -> frozenset[int]:
    """Return the indexes of the columns that a phone with `width` characters does not show."""
    kept = _fewer(columns, width, phone=True)
    return frozenset(at for at, each in enumerate(columns) if each not in kept)


def _noted(row: Row) -> Entry:
    """Return the first entry of a row, with the numbers of its notes added."""
    first = row.entries[0]
    return replace(first, text=first.text + "".join(map(superscript_text, row.notes)))


def _alike_text(table: Table, alike: Sequence[Shown], order: str = "") -> str:
    """Return the sentences on what all rows share; the settings of a single row stand apart from its results."""
    known = [(each, "0" if each.column.group == "measured" else each.common) for each in alike]
    phrases = [(each.is_setting, _phrase(each.column, text)) for each, text in known if text not in (None, UNKNOWN)]
    if len(table.rows) > 1:
        every = " · ".join(phrase for _, phrase in phrases)
        parts = [f"Every {lower_first(table.columns[0].title)}: {every}" if every else "", order]
    else:
        settings, results = (" · ".join(text for own, text in phrases if own is asked) for asked in (True, False))
        parts = [f"Settings: {settings}" if settings else "", upper_first(results), order]
    return ". ".join(filter(None, parts))


def _order_of_streams(table: Table, columns: Sequence[Shown]) -> str:
    """Return a sentence that names the streams whose values share a column; empty if no column has several."""
    if len(table.streams) < 2 or not any(entry.parts for each in columns for entry in each.entries):
        return ""
    return f"Values in this order: {', '.join(f'{sender}→{receiver}' for sender, receiver in table.streams)}"


def _find_shared(table: Table, columns: Sequence[Shown], width: int) -> tuple[list[Shown], list[Shown]]:
    """Return the columns whose value one sentence can state for all rows, and the columns that the table prints."""
    first, *others = columns
    single_row = len(table.rows) == 1
    if single_row and _width(columns) <= width:
        alike = []
    elif single_row:
        alike = [each for each in others if each.common is not None and (each.is_setting or _is_ceiling(each, others))]
    else:
        alike = [each for each in others if _is_alike(each)]
    ceilings = {_name(each.column): each.common or "" for each in alike}
    return alike, [first, *(_of_ceiling(each, ceilings) for each in others if each not in alike)]


def _is_alike(shown: Shown) -> bool:
    """Tell whether a sentence states the value of all rows. Of measured values it states only that nothing occurred."""
    column = shown.column
    if column.group == "measured":
        return shown.is_zero and column.minor >= 0
    return shown.common is not None and (column.minor >= 0 or column.words or shown.common == UNKNOWN)


def _is_ceiling(shown: Shown, columns: Sequence[Shown]) -> bool:
    return any(each.column.share_of and _name(shown.column).startswith(each.column.share_of) for each in columns)


def _rows(table: Table) -> tuple[Row, ...]:
    return (*table.rows, *((table.total,) if table.total else ()))


def _name(column: Column) -> str:
    return column.name or column.title


def _slim_column(table: Table, number: int, longest: int) -> Shown:
    column = table.columns[number]
    entries = tuple(row.entries[number] for row in _rows(table))
    beside = (*table.columns[max(0, number - 1) : number], *table.columns[number + 1 : number + 2])
    group = column.title if column.title in [each.title for each in beside] else ""
    if column.unit == "KiB":
        entries = tuple(replace(own, text=f"{own.text}K") if own.text[-1:].isdigit() else own for own in entries)
        column = replace(column, unit="")
    if group:
        head: tuple[str, ...] = (column.unit,)
    elif column.short is not None:
        head = tuple(column.short.split("\n"))
    else:
        words = column.title.split(" ", 1)
        lines = words if len(words[-1]) <= _SHORT else column.title.rsplit(" ", 2)
        head = (*lines, *([column.unit] if column.unit else []))
    return Shown(column, entries, tuple(row.counted for row in _rows(table)), head, group, longest)


def _merge(columns: Sequence[Shown], *, ranges: bool = True, said: bool = True) -> list[Shown]:
    """Return the columns with effective values merged into the requested ones, as `8960→1448`.

    Without `ranges`, a column with ranges stays apart, so that a narrow table may omit it. Without `said`, a value that
    a sentence states for all rows is not merged.
    """
    merged = list(columns)
    for own in columns:
        asked = next((each for each in merged if own.column.granted and _name(each.column) == own.column.granted), None)
        if asked is None or (not ranges and any(" to " in entry.text for entry in own.entries)):
            continue
        if asked.common == DEFAULT and own.common is not None:
            merged.remove(asked)
            continue
        # If different requests led to one effective value, its column stays, so that a sentence can state it.
        told = own.common is not None and asked.common is None and own.column.phrase
        if told and not said:
            continue
        pairs = list(zip(asked.entries, own.entries, strict=True))
        merged[merged.index(asked)] = replace(asked, entries=tuple(_effective_entry(*pair) for pair in pairs))
        if not told or all(effective.as_asked for _, effective in pairs):
            merged.remove(own)
    return merged


_merge_values = partial(_merge, ranges=False)
_merge_if_differing = partial(_merge, ranges=False, said=False)


def _effective_entry(asked: Entry, effective: Entry) -> Entry:
    if effective.as_asked or effective.text in (asked.text, UNKNOWN, ""):
        return asked
    granted = _DECIMALS.sub(r"\1", effective.text).replace(" to ", "–")
    return replace(asked, text=f"{asked.text}→{granted}")


def _of_ceiling(shown: Shown, ceilings: Mapping[str, str]) -> Shown:
    """Return the column. If it has percentages of a ceiling that all rows share, its head becomes `of 941.5`."""
    ceiling = next((text for name, text in ceilings.items() if name.startswith(shown.column.share_of)), "")
    if not shown.column.share_of or not ceiling:
        return shown
    entries = (own if own.text == UNKNOWN else replace(own, text=f"{own.text} %") for own in shown.entries)
    return replace(shown, entries=tuple(entries), head=(f"of {ceiling.partition(' ')[0]}",))


def _by_stream(table: Table, columns: Sequence[Shown], *, main_only: bool = False) -> list[Shown]:
    """Return the columns, split by stream where possible; with `main_only` only the main figures are split."""
    found: list[Shown] = []
    for each in columns:
        splits = each.column.minor < 0 or not main_only
        found += (_apart(table, each) if splits else []) or [each]
    return found


def _with_bars(columns: Sequence[Shown]) -> list[Shown]:
    """Return the columns with a bar to the right of each percentage of the ceiling."""
    found: list[Shown] = []
    for each in columns:
        found.append(each)
        if each.column.share_of and any(isinstance(entry.value, float) for entry in each.entries):
            texts = (_bar(entry.value) for entry in each.entries)
            found.append(Shown(Column("", words=True), tuple(map(Entry, texts)), each.counted, ("",)))
    return found


def _apart(table: Table, shown: Shown) -> list[Shown]:
    """Return a column for each stream of the table; empty if an entry does not have a value for each stream."""
    count = len(table.streams)
    if count < 2 or any(len(entry.parts) != count for entry in shown.entries):
        return []
    senders = {sender for sender, _ in table.streams}
    short = not shown.column.unit and len(senders) == count
    group = shown.column.title
    if shown.column.unit:
        words = shown.column.short or f"{shown.column.title} {shown.column.unit}"
        group = words.removesuffix("\nof each pair").replace("\n", " ")
    return [
        Shown(
            replace(shown.column, words=False),
            tuple(replace(entry, text=entry.parts[at], parts=()) for entry in shown.entries),
            shown.counted,
            (f"{sender}→" if short else f"{sender}→{receiver}",),
            group,
        )
        for at, (sender, receiver) in enumerate(table.streams)
    ]


def _bar(share_pct: object) -> str:
    eighths = round(8 * _BAR * min(100.0, max(0.0, share_pct)) / 100) if isinstance(share_pct, float | int) else 0
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def _width(columns: Sequence[Shown]) -> int:
    return sum(_widths(columns)) + len(_GAP) * (len(columns) - 1)


def _widths(columns: Sequence[Shown]) -> list[int]:
    """Return the width of each column; a group's first column is widened if the group's head needs it."""
    widths: list[int] = []
    for group, own in groupby(columns, lambda each: each.group):
        each = [column.width for column in own]
        if group:
            each[0] += max(0, cell_len(group) - sum(each) - len(_GAP) * (len(each) - 1))
        widths += each
    return widths


def _fewer(columns: Sequence[Shown], width: int, *, phone: bool = False) -> list[Shown]:
    """Return the columns that fit. Omit those with the largest `minor` first, then the last, never the first.

    Settings that tell rows apart are omitted after all other columns but the main figure. On a `phone`, omit
    percentages of the ceiling before settings, and never the main figures.
    """
    kept = list(columns)
    ranks = [_rank(each, phone=phone) for each in columns]
    if not phone and -1 in ranks:  # without its main figure a table tells nothing
        main = columns[ranks.index(-1)].column
        ranks = [_TELLS_APART - 1 if each.column == main else rank for each, rank in zip(columns, ranks, strict=True)]
    order = [(ranks[at], each.column.group != "requested", at) for at, each in enumerate(columns)][1:]
    for rank, _, at in sorted(order, reverse=True):
        column = columns[at].column
        if _width(kept) > width and columns[at] in kept and not (phone and rank < 0):
            kept = [each for each in kept if each.column != column and not each.column.minor == rank > 1]
    return kept


def _rank(shown: Shown, *, phone: bool = False) -> int:
    """Return a number that is lowest for the columns that a narrow table omits last."""
    if phone:
        return 1 if shown.column.share_of else shown.column.minor
    tells_apart = shown.column.group == "requested" and shown.common is None and shown.column.minor <= 0
    return _TELLS_APART if tells_apart else shown.column.minor


def _phrase(column: Column, text: str) -> str:
    if column.phrase and text != UNKNOWN:
        value, _, words = text.partition(" ") if text[:1].isdigit() else (text, "", "")
        phrase = column.phrase.format(value)
        return " ".join(filter(None, (phrase.removesuffix("s") if text == "1" else phrase, words)))
    unit = f" {column.unit}" if column.unit and text[-1:].isdigit() else ""
    return f"{lower_first(column.title)} {text}{unit}"


def _lines(table: Table, columns: Sequence[Shown]) -> Iterator[Text]:
    widths = _widths(columns)

    def line(texts: Sequence[Text]) -> Text:
        cells = []
        for text, width, each in zip(texts, widths, columns, strict=True):
            padding = " " * (width - text.cell_len)
            cells.append(Text.assemble(text, padding) if each.column.words else Text.assemble(padding, text))
        joined = Text(_GAP).join(cells)
        joined.rstrip()
        return joined

    height = max(len(each.head) + bool(each.group) for each in columns)
    heads = [*zip(*(("",) * (height - len(each.head)) + each.head for each in columns), strict=True)]
    for at, texts in enumerate(heads, 1 - height):
        is_grouped = at == -1 and any(each.group for each in columns)
        head = Text("".join(_groups(columns, widths, texts)).rstrip()) if is_grouped else line(list(map(Text, texts)))
        head.stylize("bold")
        yield head
    for at, row in enumerate(_rows(table)):
        if row is table.total:
            yield Text("─" * min(_width(columns), 200), style="dim")
        text = line([Text(each.entries[at].text, style=_STYLES[each.entries[at].mark]) for each in columns])
        text.stylize("bold" if row is table.total else "" if row.counted else "red")
        yield text


def _groups(columns: Sequence[Shown], widths: Sequence[int], texts: Sequence[str]) -> Iterator[str]:
    """Yield the parts of a line of heads: the head of each group above its columns, and the texts of other columns."""
    at = 0
    for group, own in groupby(columns, lambda each: each.group):
        count = len(list(own))
        wide = sum(widths[at : at + count]) + len(_GAP) * (count - 1)
        if group:
            left = (wide - cell_len(group) + 1) // 2
            yield f"{' ' * left}{group}{' ' * (wide - left - cell_len(group))}{_GAP}"
        else:
            for each, width, text in list(zip(columns, widths, texts, strict=True))[at : at + count]:
                padding = " " * (width - cell_len(text))
                yield f"{text}{padding}{_GAP}" if each.column.words else f"{padding}{text}{_GAP}"
        at += count
