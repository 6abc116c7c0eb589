"""Mistakes in a file, and how they are printed: place, mistake, remedy, then the line with a caret below."""

import difflib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from rigctl.base.errors import InputError
from rigctl.base.texts import printable

MOST_SHOWN: Final = 50
# Further mistakes are not even collected.
MOST_FOUND: Final = 1000
_MOST_COMPARED: Final = 200
_SHOWN_COLUMNS: Final = 100
# Line breaks of YAML 1.1, 5.4. Lines must be split exactly as the parser counts them.
LINE_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
# Keys that no file may have. Their values are not printed: others than the writer read the messages.
SECRET_KEYS: Final = ("password", "passphrase", "passwd", "pass", "pwd", "secret", "community")
_SECRET_VALUE: Final = re.compile(
    rf"""(?i)(\b(?:{"|".join(SECRET_KEYS)})["']?\s*:\s*)("(?:[^"\\]|\\.)*"?|'[^']*'?|[^,}}]+)"""
)


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a text: line and column from 1, and `length` characters."""

    line: int
    column: int
    length: int = 1


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake. `where` is FILE:LINE:COLUMN or an option of the command line; `path` is its place in the data."""

    where: str
    what: str
    path: tuple[str | int, ...] = ()
    span: Span | None = None
    text: str = field(default="", repr=False)

    def __str__(self) -> str:
        shown = f"\n{excerpt(self.text, self.span)}" if self.span is not None else ""
        return f"{printable(self.where)}: {printable(self.what)}{shown}"


class MistakesError(InputError):
    """All mistakes of files and options, in the order given."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        shown = [str(mistake) for mistake in self.mistakes[:MOST_SHOWN]]
        hidden = len(self.mistakes) - len(shown)
        if hidden:
            shown.append(f"… and {hidden} more mistakes.")
        super().__init__("\n".join(shown))


def in_order(mistakes: Iterable[Mistake]) -> list[Mistake]:
    """Sort by line and column, mistakes without a place first, and drop duplicates."""
    unique = dict.fromkeys(mistakes)
    return sorted(unique, key=lambda m: (m.span.line, m.span.column) if m.span else (0, 0))


def suggestion(word: str, known: Sequence[str]) -> str:
    """Return ` Did you mean "window"?`, or ` Known: …` if no known word is near, or nothing if none is known."""
    near = difflib.get_close_matches(word[:64].lower(), known[:_MOST_COMPARED], n=1, cutoff=0.6)
    if near:
        return f' Did you mean "{near[0]}"?'
    if not known:
        return ""
    shown = ", ".join(known[:20]) + (", …" if len(known) > 20 else "")
    return f" Known: {shown}."


def excerpt(text: str, span: Span) -> str:
    """Return the line at `span` with a line of carets below. The value of a key like `password` is hidden."""
    lines = LINE_BREAK.split(text)
    line = printable(lines[span.line - 1]) if span.line <= len(lines) else ""
    line = _SECRET_VALUE.sub(lambda match: match[1] + "•" * len(match[2]), line)
    column = min(span.column - 1, len(line))
    first = max(0, column - _SHOWN_COLUMNS * 2 // 3)
    shown = line[first : first + _SHOWN_COLUMNS]
    before = shown[: column - first]
    carets = "^" * max(1, _width(shown[column - first : column - first + span.length]))
    number = f"{span.line:>4}"
    return f"{number} | {shown}\n{' ' * len(number)} | {' ' * _width(before)}{carets}"


def _width(text: str) -> int:
    """Return the columns on a terminal: a wide character takes two, a combining one none (Unicode UAX #11)."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in {"W", "F"} else 1 for c in text
    )
