"""Find a YAML file by path or bundled name, and read it within limits.

The file must be regular, UTF-8 and at most 1 MiB. Its YAML must be one document without tags, of limited size and
depth.
"""

import difflib
import re
import stat
import unicodedata
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any, Final, TypeAlias

import yaml
from yaml import MappingNode, Node, ScalarNode
from yaml.composer import Composer

from rigctl.base.errors import InputError
from rigctl.base.texts import printable
from rigctl.yamlfile.document import (
    LINE_BREAK,
    Mistake,
    MistakesError,
    Path,
    Span,
    YamlDocument,
    did_you_mean,
    mistake_at,
)

MAX_BYTES: Final = 1024 * 1024
_MAX_NODES: Final = 50_000
_MAX_DEPTH: Final = 20
# PyYAML may be built without libyaml, which is ten times faster. Base loaders read all scalars as texts.
_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_TAGGED: Final = re.compile(r"(&\S+\s+)?!")
# Characters that YAML 1.1 (5.1) does not allow. The parser omits their line and column, so rigctl searches for them.
_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Decimal numbers of YAML 1.2's core schema. `yes`, `0123`, `12:30` and dates remain texts for the parsers in `fields`.
_INTEGER: Final = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?([0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18})", re.ASCII)
_WORDS: Final[dict[str, bool | None]] = {"": None, "~": None, "null": None, "true": True, "false": False}
_TEXT_KEYS: Final = frozenset({"title", "notes"})
"""Keys whose value is always read as a text, so that `title: 50` needs no quotes."""
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
_OWN_WORDS: Final = (
    ("found another document", "a second YAML document begins here: expected one per file."),
    ("found undefined alias", "this alias (*name) has no anchor (&name) before it."),
    ("second occurrence", "another anchor (&name) before this one has the same name. Rename one of them."),
)
"""Maps parts of PyYAML's messages to rigctl's messages."""
# Signs of web pages and input methods that look like those of YAML.
_LOOKALIKES: Final = {
    "\u00a0": ("no-break space", "a space"),
    "\u2007": ("figure space", "a space"),
    "\u202f": ("narrow no-break space", "a space"),
    "\u3000": ("ideographic space", "a space"),
    "\uff1a": ("full-width colon", '": "'),
    "\uff0c": ("full-width comma", '", "'),
}
_LOOKALIKE: Final = re.compile(f"[{''.join(_LOOKALIKES)}]")
_SPACES: Final = re.compile("[\u00a0\u2007\u202f\u3000]")
Scalar: TypeAlias = str | int | float | bool | None
_ENDINGS: Final = (".yaml", ".yml")


def find_bundled(folder: FilePath) -> dict[str, FilePath]:
    """Return the YAML files in `folder` by name without `.yaml`, sorted."""
    return {path.stem: path for path in sorted(folder.glob("*.yaml"), key=lambda path: path.stem)}


def find_file(reference: str, *, what: str, bundled: FilePath, relative_to: FilePath | None = None) -> FilePath:
    """Return the file of `reference`: a path relative to `relative_to` or the working folder, or a bundled name.

    A reference is a path if it ends with .yaml or .yml, has a slash, or is the name of a file. `what` is "scenario" or
    "rig". Raise `InputError` with the bundled names and a suggestion if there is no such file.
    """
    names = find_bundled(bundled)
    shown = printable(reference)[:200]
    if not reference.strip() or "\0" in reference:
        raise InputError(f'{what} "{shown}": expected a file, or one of the bundled: {", ".join(names)}.')
    path = FilePath(reference)
    try:
        path = (relative_to or FilePath()) / path.expanduser()
        is_path = reference.endswith(_ENDINGS) or "/" in reference
        exists = path.exists() if is_path else path.is_file()
    except (OSError, RuntimeError) as error:
        raise InputError(f'{what} "{shown}": {error}') from error
    if exists:
        return path
    if is_path:
        raise InputError(f'{what} "{shown}": there is no such file.{_beside(path)}')
    if reference in names:
        return names[reference]
    help_ = f"Bundled: {', '.join(names)}. For a file of your own give its path, as in ./my-{what}.yaml."
    raise InputError(f'unknown {what} "{shown}".{did_you_mean(reference, list(names))} {help_}')


def read_document(path: FilePath) -> YamlDocument:
    """Return the YAML mapping in the file `path`. Raise `MistakesError` if the file has none."""
    return parse_document(str(path), read_text(path))


def read_text(path: FilePath) -> str:
    """Return the text of the file `path`. Raise `MistakesError` if the file is unreadable, too large or not UTF-8."""
    name = str(path)

    def refused(what: str) -> MistakesError:
        return MistakesError([Mistake(name, what)])

    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise refused("is a folder: expected a YAML file.")
        if not stat.S_ISREG(status.st_mode):
            # Reading a pipe or a device could block or never end.
            raise refused("is not a regular file: expected a YAML file.")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise refused(f"cannot be read: {error.strerror or error}.") from error
    if len(data) > MAX_BYTES:
        size = f"a file of {max(status.st_size, len(data)):,} bytes is too large"
        raise refused(f"{size}: at most {MAX_BYTES:,} bytes (1 MiB) are read. Is it a scenario or rig file?")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        good = data[: error.start].decode("utf-8-sig", "replace")
        what = f"byte 0x{data[error.start]:02X} is not UTF-8. Save the file as UTF-8."
        shown = data.decode("utf-8-sig", "replace")
        raise MistakesError([mistake_at(name, shown, span_of_offset(good, len(good)), what)]) from error


def _beside(path: FilePath) -> str:
    others = {other.stem: other.name for ending in _ENDINGS for other in path.parent.glob(f"*{ending}")}
    near = difflib.get_close_matches(path.stem, sorted(others), n=1)
    return f' Did you mean "{others[near[0]]}"?' if near else ""


class _Composer(Composer, _Loader):  # type: ignore[misc]
    """Composer of PyYAML with the parser of libyaml, whose own composer overflows the stack for deep nesting."""

    def __init__(self, text: str) -> None:
        _Loader.__init__(self, text)
        Composer.__init__(self)


class _Walk:
    """Converts YAML nodes to plain data, and collects the places of values and keys, and mistakes."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        self.spans: dict[Path, Span] = {}
        self.keys: dict[Path, Span] = {}
        self.mistakes: list[Mistake] = []

    def mistake(self, span: Span, what: str) -> Mistake:
        return mistake_at(self.name, self.text, span, what)

    def refused(self, span: Span, what: str) -> MistakesError:
        return MistakesError([self.mistake(span, what)])

    def has_tag(self, node: Node) -> bool:
        return _TAGGED.match(self.text, node.start_mark.index) is not None

    def value(self, node: Node, path: Path) -> Any:  # noqa: ANN401 — any YAML value
        span = self.spans[path] = _span(node)
        if self.has_tag(node):
            raise self.refused(span, f'tag "{printable(node.tag[:64])}": tags are not used here. Leave it out.')
        if len(self.spans) > _MAX_NODES:  # nested aliases may repeat a value very often
            what = f"too many values: at most {_MAX_NODES:,}, an alias (*name) counted as all values that it repeats."
            raise self.refused(span, what)
        if isinstance(node, ScalarNode):
            return self.scalar(node, path[-1], span)
        if len(path) + 1 >= _MAX_DEPTH:
            raise self.refused(span, f"nested too deep: at most {_MAX_DEPTH} levels, with those of aliases (*name).")
        if isinstance(node, MappingNode):
            return self.mapping(node, path)
        return [self.value(item, (*path, number)) for number, item in enumerate(node.value)]

    def mapping(self, node: MappingNode, path: Path) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        for key_node, value_node in node.value:
            span = _span(key_node)
            if not isinstance(key_node, ScalarNode) or not key_node.value or self.has_tag(key_node):
                raise self.refused(span, "a key must be a plain text, followed by a colon.")
            if not key_node.style and (sign := _LOOKALIKE.search(key_node.value)) is not None:
                at = replace(span, column=span.column + sign.start(), length=1)
                raise self.refused(at, _in_place_of(sign[0]))
            key = printable(key_node.value)
            place = (*path, key)
            if key in entries:
                what = f'key "{key[:64]}" is given twice, first in line {self.keys[place].line}. Keep one of them.'
                self.mistakes.append(self.mistake(span, what))
            else:
                self.keys[place] = span
                entries[key] = self.value(value_node, place)
        return entries

    def scalar(self, node: ScalarNode, key: str | int, span: Span) -> Scalar:
        text: str = node.value
        bad = next((c for c in text if c not in "\n\t" and unicodedata.category(c) in {"Cc", "Cs"}), None)
        if bad is None:
            return text if node.style else plain_value(key, text)
        self.mistakes.append(self.mistake(span, f"character U+{ord(bad):04X} is not allowed in a text."))
        return printable(text)


def parse_document(name: str, text: str) -> YamlDocument:
    """Return `text` as a document, called `name` in messages. Raise `MistakesError` unless it is one YAML mapping."""
    text = text.removeprefix("\ufeff")
    bad = _FORBIDDEN.search(text)
    if bad is not None:
        what = f"character U+{ord(bad[0]):04X} is not allowed in a YAML file. Is it a text file?"
        raise MistakesError([mistake_at(name, text, span_of_offset(text, bad.start()), what)])
    try:
        root = yaml.compose(text, Loader=_Composer)
    except yaml.MarkedYAMLError as error:
        raise MistakesError([_syntax_mistake(name, text, error)]) from error
    except yaml.YAMLError as error:
        raise MistakesError([Mistake(name, f"not readable as YAML: {printable(str(error))}")]) from error
    except RecursionError:
        raise MistakesError([Mistake(name, f"nested too deep: at most {_MAX_DEPTH} levels.")]) from None
    if root is None:
        raise MistakesError([Mistake(name, "the file is empty: expected keys and values, as in title: My test.")])
    walk = _Walk(name, text)
    if not isinstance(root, MappingNode):
        if (sign := _LOOKALIKE.search(text)) is not None:
            raise walk.refused(span_of_offset(text, sign.start()), _in_place_of(sign[0]))
        raise walk.refused(_span(root), "expected keys and values at the top, as in title: My test.")
    data = walk.value(root, ())
    return YamlDocument(name, text, data, walk.spans, walk.keys, mistakes=tuple(walk.mistakes))


def plain_value(key: str | int, text: str) -> Scalar:
    """Return the value of unquoted `text` for `key`: a number, True, False, None or a text (also a too long number)."""
    text = (text if key in _TEXT_KEYS else _SPACES.sub(" ", text)).strip()
    if text.lower() in _WORDS:
        value = _WORDS[text.lower()]
        return text if key in _TEXT_KEYS and value is not None else value
    if key in _TEXT_KEYS:
        return text
    return int(text) if _INTEGER.fullmatch(text) else float(text) if _FLOAT.fullmatch(text) else text


def span_of_offset(text: str, offset: int) -> Span:
    """Return the line and column of the character at index `offset`."""
    before = LINE_BREAK.split(text[:offset])
    return Span(len(before), len(before[-1]) + 1)


def _span(node: Node) -> Span:
    start, end = node.start_mark, node.end_mark
    whole = end.line == start.line and isinstance(node, ScalarNode)
    return Span(start.line + 1, start.column + 1, max(1, end.column - start.column) if whole else 1)


def _in_place_of(sign: str) -> str:
    called, wanted = _LOOKALIKES[sign]
    return f"character U+{ord(sign):04X} ({called}) stands here, where YAML takes {wanted}. Type {wanted} in its place."


def _syntax_mistake(name: str, text: str, error: yaml.MarkedYAMLError) -> Mistake:
    problem = printable(error.problem or "cannot be read")
    context = f" {printable(error.context)}" if error.context else ""
    hint = next((f" {hint}" for start, hint in _HINTS if start in problem), "")
    own = next((sentence for part, sentence in _OWN_WORDS if part in problem), None)
    what = own or f"not valid YAML{context}: {problem}.{hint}"
    mark = error.problem_mark or error.context_mark
    lines = LINE_BREAK.split(text)[: mark.line + 1] if mark else []
    for number in range(len(lines), max(0, len(lines) - 2), -1):  # the parser may notice it in the line below
        if (sign := _LOOKALIKE.search(lines[number - 1].partition(" #")[0])) is not None:
            return mistake_at(name, text, Span(number, sign.start() + 1), _in_place_of(sign[0]))
    return mistake_at(name, text, Span(mark.line + 1, mark.column + 1), what) if mark else Mistake(name, what)
