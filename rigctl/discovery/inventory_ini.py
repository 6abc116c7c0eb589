"""The INI form of an Ansible inventory: `[group]`, `[group:vars]`, `[group:children]`, and hosts with variables."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rigctl.discovery.inventory import ALL, Inventory, Value, names_of
from rigctl.yamlfile.fields import FieldError, shown
from rigctl.yamlfile.mistakes import Mistake, Span

_SECTION: Final = re.compile(r"\[([^:\]\s]{1,200})(?::(vars|children))?\]\s*(?:[#;].*)?")
_QUOTED: Final = r"""\"[^\"]*\"|'[^']*'"""
_WORD: Final = re.compile(rf"""(?:[^\s"']|{_QUOTED})+""")
_BEFORE_COMMENT: Final = re.compile(rf"""(?:[^\s"'#]|\s+(?![\s#])|(?<=\S)#|{_QUOTED})*""")


def parse_ini(path: Path, text: str) -> Inventory:
    """The inventory; what is wrong is in its `mistakes`, each with its line and column."""
    inventory = Inventory(path)
    group, kind = "ungrouped", ""
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.rstrip("\r")
        if not line.strip() or line.lstrip()[0] in "#;":
            continue
        at = _placer(path, text, number)
        section = _SECTION.fullmatch(line.strip())
        start = len(line) - len(line.lstrip())
        if section is not None:
            group, kind = section[1], section[2] or ""
            inventory.group(group)
        elif line.lstrip().startswith("[") and not re.match(r"\s*\[[^\]]*:[^\]]*\]\S", line):
            what = f"section {shown(line.strip())}: expected [GROUP], [GROUP:vars] or [GROUP:children]"
            inventory.mistakes.append(at(start, len(line.strip()), what))
        elif kind == "vars":
            _variable(inventory, group, line, at)
        elif kind == "children":
            name = line.split("#")[0].strip()
            inventory.group(group).children[name] = Value(name, at(start, len(name), ""))
        else:
            _hosts(inventory, group, line, at)
    inventory.group(ALL)
    return inventory


_Placer = Callable[[int, int, str], Mistake]


def _placer(path: Path, text: str, line: int) -> _Placer:
    def at(column: int, length: int, what: str) -> Mistake:
        return Mistake(f"{path}:{line}:{column + 1}", what, span=Span(line, column + 1, max(1, length)), text=text)

    return at


def _variable(inventory: Inventory, group: str, line: str, at: _Placer) -> None:
    name, equals, value = line.partition("=")
    start = len(line) - len(line.lstrip())
    if not equals or not name.strip():
        inventory.mistakes.append(at(start, len(line.strip()), "expected NAME=VALUE, as in ansible_user=pi"))
        return
    inventory.group(group).variables[name.strip()] = Value(value.strip().strip("\"'"), at(start, len(line.strip()), ""))


def _hosts(inventory: Inventory, group: str, line: str, at: _Placer) -> None:
    said = _BEFORE_COMMENT.match(line.rstrip())
    end = said.end() if said is not None else 0
    if line[end : end + 1] in ("'", '"'):
        inventory.mistakes.append(at(end, 1, "the quote is not closed"))
        return
    words = list(_WORD.finditer(line[:end]))
    try:
        names = names_of(words[0][0])
    except FieldError as error:
        inventory.mistakes.append(at(words[0].start(), len(words[0][0]), str(error)))
        return
    variables: dict[str, Value] = {}
    for word in words[1:]:
        name, equals, value = word[0].partition("=")
        place = at(word.start(), len(word[0]), "")
        if not equals:
            what = f"{shown(word[0])}: expected NAME=VALUE after the host, as in ansible_host=10.0.0.7"
            inventory.mistakes.append(at(word.start(), len(word[0]), what))
            continue
        variables[name] = Value("".join(shlex.split(value)) if value else "", place)
    for name in names:
        inventory.group(group).hosts.setdefault(name, {}).update(variables)
