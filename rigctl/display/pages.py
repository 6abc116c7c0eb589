"""Lay out the results of a run as pages that fit a screen: tables split by rows and columns, then the findings."""

import textwrap
from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from rigctl.display.digits import big, rows_of, width_of
from rigctl.display.figures import number_text
from rigctl.display.state import Results, Table

_GAP: Final = 2
_SCALE: Final = 2
_STYLES: Final = {"ok": "green", "note": "", "warning": "yellow", "error": "red"}


def pages_of(results: Results, width: int, height: int) -> list[list[Text]]:
    """Return pages of at most `height` lines of at most `width` columns."""
    if width < 1 or height < 1:
        return []
    pages = _total_pages(results, width, height)
    pages += [page for table in results.tables for page in _table_pages(table, width, height)]
    return pages + _finding_pages(results, width, height)


def _total_pages(results: Results, width: int, height: int) -> list[list[Text]]:
    """Return the goodput of each test in digits that can be read from afar."""
    texts = [(f"test {total.test} ", *number_text(total.goodput_mbps)) for total in results.totals]
    if not texts:
        return []
    label = max(len(name) for name, _, _ in texts)
    digits = max(width_of(number, _SCALE) for _, number, _ in texts)
    each, tall = label + digits + len(" Mbit/s") + _GAP, rows_of(_SCALE) + 1
    columns = min(max(1, (width + _GAP) // each), -(-len(texts) // max(1, height // tall)))
    room = columns * (height // tall)
    if each > width + _GAP or room < 1:
        return []
    several = "Total goodput of each test" if len(texts) > 1 else "Total goodput"
    pages = []
    for first in range(0, len(texts), room):
        shown = texts[first : first + room]
        page: list[Text] = []
        for row in range(0, len(shown), columns):
            lines = [Text() for _ in range(tall)]
            for name, number, unit in shown[row : row + columns]:
                for line, part in zip(lines[1:], big(number, _SCALE), strict=True):
                    last = line is lines[-1]
                    line.append((name if last else "").ljust(label), style="bold")
                    line.append(part.rjust(digits), style="bold green")
                    line.append((f" {unit}" if last else "").ljust(each - label - digits))
            page += lines if page else [Text(several, style="bold"), *lines[1:]]
        pages.append([_cut(line, width) for line in page])
    return pages


def _table_pages(table: Table, width: int, height: int) -> list[list[Text]]:
    heads = [_head(column.title, column.unit) for column in table.columns]
    tall = max((len(head) for head in heads), default=0)
    widths = [
        max(cell_len(text) for text in [*head, *(row[at] for row in table.rows if at < len(row))])
        for at, head in enumerate(heads)
    ]
    title = [Text(table.title, style="bold")] if table.title and height > tall + 4 else []
    room = max(1, height - tall - 1 - len(title))
    pages = []
    for first in range(0, max(1, len(table.rows)), room):
        for columns in _parts(widths, width):
            lines = [*title]
            for at in range(tall):
                texts = [heads[column][at - tall + len(heads[column])] if at >= tall - len(heads[column]) else ""
                         for column in columns]  # fmt: skip
                lines.append(_line(texts, columns, widths, table, "bold"))
            lines.append(Text("─" * min(width, sum(widths[column] + _GAP for column in columns) - _GAP), style="dim"))
            for row in table.rows[first : first + room]:
                texts = [row[column] if column < len(row) else "" for column in columns]
                lines.append(_line(texts, columns, widths, table, ""))
            pages.append([_cut(line, width) for line in lines[:height]])
    return pages


def _cut(line: Text, width: int) -> Text:
    line.truncate(width)
    return line


def _parts(widths: Sequence[int], width: int) -> list[list[int]]:
    """Split the columns, by number, into parts that fit; each part begins with the first column."""
    if not widths:
        return []
    parts: list[list[int]] = [[0]]
    used = widths[0]
    for at in range(1, len(widths)):
        if used + _GAP + widths[at] > width and len(parts[-1]) > 1:
            parts.append([0])
            used = widths[0]
        parts[-1].append(at)
        used += _GAP + widths[at]
    return parts


def _line(texts: Sequence[str], columns: Sequence[int], widths: Sequence[int], table: Table, style: str) -> Text:
    parts = []
    for text, column in zip(texts, columns, strict=True):
        space = " " * (widths[column] - cell_len(text))
        parts.append(text + space if table.columns[column].words else space + text)
    return Text((" " * _GAP).join(parts), style=style)


def _head(title: str, unit: str) -> list[str]:
    words = textwrap.wrap(title, max(8, max((len(word) for word in title.split()), default=1))) or [""]
    return [*words, *([unit] if unit else [])]


def _finding_pages(results: Results, width: int, height: int) -> list[list[Text]]:
    pages: list[list[Text]] = []
    page: list[Text] = []
    for said in results.findings:
        lines = [Text(line, style=_STYLES[said.level]) for line in textwrap.wrap(said.text, width)][:height]
        if page and len(page) + 1 + len(lines) > height:
            pages.append(page)
            page = []
        page += ([Text()] if page else []) + lines
    return pages + ([page] if page else [])
