"""A YAML file as it was read: plain data, the place of each value and key, and the mistakes found at such places.

A mistake is printed with its place, what is wrong, the remedy, and the line with carets below.
"""

import difflib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from rigctl.base.errors import InputError
from rigctl.base.texts import printable

Path: TypeAlias = tuple[str | int, ...]
"""Keys and list positions from the top to a value: ("matrix", "window", 0)."""
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


@dataclass(frozen=True, slots=True)
class Document:
    """`data` holds only dicts with text keys, lists, texts, numbers, booleans and None.

    `origins` has the option of each value that came from the command line instead of the text.
    `mistakes` did not stop the reading: a key given twice.
    """

    name: str
    text: str
    data: dict[str, Any]
    spans: Mapping[Path, Span] = field(default_factory=dict)
    keys: Mapping[Path, Span] = field(default_factory=dict)
    origins: Mapping[Path, str] = field(default_factory=dict)
    mistakes: tuple[Mistake, ...] = ()

    def mistake(self, path: Path, what: str, *, at_key: bool = False) -> Mistake:
        """Return a mistake at `path`, or at the nearest place above that is in the text."""
        for end in range(len(path), -1, -1):
            near = path[:end]
            if near in self.origins:
                return Mistake(self.origins[near], what, path=path)
            span = self.keys.get(near) if at_key and near == path else None
            span = span or self.spans.get(near)
            if span is not None:
                return mistake_at(self.name, self.text, span, what, path=path)
        return Mistake(self.name, what, path=path)

    def has_key(self, path: Path) -> bool:
        """Tell whether a key stands at `path`, in the text or by an option."""
        return path in self.keys or path in self.origins

    def placed(self, old: Path, *new: Path) -> "Document":
        """Return this document with the places at and below `old` also at each of `new`."""

        def copied(places: Mapping[Path, Span]) -> dict[Path, Span]:
            below = [(path[len(old) :], span) for path, span in places.items() if path[: len(old)] == old]
            return {**places, **{(*path, *rest): span for path in new for rest, span in below}}

        return replace(self, spans=copied(self.spans), keys=copied(self.keys))

    def listed(self, *keys: str) -> "Document":
        """Return this document with the value of each top-level key in a list, unless it is missing or a list."""
        document = self
        for key in keys:
            value = self.data.get(key)
            if value is not None and not isinstance(value, list):
                document = replace(document.placed((key,), (key, 0)), data={**document.data, key: [value]})
        return document

    def replaced(self, path: Path, value: object, origin: str) -> "Document":
        """Return this document with `value` at `path`. Mistakes in it will name `origin`, an option.

        Missing sections are added. A value that stands where a section is needed is replaced.
        """
        data: dict[Any, Any] = dict(self.data)
        origins = {**self.origins, path: origin}
        below = data
        for depth, key in enumerate(path[:-1], 1):
            given = below.get(key)
            if not isinstance(given, dict):
                origins[path[:depth]] = origin
            below[key] = dict(given) if isinstance(given, dict) else {}
            below = below[key]
        below[path[-1]] = value

        def others(places: Mapping[Path, Span]) -> dict[Path, Span]:
            return {place: span for place, span in places.items() if place[: len(path)] != path}

        return replace(self, data=data, spans=others(self.spans), keys=others(self.keys), origins=origins)


def mistake_at(name: str, text: str, span: Span, what: str, *, path: Path = ()) -> Mistake:
    """Return a mistake at `span` of `text`; it prints that line."""
    return Mistake(f"{name}:{span.line}:{span.column}", what, path, span, text)


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
