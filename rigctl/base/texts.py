"""Make texts from nodes and files safe for terminals, file names and records."""

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Final

_MOST_CHARS: Final = 4096  # of a text in a record
_MOST_NUMBER: Final = 2**63
_MOST_DEPTH: Final = 8
_MOST_NAME: Final = 80
_UNSAFE: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_HEIGHTS: Final = "▁▂▃▄▅▆▇█"
_NO_CHARACTERS: Final = "\ufffe\uffff"  # excluded by XML 1.0 (2.2): a feed or an SVG with them is unreadable


def printable(text: str) -> str:
    """Return `text` with `?` for each character that may move a cursor or is invalid in XML, and blanks for tabs."""
    if text.isascii() and text.isprintable():
        return text
    plain = text.replace("\t", " ")
    return "".join("?" if unicodedata.category(c) in _UNSAFE or c in _NO_CHARACTERS else c for c in plain)


def printable_lines(text: str) -> str:
    return "\n".join(printable(line) for line in text.replace("\r\n", "\n").split("\n"))


def harmless(record: Mapping[str, object]) -> dict[str, Any]:
    """Return `record` with texts cut and made printable, and None for values that JSON or 64 bits cannot hold."""
    return {printable(key[:_MOST_CHARS]): _harmless(value, 1) for key, value in record.items()}


def _harmless(value: object, depth: int) -> object:
    if isinstance(value, str):
        return printable(value[:_MOST_CHARS])
    if isinstance(value, Mapping) and depth < _MOST_DEPTH:
        return {printable(str(key)[:_MOST_CHARS]): _harmless(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple) and depth < _MOST_DEPTH:
        return [_harmless(each, depth + 1) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int) and -_MOST_NUMBER <= value < _MOST_NUMBER else None


def sparkline(values: Iterable[float | None], low: float, high: float) -> str:
    """Return values as a chart in one line, `▁▄█`, scaled from `low` to `high`; a dash stands for None."""
    most = len(_HEIGHTS) - 1
    return "".join("–" if value is None else _HEIGHTS[round(most * (value - low) / (high - low))] for value in values)


def either(words: Iterable[str]) -> str:
    """Return alternatives as in a sentence: `tcp`, `tcp or udp`, `tcp, udp or file`."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def file_name(text: str) -> str:
    """Return `text` as a safe part of a file name: without path, and no hidden file or command option.

    >>> file_name("../../etc/passwd")
    'etc-passwd'
    """
    safe = re.sub(r"[^\w.-]+|\.\.+", "-", printable(text)[: 4 * _MOST_NAME]).strip("-.")
    return safe.encode()[:_MOST_NAME].decode(errors="ignore") or "run"
