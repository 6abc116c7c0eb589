"""Ranges of names: `node[001..012]` in rig files and scenarios, and `node[001-003,7]` in lists of hosts (Slurm)."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.rig.fields import NODE_NAME
from rigctl.yamlfile import FieldError
from rigctl.yamlfile.fields import show_value

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
class NumberedName:
    """A name from a range. `number` replaces `{n}` in values, without leading zeros; None for a plain name."""

    name: str
    number: int | None

    def fill(self, value: object) -> object:
        """Return a value (text, or nested dicts of texts) with `{n}` and `{name}` replaced, as in `10.0.0.{n}`."""
        if isinstance(value, dict):
            return {key: self.fill(below) for key, below in value.items()}
        if not isinstance(value, str):
            return value
        number = "{n}" if self.number is None else str(self.number)
        return value.replace("{n}", number).replace("{name}", self.name)


def expand_names(text: str) -> list[str]:
    """Return the names of a range, as n1 and n2 of `n[1..2]`; of a plain name, this name. Raise `FieldError`."""
    return [named.name for named in expand_numbered(text)]


def expand_numbered(text: str) -> list[NumberedName]:
    """Return the names of a range such as `node[1..4]`, with their numbers. Raise `FieldError` if it is invalid."""
    if not is_range(text):
        return [NumberedName(_fit(text, text), None)]
    match = _RANGE.fullmatch(text)
    if match is None:
        raise FieldError(f"node {show_value(text)}: expected a name with one range, as in node[001..012]")
    numbers = _numbers(match["first"], match["last"], 1, f"node {show_value(text)}", "..")
    before, after = match["before"], match["after"]
    return [NumberedName(_fit(f"{before}{number}{after}", text), int(number)) for number in numbers]


def host_names(text: str) -> list[str]:
    """Return the names in a Slurm list: n1, n2, n7 of `n[1-2,7]`; n0, n2 of `n[0-2/2]`. Raise `FieldError`."""
    pieces = _BRACKETS.split(text)  # text and content of brackets in turn, text first
    what = f"host {show_value(text)}"
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
    """Return the nodes that `side`, a node, a group or a range, stands for. Raise `FieldError` for an invalid range."""
    return groups[side] if side in groups and side not in nodes else expand_names(side)


def is_range(text: str) -> bool:
    """Tell whether a text has brackets, as ranges have."""
    return "[" in text or "]" in text


def _numbers(first: str, last: str, step: int, what: str, dash: str) -> list[str]:
    padded = any(len(end) > 1 and end.startswith("0") for end in (first, last))
    if padded and len(first) != len(last):
        raise FieldError(
            f"{what}: {first} and {last} have {len(first)} and {len(last)} digits. Numbers with leading zeros need "
            f"equally many digits, as in node[001{dash}012]"
        )
    low, high = int(first), int(last)
    if low > high:
        raise FieldError(f"{what}: {first}{dash}{last} runs backwards. Write {last}{dash}{first}")
    if (high - low) // step >= MAX_NAMES:
        raise FieldError(f"{what}: stands for more than {MAX_NAMES} names. Name fewer")
    return [f"{number:0{len(first) if padded else 1}}" for number in range(low, high + 1, step)]


def _fit(name: str, text: str) -> str:
    if not NODE_NAME.fullmatch(name):
        of = f" (from {show_value(text)})" if name != text else ""
        raise FieldError(
            f"node {show_value(name)}{of}: expected a name of 1 to 15 letters, digits, - and _, which begins with a "
            f"letter or digit"
        )
    return name
