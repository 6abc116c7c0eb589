"""Ranges of names: `node[001..012]` in rig files and scenarios, `node[001-003,7]` as Slurm writes hosts."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from rigctl.rig.fields import NODE_NAME
from rigctl.yamlfile import Document, Mistake
from rigctl.yamlfile.fields import FieldError, shown

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
    """One name of a range. `number` replaces `{n}` in a template, without leading zeros; None: the name is no range."""

    name: str
    number: int | None

    def filled(self, value: object) -> object:
        """Return a value, with all below, in which `10.0.0.{n}` is `10.0.0.7` and `{name}.lan` is `node007.lan`."""
        if isinstance(value, dict):
            return {key: self.filled(below) for key, below in value.items()}
        if not isinstance(value, str):
            return value
        number = "{n}" if self.number is None else str(self.number)
        return value.replace("{n}", number).replace("{name}", self.name)


def expand_names(text: str) -> list[str]:
    """Return `node[001..003]` as node001, node002, node003, a plain name as itself; leading zeros are kept.

    Raise `FieldError` if the range is none, runs backwards, is too long or gives a name that no node can have.
    """
    return [named.name for named in expand(text)]


def expand(text: str) -> list[Named]:
    """Return the same names as `expand_names`, each with its number."""
    if not _is_range(text):
        return [Named(_fit(text, text), None)]
    match = _RANGE.fullmatch(text)
    if match is None:
        raise FieldError(f"node {shown(text)}: expected a name with one range, as in node[001..012]")
    numbers = _numbers(match["first"], match["last"], 1, f"node {shown(text)}", "..")
    before, after = match["before"], match["after"]
    return [Named(_fit(f"{before}{number}{after}", text), int(number)) for number in numbers]


def host_names(text: str) -> list[str]:
    """Return `node[1-3,7]` as node1, node2, node3, node7; of several brackets the last counts fastest.

    `[0-10/2]` counts by twos. Leading zeros are kept. Raise `FieldError` as `expand_names`.
    """
    pieces = _BRACKETS.split(text)  # text, list, text, list, … text
    what = f"host {shown(text)}"
    if any("[" in piece or "]" in piece for piece in pieces[::2]):
        raise FieldError(f"{what}: its brackets do not match. Write it as node[001-012]")
    names = [pieces[0]]
    for listed, after in zip(pieces[1::2], pieces[2::2], strict=True):
        numbers: list[str] = []
        for part in listed.split(","):
            match = _STEPS.fullmatch(part)
            if match is None:
                raise FieldError(f"{what}: expected numbers in the brackets, as in node[001-003,7]")
            numbers += _numbers(match["first"], match["last"] or match["first"], int(match["step"] or 1), what, "-")
        if len(names) * len(numbers) > MAX_NAMES:
            raise FieldError(f"{what}: stands for more than {MAX_NAMES} names. Name fewer")
        names = [f"{name}{number}{after}" for name in names for number in numbers]
    return names


def members(side: str, groups: Mapping[str, Sequence[str]], nodes: Collection[str]) -> Sequence[str]:
    """Return the nodes of a name, range or group; a node's name goes before a group's. Raise as `expand_names`."""
    return groups[side] if side in groups and side not in nodes else expand_names(side)


def _is_range(text: str) -> bool:
    return "[" in text or "]" in text


def _numbers(first: str, last: str, step: int, what: str, dash: str) -> list[str]:
    padded = any(len(end) > 1 and end.startswith("0") for end in (first, last))
    if padded and len(first) != len(last):
        raise FieldError(
            f"{what}: {first} and {last} have {len(first)} and {len(last)} digits. With leading zeros both have as "
            f"many, as in node[001{dash}012]"
        )
    low, high = int(first), int(last)
    if low > high:
        raise FieldError(f"{what}: {first}{dash}{last} runs backwards. Write {last}{dash}{first}")
    if (high - low) // step >= MAX_NAMES:
        raise FieldError(f"{what}: stands for more than {MAX_NAMES} names. Name fewer")
    return [f"{number:0{len(first) if padded else 1}}" for number in range(low, high + 1, step)]


def _fit(name: str, text: str) -> str:
    if not NODE_NAME.fullmatch(name):
        of = f" (from {shown(text)})" if name != text else ""
        raise FieldError(
            f"node {shown(name)}{of}: expected a name of 1 to 15 letters, digits, - and _, which begins with a letter "
            f"or digit"
        )
    return name


def expanded(document: Document) -> Document:
    """Return the rig file with each range of `nodes` expanded.

    A value may hold `{n}` and `{name}`. Each node has the places of its range.
    """
    nodes = document.data.get("nodes")
    if not isinstance(nodes, dict) or not any(_is_range(name) for name in nodes):
        return document
    made: dict[str, Any] = {}
    ranges: dict[str, str] = {}
    found: list[Mistake] = []
    for text, section in nodes.items():
        try:
            names = expand(text) if _is_range(text) else [Named(text, None)]
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
            made[named.name] = named.filled(section) if _is_range(text) else section
            if _is_range(text):
                ranges[named.name] = text
    placed = document
    for text in dict.fromkeys(ranges.values()):
        placed = placed.placed(("nodes", text), *(("nodes", name) for name, own in ranges.items() if own == text))
    data = {**document.data, "nodes": made}
    return replace(placed, data=data, mistakes=(*document.mistakes, *found))


def told_once(mistakes: Sequence[Mistake]) -> list[Mistake]:
    """Return the mistakes with those at one place only for the first of the nodes.

    The nodes of a range have their places in common, and all nodes those of `defaults`, which come first.
    """
    first: dict[str, Any] = {}
    return [
        mistake
        for mistake in mistakes
        if first.setdefault(mistake.where, mistake.path[:2]) == mistake.path[:2] or mistake.path[:1] != ("nodes",)
    ]
