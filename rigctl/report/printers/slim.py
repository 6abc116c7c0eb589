"""Prints a table as text for a terminal of any width, without splitting the table.

A column with equal values goes into one line about all tests. An effective value is printed only if it differs from the
requested value, as `8960→1448`. Each stream gets its own column if there is room. Minor columns that still do not fit
are omitted: `Slim.left_out` has their values by row.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from rigctl.findings.text import UNKNOWN, lower_first
from rigctl.report.blocks import Column, Entry, Row, Table
from rigctl.settings import DEFAULT

_GAP: Final = "  "
_BAR: Final = 5
"""Width in characters of the bar that shows a share."""
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
_SHORT: Final = 12
"""Width in characters at which a column head wraps; longer words are kept."""
_DECIMALS: Final = re.compile(r"(\d{3,})\.\d+")
_SUPERSCRIPTS: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_STYLES: Final = {"good": "green", "warn": "yellow", "": ""}


@dataclass(frozen=True, slots=True)
class Slim:
    """A printed table: its lines, values that all rows share, omitted titles, and omitted values by row."""

    lines: tuple[Text, ...]
    alike: tuple[str, ...]
    titles_left_out: tuple[str, ...]
    left_out: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class _Shown:
    """A column as printed. Columns with the same `group` share a common head."""

    column: Column
    entries: tuple[Entry, ...]
    counted: tuple[bool, ...]  # for each row: whether its test has a result
    head: tuple[str, ...]
    group: str = ""

    @property
    def width(self) -> int:
        return max(cell_len(text) for text in (*self.head, *(entry.text for entry in self.entries)))

    @property
    def common(self) -> str | None:
        """Return the text that all rows with a result share; None if they differ or an entry has a warning."""
        known = [
            each for each, counted in zip(self.entries, self.counted, strict=True) if counted or each.text != UNKNOWN
        ]
        marked = any(entry.mark == "warn" for entry in known)
        return known[0].text if len({entry.text for entry in known}) == 1 and not marked else None


def superscript_text(number: int) -> str:
    """Return a number in superscript digits."""
    return str(number).translate(_SUPERSCRIPTS)


def slim(table: Table, width: int) -> Slim:
    """Return `table` printed for a terminal of `width` characters."""
    shown = [_shown(table, number) for number in range(len(table.columns))]
    for ranges in (True, False):  # try ranges of effective values first; they are long
        alike, rest = _find_shared(table, _merge(shown, ranges=ranges), width)
        wide = (_by_stream(table, rest, bars=True), _by_stream(table, rest, bars=False), rest)
        fitting = next((each for each in wide if _width(each) <= width), None)
        if fitting is not None:
            break
    kept = fitting or _fewer(rest, width)
    left = [] if fitting else [each for each in rest if each not in kept]
    return Slim(
        tuple(_lines(table, kept)),
        tuple(_phrase(each.column, text) for each in alike if (text := each.common) not in (None, UNKNOWN)),
        tuple(lower_first(each.column.title) for each in left),
        tuple(tuple(_phrase(each.column, each.entries[at].text) for each in left) for at in range(len(table.rows))),
    )


def _find_shared(table: Table, columns: Sequence[_Shown], width: int) -> tuple[list[_Shown], list[_Shown]]:
    """Return the columns with equal values in all rows, and the other columns."""
    first, *others = columns
    alike = [each for each in others if each.common is not None and each.column.group != "measured"]
    about = len(table.rows) == 1  # only with several rows does an equal limit move to the shared line
    alike = [each for each in alike if each.column.minor >= 0 or (each.column.words and not about)]
    if about and _width(columns) <= width:
        alike = []
    ceilings = {_name(each.column): each.common or "" for each in alike}
    return alike, [first, *(_of_ceiling(each, ceilings) for each in others if each not in alike)]


def _rows(table: Table) -> tuple[Row, ...]:
    return (*table.rows, *((table.total,) if table.total else ()))


def _name(column: Column) -> str:
    return column.name or column.title


def _shown(table: Table, number: int) -> _Shown:
    column = table.columns[number]
    entries = tuple(row.entries[number] for row in _rows(table))
    if not number:
        entries = tuple(
            replace(entry, text=entry.text + "".join(map(superscript_text, row.notes)))
            for entry, row in zip(entries, _rows(table), strict=True)
        )
    if column.unit == "KiB":
        entries = tuple(_in_k(entry) for entry in entries)
        column = replace(column, unit="")
    if column.short is not None:
        head = tuple(column.short.split("\n"))
    else:
        words = column.title.split(" ", 1)
        lines = words if len(words[-1]) <= _SHORT else column.title.rsplit(" ", 2)
        head = (*lines, *([column.unit] if column.unit else []))
    return _Shown(column, entries, tuple(row.counted for row in _rows(table)), head)


def _in_k(entry: Entry) -> Entry:
    return replace(entry, text=f"{entry.text}K") if entry.text[-1:].isdigit() else entry


def _merge(columns: Sequence[_Shown], *, ranges: bool) -> list[_Shown]:
    """Return the columns with each effective value moved into the requested column; `ranges` keeps ranges there."""
    merged = list(columns)
    for own in columns:
        asked = next((each for each in merged if own.column.granted and _name(each.column) == own.column.granted), None)
        if asked is None or (not ranges and any(" to " in entry.text for entry in own.entries)):
            continue
        if asked.common == DEFAULT and own.common is not None:
            merged.remove(asked)
            continue
        pairs = list(zip(asked.entries, own.entries, strict=True))
        merged[merged.index(asked)] = replace(asked, entries=tuple(_granted(*pair) for pair in pairs))
        # If different requests had one common effect, the column stays, to be stated once for all tests.
        told = own.common is not None and asked.common is None and own.column.phrase
        if not told or all(effective.as_asked for _, effective in pairs):
            merged.remove(own)
    return merged


def _granted(asked: Entry, effective: Entry) -> Entry:
    if effective.as_asked or effective.text in (asked.text, UNKNOWN, ""):
        return asked
    granted = _DECIMALS.sub(r"\1", effective.text).replace(" to ", "–")
    return replace(asked, text=f"{asked.text}→{granted}")


def _of_ceiling(shown: _Shown, ceilings: Mapping[str, str]) -> _Shown:
    """Return the column of a share, with the ceiling in its head if all rows have the same ceiling."""
    ceiling = next((text for name, text in ceilings.items() if name.startswith(shown.column.share_of)), "")
    if not shown.column.share_of or not ceiling:
        return shown
    entries = tuple(
        entry if entry.text == UNKNOWN else replace(entry, text=f"{entry.text} %") for entry in shown.entries
    )
    return replace(shown, entries=entries, head=(f"of {ceiling.partition(' ')[0]}",))


def _by_stream(table: Table, columns: Sequence[_Shown], *, bars: bool) -> list[_Shown]:
    """Return the columns with one column per stream, and with bars beside shares if `bars`."""
    found: list[_Shown] = []
    for each in columns:
        found += _apart(table, each) or [each]
        if bars and each.column.share_of and any(isinstance(entry.value, float) for entry in each.entries):
            texts = (_bar(entry.value) for entry in each.entries)
            found.append(_Shown(Column("", words=True), tuple(map(Entry, texts)), each.counted, ("",)))
    return found


def _apart(table: Table, shown: _Shown) -> list[_Shown]:
    """Return one column per stream; empty if some row lacks a value for each stream."""
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
        _Shown(
            replace(shown.column, words=False),
            tuple(replace(entry, text=entry.parts[at], parts=()) for entry in shown.entries),
            shown.counted,
            (f"{sender}→" if short else f"{sender}→{receiver}",),
            group,
        )
        for at, (sender, receiver) in enumerate(table.streams)
    ]


def _bar(share_pct: object) -> str:
    if not isinstance(share_pct, float | int):
        return ""
    eighths = round(8 * _BAR * min(100.0, max(0.0, share_pct)) / 100)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def _width(columns: Sequence[_Shown]) -> int:
    return sum(_widths(columns)) + len(_GAP) * (len(columns) - 1)


def _widths(columns: Sequence[_Shown]) -> list[int]:
    """Return the column widths; the first column of a group is wide enough for the group's head."""
    widths: list[int] = []
    for group, own in groupby(columns, lambda each: each.group):
        each = [column.width for column in own]
        if group:
            each[0] += max(0, cell_len(group) - sum(each) - len(_GAP) * (len(each) - 1))
        widths += each
    return widths


def _fewer(columns: Sequence[_Shown], width: int) -> list[_Shown]:
    """Return the columns that fit the width: the most minor columns are dropped first, the first column never."""
    kept = list(columns)
    order = [(each.column.minor, each.column.group != "requested", at) for at, each in enumerate(columns)][1:]
    for minor, _, at in sorted(order, reverse=True):
        if _width(kept) > width and columns[at] in kept:
            kept = [each for each in kept if each is not columns[at] and not each.column.minor == minor > 1]
    return kept


def _phrase(column: Column, text: str) -> str:
    if column.phrase and text != UNKNOWN:
        value, _, words = text.partition(" ") if text[:1].isdigit() else (text, "", "")
        phrase = column.phrase.format(value)
        return " ".join(filter(None, (phrase.removesuffix("s") if text == "1" else phrase, words)))
    unit = f" {column.unit}" if column.unit and text[-1:].isdigit() else ""
    return f"{lower_first(column.title)} {text}{unit}"


def _lines(table: Table, columns: Sequence[_Shown]) -> Iterator[Text]:
    widths = _widths(columns)

    def line(texts: Sequence[Text]) -> Text:
        cells = []
        for text, width, each in zip(texts, widths, columns, strict=True):
            padding = " " * (width - text.cell_len)
            cells.append(Text.assemble(text, padding) if each.column.words else Text.assemble(padding, text))
        joined = Text(_GAP).join(cells)
        joined.rstrip()
        return joined

    if any(each.group for each in columns):
        yield Text("".join(_groups(columns, widths)).rstrip(), style="bold")
    height = max(len(each.head) for each in columns)
    for at in range(height):
        heads = [Text((("",) * (height - len(each.head)) + each.head)[at]) for each in columns]
        head = line(heads)
        head.stylize("bold")
        yield head
    for at, row in enumerate(_rows(table)):
        if row is table.total:
            yield Text("─" * min(_width(columns), 200), style="dim")
        text = line([Text(each.entries[at].text, style=_STYLES[each.entries[at].mark]) for each in columns])
        text.stylize("bold" if row is table.total else "" if row.counted else "red")
        yield text


def _groups(columns: Sequence[_Shown], widths: Sequence[int]) -> Iterator[str]:
    at = 0
    for group, own in groupby(columns, lambda each: each.group):
        count = len(list(own))
        wide = sum(widths[at : at + count]) + len(_GAP) * (count - 1)
        at += count
        left = (wide - cell_len(group) + 1) // 2
        yield f"{' ' * left}{group}{' ' * (wide - left - cell_len(group))}{_GAP}"
