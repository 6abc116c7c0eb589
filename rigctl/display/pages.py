"""Lay out the results of a run as pages that fit a screen: totals, tables split by rows and columns, findings."""

import textwrap
from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from rigctl.display.digits import size_of
from rigctl.display.panels import Panel, grid, number_text
from rigctl.display.state import Results, Table

STYLES: Final = {"ok": "green", "note": "", "warning": "yellow", "error": "bold red"}
_GAP: Final = "  "
_SCALE: Final = 2
"""Digits of this size can be read from afar."""


def pages_of(results: Results, width: int, height: int) -> list[list[Text]]:
    """Return pages of at most `height` lines of at most `width` columns."""
    if width < 1 or height < 1:
        return []
    pages = _total_pages(results, width, height)
    pages += [page for table in results.tables for page in _table_pages(table, width, height)]
    pages += _finding_pages(results, width, height)
    for page in pages:
        for line in page:
            line.truncate(width)
    return pages


def _total_pages(results: Results, width: int, height: int) -> list[list[Text]]:
    """Return the goodput of each test in big digits, if at least one fits."""
    panels = []
    for total in results.totals:
        panels.append(Panel(f"test {total.test}  {number_text(total.goodput_mbps)[1]}", total.goodput_mbps))
    sizes = [size_of(number_text(panel.mbps)[0], _SCALE) for panel in panels]
    columns = width // max((wide + len(_GAP) for wide, _ in sizes), default=width + 1)
    rows = (height - 1) // max((tall + 1 for _, tall in sizes), default=height)
    room = columns * rows
    title = Text("Total goodput of each test" if len(panels) > 1 else "Total goodput", style="bold")
    chunks = [panels[first : first + room] for first in range(0, len(panels), room)] if room else []
    return [[title.copy(), *grid(chunk, width, height - 1)] for chunk in chunks]


def _table_pages(table: Table, width: int, height: int) -> list[list[Text]]:
    heads = [
        [*textwrap.wrap(each.title, 8, break_long_words=False), *filter(None, [each.unit])] for each in table.columns
    ]
    tall = max([1, *map(len, heads)])
    blocks = []
    for at, (column, head) in enumerate(zip(table.columns, heads, strict=True)):
        texts = [*[""] * (tall - len(head)), *head, *("".join(row[at : at + 1]) for row in table.rows)]
        wide = max(map(cell_len, texts))
        spaces = [" " * (wide - cell_len(text)) for text in texts]
        pairs = zip(texts, spaces, strict=True)
        blocks.append([text + space if column.words else space + text for text, space in pairs])
    title = [Text(table.title, style="bold")] if table.title and height > tall + 4 else []
    room = max(1, height - tall - 1 - len(title))
    pages = []
    for first in range(tall, max(tall + 1, tall + len(table.rows)), room):
        for part in _parts(blocks, width):
            lines = [_GAP.join(cells) for cells in zip(*part, strict=True)]
            rule = Text("─" * cell_len(lines[0]), style="dim")
            head_lines = [Text(line, style="bold") for line in lines[:tall]]
            rows = [Text(line) for line in lines[first : first + room]]
            pages.append([line.copy() for line in [*title, *head_lines, rule, *rows][:height]])
    return pages


def _parts(blocks: Sequence[list[str]], width: int) -> list[list[list[str]]]:
    """Split the columns into parts that fit; each part begins with the first column."""
    parts: list[list[list[str]]] = []
    for block in blocks:
        if parts:
            used = sum(cell_len(other[0]) + len(_GAP) for other in parts[-1])
            if used + cell_len(block[0]) <= width or len(parts[-1]) == 1:
                parts[-1].append(block)
                continue
        parts.append([blocks[0], block] if parts else [block])
    return parts


def _finding_pages(results: Results, width: int, height: int) -> list[list[Text]]:
    pages: list[list[Text]] = []
    for said in results.findings:
        lines = [Text(line, style=STYLES[said.level]) for line in textwrap.wrap(said.text, width)][:height]
        if pages and len(pages[-1]) + 1 + len(lines) <= height:
            pages[-1] += [Text(), *lines]
        else:
            pages.append(lines)
    return pages
