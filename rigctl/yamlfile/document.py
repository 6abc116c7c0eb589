"""Holds a YAML file that was read: plain data, line and column of each value and key, and mistakes.

A mistake is printed with line and column, what is wrong, a remedy, and the line with carets below the wrong text.
"""

import difflib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from rigctl.base.errors import InputError
from rigctl.base.texts import printable
from rigctl.base.urls import hide_secrets

Path: TypeAlias = tuple[str | int, ...]
"""The path to a value: keys and list indices from the top, as ("matrix", "window", 0)."""
MOST_SHOWN: Final = 50
# Most mistakes of a file that are collected; further mistakes are ignored.
MOST_FOUND: Final = 1000
_MOST_COMPARED: Final = 200
_SHOWN_COLUMNS: Final = 100
# Line breaks of YAML 1.1 (5.4), by which the parser counts lines.
LINE_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
# Keys that files must not have. Messages hide their values, as others may read messages.
SECRET_KEYS: Final = ("password", "passphrase", "passwd", "pass", "pwd", "secret", "community")
_SECRET_VALUE: Final = re.compile(
    rf"""(?i)(\b(?:{"|".join(SECRET_KEYS)})["']?\s*:\s*)("(?:[^"\\]|\\.)*"?|'[^']*'?|[^,}}]+)"""
)


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a text: line and column (from 1) and length in characters."""

    line: int
    column: int
    length: int = 1


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake in a file or an option. `where` is FILE:LINE:COLUMN or the option; `path` leads to the value."""

    where: str
    what: str
    path: tuple[str | int, ...] = ()
    span: Span | None = None
    text: str = field(default="", repr=False)

    def __str__(self) -> str:
        shown = f"\n{excerpt(self.text, self.span)}" if self.span is not None else ""
        return f"{printable(self.where)}: {printable(self.what)}{shown}"


class MistakesError(InputError):
    """Raised with all mistakes of files and options, in the given order."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        shown = [str(mistake) for mistake in self.mistakes[:MOST_SHOWN]]
        if (hidden := len(self.mistakes) - len(shown)) > 0:
            shown.append(f"… and {hidden} more mistakes.")
        super().__init__("\n".join(shown))


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """A YAML file as `data`: dicts with text keys, lists, texts, numbers, booleans and None.

    `origins` maps the paths of values that options of the command line set to these options.
    `mistakes` has mistakes that did not stop the reading, such as a repeated key.
    """

    name: str
    text: str
    data: dict[str, Any]
    spans: Mapping[Path, Span] = field(default_factory=dict)
    keys: Mapping[Path, Span] = field(default_factory=dict)
    origins: Mapping[Path, str] = field(default_factory=dict)
    mistakes: tuple[Mistake, ...] = ()

    def mistake(self, path: Path, what: str, *, at_key: bool = False) -> Mistake:
        """Return a mistake at `path`, or at the nearest parent of `path` that is in the text."""
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
        """Tell whether the text or an option has a key at `path`."""
        return path in self.keys or path in self.origins

    def copy_places(self, old: Path, *new: Path) -> "YamlDocument":
        """Return this document, in which the paths `new`, and paths below, get the lines and columns of `old`."""

        def copied(places: Mapping[Path, Span]) -> dict[Path, Span]:
            below = [(path[len(old) :], span) for path, span in places.items() if path[: len(old)] == old]
            return {**places, **{(*path, *rest): span for path in new for rest, span in below}}

        return replace(self, spans=copied(self.spans), keys=copied(self.keys))

    def listed(self, *keys: str) -> "YamlDocument":
        """Return this document with the single values of top-level `keys` changed to lists of one value."""
        document = self
        for key in keys:
            value = self.data.get(key)
            if value is not None and not isinstance(value, list):
                document = replace(document.copy_places((key,), (key, 0)), data={**document.data, key: [value]})
        return document

    def replaced(self, path: Path, value: object, origin: str) -> "YamlDocument":
        """Return this document with `value` at `path`. Mistakes in the value are reported at the option `origin`.

        Sections that `path` needs are added; they replace values that are no sections.
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
    """Return a mistake at `span` of `text`; its message shows the line."""
    return Mistake(f"{name}:{span.line}:{span.column}", what, path, span, text)


def sort_mistakes(mistakes: Iterable[Mistake]) -> list[Mistake]:
    """Return mistakes sorted by line and column, without duplicates; mistakes without a place come first."""
    return sorted(dict.fromkeys(mistakes), key=lambda m: (m.span.line, m.span.column) if m.span else (0, 0))


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """Return ` Did you mean "window"?`, or an empty text if no known word is similar."""
    near = difflib.get_close_matches(word[:64].lower(), known[:_MOST_COMPARED], n=1)
    return f' Did you mean "{near[0]}"?' if near else ""


def suggestion(word: str, known: Sequence[str]) -> str:
    """Return ` Did you mean "window"?`, or ` Known: …` if no known word is similar; empty without known words."""
    shown = ", ".join(known[:20]) + (", …" if len(known) > 20 else "")
    return did_you_mean(word, known) or (f" Known: {shown}." if known else "")


def excerpt(text: str, span: Span) -> str:
    """Return the line at `span` with a line of carets below, and with values of keys such as `password` hidden."""
    lines = LINE_BREAK.split(text)
    line = printable(lines[span.line - 1]) if span.line <= len(lines) else ""
    line = _SECRET_VALUE.sub(lambda match: match[1] + "•" * len(match[2]), line)
    line = hide_secrets(line, hide=lambda secret: "•" * len(secret))
    column = min(span.column - 1, len(line))
    first = max(0, column - _SHOWN_COLUMNS * 2 // 3)
    shown = line[first : first + _SHOWN_COLUMNS]
    carets = "^" * max(1, _width(shown[column - first : column - first + span.length]))
    number = f"{span.line:>4}"
    return f"{number} | {shown}\n{' ' * len(number)} | {' ' * _width(shown[: column - first])}{carets}"


def _width(text: str) -> int:
    """Return the width of a text in terminal columns: wide characters take two, combining ones none (UAX #11)."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in {"W", "F"} else 1 for c in text
    )
