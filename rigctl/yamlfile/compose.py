"""From text to a `Document`, within bounds: nodes, depth, one document, no tags, no key twice.

Built on the parser's events, not on its loader, so that every value keeps its place and the bounds hold *while*
reading: aliases are counted at the size of what they stand for before anything is copied.
"""

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

import yaml
from yaml import events as ev

from rigctl.base.texts import printable
from rigctl.yamlfile.document import Document, Path, mistake_at
from rigctl.yamlfile.mistakes import LINE_BREAK, Mistake, MistakesError, Span, suggestion

MAX_NODES: Final = 50_000
MAX_DEPTH: Final = 20
# libyaml where it is there: ten times faster. The events are the same.
_Loader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# What YAML 1.1, 5.1 does not let into a file, found first so that it can be shown where it stands.
_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# YAML 1.2's core schema, decimal only: `yes`, `0123`, `12:30` and dates stay texts and are judged where they are used.
_INTEGER: Final = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?([0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18})", re.ASCII)
_WORDS: Final[dict[str, bool | None]] = {"": None, "~": None, "null": None, "true": True, "false": False}
TEXT_KEYS: Final = frozenset({"title", "notes"})
"""Keys whose value is always a text as it is written: `title: 50` needs no quotes."""
_HINTS: Final = (
    ("mapping values are not allowed", 'A text with ": " in it needs quotes; else look at the indentation.'),
    ("cannot start any token", "Tabs do not indent YAML (use spaces); a text that begins with @, ` or % needs quotes."),
    ("did not find expected ',' or", "A bracket or a comma is missing."),
    ("could not find expected ':'", 'A key is followed by ": " and its value.'),
    ("did not find expected key", "Look at the indentation: the keys of one mapping stand in one column."),
    ("expected comment or line break", 'A text that begins with > or | needs quotes, as in ">= 0.97".'),
    ("found unexpected end of stream", "A quote is not closed."),
    ("unexpected end of the stream", "A quote or bracket is not closed."),
)
_Event: TypeAlias = Any  # yaml's events declare no types
Scalar: TypeAlias = str | int | float | bool | None
Value: TypeAlias = "Scalar | list[Value] | dict[str, Value]"


@dataclass(slots=True)
class _Node:
    span: Span
    value: "Scalar | list[_Node] | dict[str, tuple[Span, _Node]]"
    size: int = 1  # nodes, with all below
    height: int = 1


@dataclass(slots=True)
class _Composer:
    name: str
    text: str
    loader: Any
    nodes: int = 0
    anchors: dict[str, _Node | None] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    def refused(self, span: Span, what: str) -> MistakesError:
        return MistakesError([*self.mistakes, mistake_at(self.name, self.text, span, what)])

    def node(self, event: _Event, depth: int, key: str = "") -> _Node:
        span = _span(event)
        if isinstance(event, ev.AliasEvent):
            return self.count(self.alias(str(event.anchor), span), span, depth)
        if event.tag is not None:
            raise self.refused(span, f'tag "{printable(event.tag[:64])}": tags are not used here. Leave it out.')
        if event.anchor is not None:
            self.anchors[event.anchor] = None  # open: an alias to it now would be endless
        if isinstance(event, ev.ScalarEvent):
            node = _Node(span, self.scalar(event, span, key))
        elif depth >= MAX_DEPTH:
            raise self.refused(span, f"nested too deep: at most {MAX_DEPTH} levels.")
        elif isinstance(event, ev.SequenceStartEvent):
            node = self.sequence(span, depth)
        else:
            node = self.mapping(span, depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return self.count(node, span, depth, own=1)

    def count(self, node: _Node, span: Span, depth: int, own: int | None = None) -> _Node:
        self.nodes += node.size if own is None else own
        if self.nodes > MAX_NODES:
            raise self.refused(
                span, f"too many values: at most {MAX_NODES:,}, aliases (*name) counted as what they hold."
            )
        if depth + node.height > MAX_DEPTH + 1:
            raise self.refused(span, f"nested too deep: at most {MAX_DEPTH} levels, aliases (*name) followed.")
        return node

    def alias(self, anchor: str, span: Span) -> _Node:
        shown = printable(anchor[:64])
        if anchor not in self.anchors:
            known = [name for name, node in self.anchors.items() if node is not None]
            raise self.refused(span, f'alias "*{shown}": there is no "&{shown}" before it.{suggestion(anchor, known)}')
        node = self.anchors[anchor]
        if node is None:
            raise self.refused(span, f'alias "*{shown}": stands inside what it names; it would never end.')
        return node

    def scalar(self, event: _Event, span: Span, key: str) -> Scalar:
        text: str = event.value
        bad = next((c for c in text if c not in "\n\t" and unicodedata.category(c) in {"Cc", "Cs"}), None)
        if bad is not None:
            self.mistakes.append(
                mistake_at(self.name, self.text, span, f"character U+{ord(bad):04X} is not allowed in a text.")
            )
            return printable(text)
        return text if event.style else plain_value(key, text)

    def sequence(self, span: Span, depth: int) -> _Node:
        items: list[_Node] = []
        while not isinstance(event := self.loader.get_event(), ev.SequenceEndEvent):
            items.append(self.node(event, depth + 1))
        return _Node(span, items, *_measure(items))

    def mapping(self, span: Span, depth: int) -> _Node:
        entries: dict[str, tuple[Span, _Node]] = {}
        while not isinstance(event := self.loader.get_event(), ev.MappingEndEvent):
            at = _span(event)
            if not isinstance(event, ev.ScalarEvent) or event.tag is not None or not event.value:
                raise self.refused(at, "a key must be a plain text, followed by a colon.")
            key = printable(event.value)
            if event.anchor is not None:
                self.anchors[event.anchor] = _Node(at, key)
            value = self.node(self.loader.get_event(), depth + 1, key)
            if key in entries:
                first = entries[key][0].line
                what = f'key "{key[:64]}" is given twice, first in line {first}. Keep one of them.'
                self.mistakes.append(mistake_at(self.name, self.text, at, what))
            else:
                entries[key] = (at, value)
        return _Node(span, entries, *_measure([node for _, node in entries.values()]))


def parse_document(name: str, text: str) -> Document:
    """`text` as a document called `name` in messages. Raises `MistakesError` where it is not one YAML mapping."""
    text = text.removeprefix("\ufeff")
    bad = _FORBIDDEN.search(text)
    if bad is not None:
        what = f"character U+{ord(bad[0]):04X} is not allowed in a YAML file. Is it a text file?"
        raise MistakesError([mistake_at(name, text, span_of_offset(text, bad.start()), what)])
    loader = _Loader(text)
    composer = _Composer(name, text, loader)
    try:
        root = _root(composer)
    except yaml.MarkedYAMLError as error:
        raise MistakesError([*composer.mistakes, _syntax_mistake(name, text, error)]) from error
    except yaml.YAMLError as error:
        raise MistakesError([Mistake(name, f"not readable as YAML: {printable(str(error))}")]) from error
    finally:
        loader.dispose()
    spans: dict[Path, Span] = {}
    keys: dict[Path, Span] = {}
    data = cast(dict[str, Any], _flatten(root, (), spans, keys))
    return Document(name, text, data, spans, keys, mistakes=tuple(composer.mistakes))


def plain_value(key: str, text: str) -> Scalar:
    """What `text` without quotes means as the value of `key`: a number, true, false, nothing, or a text."""
    value = _plain(text.strip())
    return text.strip() if key in TEXT_KEYS and value is not None else value


def span_of_offset(text: str, offset: int) -> Span:
    """The line and column of the character at `offset`."""
    before = LINE_BREAK.split(text[:offset])
    return Span(len(before), len(before[-1]) + 1)


def _root(composer: _Composer) -> _Node:
    loader = composer.loader
    loader.get_event()  # start of the stream
    if isinstance(loader.get_event(), ev.StreamEndEvent):
        raise MistakesError(
            [Mistake(composer.name, "the file is empty: expected keys and values, as in title: My test.")]
        )
    event = loader.get_event()
    root = composer.node(event, 1)
    if not isinstance(root.value, dict):
        raise composer.refused(root.span, "expected keys and values at the top, as in title: My test.")
    loader.get_event()  # end of the document
    event = loader.get_event()
    if not isinstance(event, ev.StreamEndEvent):
        raise composer.refused(_span(event), "a second YAML document begins here: expected one per file.")
    return root


def _flatten(node: _Node, path: Path, spans: dict[Path, Span], keys: dict[Path, Span]) -> Value:
    spans[path] = node.span
    if isinstance(node.value, list):
        return [_flatten(item, (*path, i), spans, keys) for i, item in enumerate(node.value)]
    if isinstance(node.value, dict):
        keys.update({(*path, key): span for key, (span, _) in node.value.items()})
        return {key: _flatten(below, (*path, key), spans, keys) for key, (_, below) in node.value.items()}
    return node.value


def _measure(below: list[_Node]) -> tuple[int, int]:
    return 1 + sum(node.size for node in below), 1 + max((node.height for node in below), default=0)


def _plain(text: str) -> Scalar:
    """What an unquoted scalar means. A number that no setting could have stays a text."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _span(event: _Event) -> Span:
    start, end = event.start_mark, event.end_mark
    length = end.column - start.column if end.line == start.line else 1
    return Span(start.line + 1, start.column + 1, max(1, length))


def _syntax_mistake(name: str, text: str, error: yaml.MarkedYAMLError) -> Mistake:
    problem = printable(error.problem or "cannot be read")
    context = f" {printable(error.context)}" if error.context else ""
    hint = next((f" {hint}" for start, hint in _HINTS if start in problem), "")
    what = f"not valid YAML{context}: {problem}.{hint}"
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return Mistake(name, what)
    return mistake_at(name, text, Span(mark.line + 1, mark.column + 1), what)
