"""Reading an Ansible inventory file in its INI or YAML form."""

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from rigctl.base.errors import InputError
from rigctl.discovery.inventory import ALL, Inventory, Value, names_of
from rigctl.yamlfile import Document, Mistake, parse_document, read_text
from rigctl.yamlfile.fields import FieldError, shown
from rigctl.yamlfile.mistakes import Span

_YAML: Final = (".yaml", ".yml", ".json")
_PARTS: Final = ("hosts", "vars", "children")
_SECTION: Final = re.compile(r"\[([^:\]\s]{1,200})(?::(vars|children))?\]\s*(?:[#;].*)?")
_QUOTED: Final = r"""\"[^\"]*\"|'[^']*'"""
_WORD: Final = re.compile(rf"""(?:[^\s"']|{_QUOTED})+""")
_BEFORE_COMMENT: Final = re.compile(rf"""(?:[^\s"'#]|\s+(?![\s#])|(?<=\S)#|{_QUOTED})*""")


def read_inventory(path: Path) -> Inventory:
    """Return the inventory in `path`, or raise `InputError`."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder. Name one inventory file in it")
    text = read_text(path)
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and line[0] not in "#;"), "")
    # By the ending, as Ansible does; a file without ending by its first line.
    is_yaml = path.suffix in _YAML or (path.suffix == "" and (first == "---" or first.endswith(":")))
    return _parse_yaml(path, parse_document(str(path), text)) if is_yaml else _parse_ini(path, text)


def _parse_yaml(path: Path, document: Document) -> Inventory:
    inventory = Inventory(path, mistakes=list(document.mistakes))
    for name, section in document.data.items():
        _group(inventory, document, name, section, (name,))
    inventory.group(ALL)
    return inventory


def _group(inventory: Inventory, document: Document, name: str, section: object, at: tuple[str, ...]) -> None:
    group = inventory.group(name)
    if section is None:
        return
    if not isinstance(section, Mapping):
        what = f'group "{name}": expected a mapping with hosts, vars or children'
        inventory.mistakes.append(document.mistake(at, what))
        return
    for key in section:
        if key not in _PARTS:
            what = f'group "{name}": "{key}" is unknown. Known: {", ".join(_PARTS)}'
            inventory.mistakes.append(document.mistake((*at, key), what, at_key=True))
    parts = {key: _mapping(inventory, document, section.get(key), (*at, key)) for key in _PARTS}
    for pattern, variables in parts["hosts"].items():
        here = (*at, "hosts", pattern)
        values = _values(document, _mapping(inventory, document, variables, here), here)
        try:
            names = names_of(pattern)
        except FieldError as error:
            inventory.mistakes.append(document.mistake(here, str(error), at_key=True))
            continue
        for host in names:
            group.hosts.setdefault(host, {}).update(values)
    group.variables |= _values(document, parts["vars"], (*at, "vars"))
    for child, below in parts["children"].items():
        here = (*at, "children", child)
        group.children[child] = Value(child, document.mistake(here, "", at_key=True))
        _group(inventory, document, child, below, here)


def _mapping(inventory: Inventory, document: Document, value: object, at: tuple[str, ...]) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        what = f'"{at[-1]}": expected a mapping, each name with a colon after it, as in pi1:'
        inventory.mistakes.append(document.mistake(at, what))
        return {}
    return value


def _values(document: Document, variables: Mapping[str, Any], at: tuple[str, ...]) -> dict[str, Value]:
    return {name: Value(value, document.mistake((*at, name), "")) for name, value in variables.items()}


def _parse_ini(path: Path, text: str) -> Inventory:
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
