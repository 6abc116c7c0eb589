"""A YAML file as read: plain data, and for each value and key its place in the text."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from rigctl.yamlfile.mistakes import Mistake, Span

Path: TypeAlias = tuple[str | int, ...]
"""Keys and list positions from the top to a value, as ("matrix", "window", 0)."""


@dataclass(frozen=True, slots=True)
class Document:
    """`data` holds only dicts with text keys, lists, texts, numbers, booleans and None.

    `origins` names the values that came from an option of the command line instead of the text.
    `mistakes` are those that reading found and could go on after (a key twice).
    """

    name: str
    text: str
    data: dict[str, Any]
    spans: Mapping[Path, Span] = field(default_factory=dict)
    keys: Mapping[Path, Span] = field(default_factory=dict)
    origins: Mapping[Path, str] = field(default_factory=dict)
    mistakes: tuple[Mistake, ...] = ()

    def mistake(self, path: Path, what: str, *, at_key: bool = False) -> Mistake:
        """A mistake at `path`, or at the nearest place above it that has one."""
        for end in range(len(path), -1, -1):
            near = path[:end]
            if near in self.origins:
                return Mistake(self.origins[near], what, path=path)
            span = self.keys.get(near) if at_key and near == path else None
            span = span or self.spans.get(near)
            if span is not None:
                return mistake_at(self.name, self.text, span, what, path=path)
        return Mistake(self.name, what, path=path)

    def listed(self, key: str) -> "Document":
        """This document with the value of a top-level `key` as a list, of which it is the only entry."""
        value = self.data.get(key)
        if value is None or isinstance(value, list):
            return self

        def below(places: Mapping[Path, Span]) -> dict[Path, Span]:
            own = {(key, 0, *path[1:]): span for path, span in places.items() if path[:1] == (key,)}
            return {**places, **own}

        return replace(self, data={**self.data, key: [value]}, spans=below(self.spans), keys=below(self.keys))

    def replaced(self, key: str, value: object, origin: str) -> "Document":
        """This document with `value` at the top-level `key`; mistakes in it will name `origin`, an option."""
        spans = {path: span for path, span in self.spans.items() if path[:1] != (key,)}
        keys = {path: span for path, span in self.keys.items() if path[:1] != (key,)}
        origins = {**self.origins, (key,): origin}
        return replace(self, data={**self.data, key: value}, spans=spans, keys=keys, origins=origins)

    def placed(self, path: Path, value: object, origin: str) -> "Document":
        """As `replaced`, at any depth: sections that are not there are made, what is no section gives way to one."""
        data: dict[str, Any] = dict(self.data)
        below: dict[Any, Any] = data
        origins = dict(self.origins)
        for depth, key in enumerate(path[:-1], 1):
            given = below.get(key)
            if not isinstance(given, dict):
                origins[path[:depth]] = origin
            below[key] = dict(given) if isinstance(given, dict) else {}
            below = below[key]
        below[path[-1]] = value
        origins[path] = origin
        spans = {there: span for there, span in self.spans.items() if there[: len(path)] != path}
        keys = {there: span for there, span in self.keys.items() if there[: len(path)] != path}
        return replace(self, data=data, spans=spans, keys=keys, origins=origins)


def mistake_at(name: str, text: str, span: Span, what: str, *, path: Path = ()) -> Mistake:
    """A mistake at `span` of `text`, which shows that line."""
    where = f"{name}:{span.line}:{span.column}"
    return Mistake(where, what, path, span, text)
