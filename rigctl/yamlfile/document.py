"""A YAML file as it was read: plain data, and the place of each value and key in the text."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from rigctl.yamlfile.mistakes import Mistake, Span

Path: TypeAlias = tuple[str | int, ...]
"""Keys and list positions from the top to a value: ("matrix", "window", 0)."""


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

    def at(self, path: Path) -> Any:  # noqa: ANN401 — any value of YAML
        """Return the value at `path`, or None."""
        value: Any = self.data
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def placed(self, old: Path, *new: Path) -> "Document":
        """Return this document with the places at and below `old` also at each of `new`."""

        def copied(places: Mapping[Path, Span]) -> dict[Path, Span]:
            below = [(path[len(old) :], span) for path, span in places.items() if path[: len(old)] == old]
            return {**places, **{(*path, *rest): span for path in new for rest, span in below}}

        return replace(self, spans=copied(self.spans), keys=copied(self.keys))

    def listed(self, key: str) -> "Document":
        """Return this document with the value of a top-level `key` in a list, unless it is a list."""
        value = self.data.get(key)
        if value is None or isinstance(value, list):
            return self
        return replace(self.placed((key,), (key, 0)), data={**self.data, key: [value]})

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
