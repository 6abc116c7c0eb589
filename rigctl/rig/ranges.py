"""Ranges of names: `node[001..012]` stands for twelve nodes, in rig files and wherever a scenario names nodes.

Where hosts are named on a command line, ranges are as Slurm and ClusterShell write them: `node[001-003,7]`.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from rigctl.rig.fields import NODE_NAME
from rigctl.yamlfile import Document, Mistake, Path
from rigctl.yamlfile.fields import FieldError, shown
from rigctl.yamlfile.mistakes import Span

MAX_NAMES: Final = 1000
_RANGE: Final = re.compile(
    r"(?P<before>[^\[\]]*)\[\s*(?P<first>[0-9]{1,9})\s*\.\.\s*(?P<last>[0-9]{1,9})\s*\](?P<after>[^\[\]]*)", re.ASCII
)
_BRACKETS: Final = re.compile(r"\[([^\[\]]*)\]")
_STEPS: Final = re.compile(
    r"\s*(?P<first>[0-9]{1,9})\s*(?:(?:-|\.\.)\s*(?P<last>[0-9]{1,9})\s*(?:/\s*(?P<step>[1-9][0-9]{0,8})\s*)?)?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Named:
    """One name of a range. `number` is what a template's `{n}` stands for: without leading zeros."""

    name: str
    number: int | None  # None: the name is no range

    def filled(self, template: str) -> str:
        """`10.0.0.{n}` as `10.0.0.7`, `{name}.lan` as `node007.lan`."""
        number = "{n}" if self.number is None else str(self.number)
        return template.replace("{n}", number).replace("{name}", self.name)


def expand_names(text: str) -> list[str]:
    """`node[001..003]` as node001, node002, node003; a plain name as itself. Leading zeros are kept.

    Raises `FieldError` where the range runs backwards, is too long, is not one, or gives a name that no node can have.
    """
    return [named.name for named in expand(text)]


def host_names(text: str) -> list[str]:
    """`node[1-3,7]` as node1, node2, node3, node7; several brackets as each with each, the last counting fastest.

    `[0-10/2]` counts by twos. Leading zeros are kept. Raises `FieldError`.
    """
    pieces = _BRACKETS.split(text)  # text, list, text, list, … text
    if any("[" in piece or "]" in piece for piece in pieces[::2]):
        raise FieldError(f"host {shown(text)}: its brackets do not match. Write it as node[001-012]")
    names = [pieces[0]]
    for listed, after in zip(pieces[1::2], pieces[2::2], strict=True):
        numbers = [number for part in listed.split(",") for number in _numbers(part, text)]
        if len(names) * len(numbers) > MAX_NAMES:
            raise FieldError(f"host {shown(text)}: stands for more than {MAX_NAMES} hosts. Name fewer")
        names = [f"{name}{number}{after}" for name in names for number in numbers]
    return names


def _numbers(part: str, text: str) -> list[str]:
    match = _STEPS.fullmatch(part)
    if match is None:
        raise FieldError(f"host {shown(text)}: expected numbers in the brackets, as in node[001-003,7]")
    first, last = match["first"], match["last"] or match["first"]
    padded = any(len(end) > 1 and end.startswith("0") for end in (first, last))
    if padded and len(first) != len(last):
        raise FieldError(
            f"host {shown(text)}: {first} and {last} have {len(first)} and {len(last)} digits. With leading zeros both "
            f"have as many, as in node[001-012]"
        )
    low, high, step = int(first), int(last), int(match["step"] or 1)
    if low > high:
        raise FieldError(f"host {shown(text)}: {part.strip()} runs backwards. Write {last}-{first}")
    if (high - low) // step >= MAX_NAMES:
        raise FieldError(f"host {shown(text)}: stands for more than {MAX_NAMES} hosts. Name fewer")
    return [f"{number:0{len(first) if padded else 1}}" for number in range(low, high + 1, step)]


def members(side: str, groups: Mapping[str, Sequence[str]], nodes: Collection[str]) -> Sequence[str]:
    """The nodes that a name or range stands for. A node's name goes before a group's. Raises as `expand_names`."""
    return groups[side] if side in groups and side not in nodes else expand_names(side)


def expand(text: str) -> list[Named]:
    """As `expand_names`, each with its number."""
    if "[" not in text and "]" not in text:
        return [Named(_fit(text, text), None)]
    match = _RANGE.fullmatch(text)
    if match is None:
        raise FieldError(f"node {shown(text)}: expected a name with one range, as in node[001..012]")
    first, last = match["first"], match["last"]
    padded = any(len(end) > 1 and end.startswith("0") for end in (first, last))
    if padded and len(first) != len(last):
        raise FieldError(
            f"node {shown(text)}: its ends have {len(first)} and {len(last)} digits. With leading zeros both have as "
            f"many, as in node[001..012]"
        )
    low, high = int(first), int(last)
    if low > high:
        turned = f"{match['before']}[{last}..{first}]{match['after']}"
        raise FieldError(f"node {shown(text)}: runs backwards. Write {turned}")
    if high - low >= MAX_NAMES:
        raise FieldError(f"node {shown(text)}: stands for {high - low + 1} nodes. {MAX_NAMES} at most")
    width = len(first) if padded else 1
    return [
        Named(_fit(f"{match['before']}{number:0{width}}{match['after']}", text), number)
        for number in range(low, high + 1)
    ]


def _fit(name: str, text: str) -> str:
    if not NODE_NAME.fullmatch(name):
        of = f" (from {shown(text)})" if name != text else ""
        raise FieldError(
            f"node {shown(name)}{of}: expected a name of 1 to 15 letters, digits, - and _, which begins with a letter "
            f"or digit"
        )
    return name


def expanded(document: Document) -> tuple[Document, dict[str, str]]:
    """The rig file with each range of `nodes` expanded, and for each node the range it came from.

    A value may hold `{n}` and `{name}`. Every node keeps the places of its range, for what is wrong with it.
    """
    nodes = document.data.get("nodes")
    if not isinstance(nodes, dict) or not any("[" in name or "]" in name for name in nodes):
        return document, {}
    made: dict[str, Any] = {}
    ranges: dict[str, str] = {}
    found: list[Mistake] = []
    spans, keys = dict(document.spans), dict(document.keys)
    for text, section in nodes.items():
        is_range = "[" in text or "]" in text
        try:
            names = expand(text) if is_range else [Named(text, None)]
        except FieldError as error:
            found.append(document.mistake(("nodes", text), f"{error}.", at_key=True))
            continue
        for named in names:
            if named.name in made:
                first = document.keys.get(("nodes", ranges.get(named.name, named.name)))
                line = f", first in line {first.line}" if first else ""
                what = f"nodes: {named.name} is given twice{line}. Keep one of them."
                found.append(document.mistake(("nodes", text), what, at_key=True))
                continue
            made[named.name] = _filled(section, named) if is_range else section
            if is_range:
                ranges[named.name] = text
                _copy(document.spans, spans, text, named.name)
                _copy(document.keys, keys, text, named.name)
    data = {**document.data, "nodes": made}
    return replace(document, data=data, spans=spans, keys=keys, mistakes=(*document.mistakes, *found)), ranges


def _filled(value: object, named: Named) -> object:
    if isinstance(value, str):
        return named.filled(value)
    if isinstance(value, dict):
        return {key: _filled(below, named) for key, below in value.items()}
    return value


def _copy(source: Mapping[Path, Span], target: dict[Path, Span], text: str, name: str) -> None:
    """The places of `nodes.TEXT` and all below it, for `nodes.NAME`."""
    for path, span in source.items():
        if path[:2] == ("nodes", text):
            target[("nodes", name, *path[2:])] = span


def told_once(mistakes: Sequence[Mistake], ranges: dict[str, str]) -> list[Mistake]:
    """Mistakes that a range's nodes share, once and in the range's name."""
    told: dict[tuple[str, str], Mistake] = {}
    for mistake in mistakes:
        name = mistake.path[1] if len(mistake.path) > 1 and mistake.path[0] == "nodes" else None
        text = ranges.get(str(name))
        if text is not None:
            what = mistake.what.replace(f'node "{name}"', f'node "{text}"')
            what = what.replace(f"address: {name}.lan", 'address: "{name}.lan"')
            mistake = replace(mistake, what=what)  # noqa: PLW2901
        told.setdefault((mistake.where, mistake.what), mistake)
    return list(told.values())
