"""Reads an Ansible inventory file in either of its forms, and the YAML form itself."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from rigctl.base.errors import InputError
from rigctl.discovery.inventory import ALL, Inventory, Value, names_of
from rigctl.discovery.inventory_ini import parse_ini
from rigctl.yamlfile import Document, parse_document, read_text
from rigctl.yamlfile.fields import FieldError

_YAML: Final = (".yaml", ".yml", ".json")
_PARTS: Final = ("hosts", "vars", "children")


def read_inventory(path: Path) -> Inventory:
    """The inventory in `path`. Raises `InputError`, `MistakesError`."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder. Name one inventory file in it")
    text = read_text(path)
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and line[0] not in "#;"), "")
    # By the ending, as Ansible does; a file without one by how it begins.
    is_yaml = path.suffix in _YAML or (path.suffix == "" and (first == "---" or first.endswith(":")))
    return parse_yaml(path, parse_document(str(path), text)) if is_yaml else parse_ini(path, text)


def parse_yaml(path: Path, document: Document) -> Inventory:
    """The inventory that a YAML document holds; what is wrong is in its `mistakes`."""
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
