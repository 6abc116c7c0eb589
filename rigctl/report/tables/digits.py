"""The digits of a column alike: every number of it is printed with as many decimals as the one that has most."""

import math
import re
from dataclasses import replace
from typing import Final

from rigctl.report.blocks import Block, Column, Entry, Folded, Row, Scalar, Section, Table
from rigctl.report.words.text import UNKNOWN

MOST_DECIMALS: Final = 3
"""Where some number of a column has more, the least has two digits; if that takes more, too, nothing changes."""
_NUMBER: Final = r"[+\-−]?\d+(?:,\d{3})*(?:\.\d+)?"
_SEVERAL: Final = re.compile(rf"(?:{_NUMBER}|–)(?:(?:, | / | to )(?:{_NUMBER}|–))*(?: together)?", re.ASCII)
_TOKEN: Final = re.compile(rf"{_NUMBER}|–", re.ASCII)
_SPREAD: Final = re.compile(rf"(?P<mean>{_NUMBER}) ± (?P<spread>{_NUMBER})", re.ASCII)


def alike(section: Section) -> Section:
    """`section` with the digits of each column of its tables alike."""
    return replace(section, blocks=tuple(_block(block) for block in section.blocks))


def _block(block: Block) -> Block:
    if isinstance(block, Table):
        return aligned(block)
    return replace(block, blocks=tuple(map(_block, block.blocks))) if isinstance(block, Folded) else block


def aligned(table: Table) -> Table:
    """`table` with the digits of each column alike, the total's too; texts that are not numbers stay."""
    rows = [*table.rows, *([table.total] if table.total else [])]
    columns = [_column(column, [row.entries[at] for row in rows]) for at, column in enumerate(table.columns)]
    if not any(columns):
        return table
    made = [
        replace(row, entries=tuple(new[number] if new else row.entries[at] for at, new in enumerate(columns)))
        for number, row in enumerate(rows)
    ]
    total: Row | None = made.pop() if table.total else None
    return replace(table, rows=tuple(made), total=total)


def _column(column: Column, entries: list[Entry]) -> list[Entry] | None:
    """The entries of a column; `None` where nothing changes."""
    if column.words or not any("." in entry.text for entry in entries):
        return None
    means, spreads = set(), set()
    for entry in entries:
        if found := _SPREAD.fullmatch(entry.text):
            means.add(_decimals(found["mean"]))
            spreads.add(_decimals(found["spread"]))
        elif _SEVERAL.fullmatch(entry.text):
            means |= {_decimals(number) for number in _TOKEN.findall(entry.text) if number != UNKNOWN}
    most = max(means, default=0)
    decimals = most if most <= MOST_DECIMALS else _two_digits(entries)
    if (len(means) < 2 and len(spreads) < 2) or decimals is None:
        return None
    return [_entry(entry, decimals, max(spreads, default=0)) for entry in entries]


def _two_digits(entries: list[Entry]) -> int | None:
    """Decimals with which the least number has two digits; `None` where it has none with `MOST_DECIMALS`."""
    numbers = (token for entry in entries for token in _TOKEN.findall(entry.text) if token != UNKNOWN)
    least = min((abs(_plain(number)) for number in numbers if _plain(number)), default=1.0)
    first = -math.floor(math.log10(least))
    return None if first > MOST_DECIMALS else min(MOST_DECIMALS, max(1, first + 1))


def _entry(entry: Entry, decimals: int, spread: int) -> Entry:
    if found := _SPREAD.fullmatch(entry.text):
        mean = _number(found["mean"], _only(entry.value), decimals)
        return replace(entry, text=f"{mean} ± {_number(found['spread'], None, spread)}")
    if not _SEVERAL.fullmatch(entry.text):
        return entry
    tokens = _TOKEN.findall(entry.text)
    values = entry.value if isinstance(entry.value, tuple) else (entry.value,)
    known = iter(values if len(values) == len(tokens) else (None,) * len(tokens))
    return replace(entry, text=_TOKEN.sub(lambda token: _number(token[0], next(known), decimals), entry.text))


def _number(text: str, value: Scalar, decimals: int) -> str:
    """`text` with `decimals`: the digits of `value`, where that is what the text rounds, else zeros."""
    missing = decimals - _decimals(text) if text != UNKNOWN else 0
    if missing == 0:
        return text
    plain = _plain(text)
    if isinstance(value, int | float) and abs(value - plain) <= 0.5 * 10.0 ** -_decimals(text) and text[0] not in "+−":
        return f"{value:,.{decimals}f}" if "," in text else f"{value:.{decimals}f}"
    return text + ("" if "." in text else ".") + "0" * missing if missing > 0 else f"{plain:.{decimals}f}"


def _plain(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


def _decimals(text: str) -> int:
    return len(text.partition(".")[2])


def _only(value: Scalar | tuple[Scalar, ...]) -> Scalar:
    return None if isinstance(value, tuple) else value
