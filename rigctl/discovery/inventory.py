"""Hosts of an Ansible inventory in its INI or YAML form: ranges, groups, and the variables of SSH.

Only the file is read: no group_vars or host_vars beside it. No program is run, no template is filled in.
https://docs.ansible.com/ansible/latest/inventory_guide/intro_inventory.html
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from rigctl.base.errors import InputError
from rigctl.discovery.targets import Target
from rigctl.rig.fields import HOST, USER
from rigctl.rig.ranges import MAX_NAMES
from rigctl.yamlfile import Document, Mistake, MistakesError, parse_document, read_text, suggestion
from rigctl.yamlfile.document import Span
from rigctl.yamlfile.fields import FieldError, parse_whole, shown

ALL: Final = "all"
# ansible_ssh_… are names of Ansible 1.
VARIABLES: Final = {
    "ansible_host": "host",
    "ansible_ssh_host": "host",
    "ansible_port": "port",
    "ansible_ssh_port": "port",
    "ansible_user": "user",
    "ansible_ssh_user": "user",
    "ansible_ssh_private_key_file": "key",
    "ansible_private_key_file": "key",
    "ansible_connection": "connection",
}
_YAML: Final = (".yaml", ".yml", ".json")
_PARTS: Final = ("hosts", "vars", "children")
_SECTION: Final = re.compile(r"\[([^:\]\s]{1,200})(?::(vars|children))?\]\s*(?:[#;].*)?")
_QUOTED: Final = r"""\"[^\"]*\"|'[^']*'"""
_WORD: Final = re.compile(rf"""(?:[^\s"']|{_QUOTED})+""")
_BEFORE_COMMENT: Final = re.compile(rf"""(?:[^\s"'#]|\s+(?![\s#])|(?<=\S)#|{_QUOTED})*""")
_RANGE: Final = re.compile(r"\[([0-9]{1,9}|[A-Za-z]):([0-9]{1,9}|[A-Za-z])(?::([1-9][0-9]{0,8}))?\]", re.ASCII)


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a variable. `mistake` makes a mistake at its place in the file."""

    value: object
    mistake: Callable[[str], Mistake]


@dataclass(slots=True)
class Group:
    hosts: dict[str, dict[str, Value]] = field(default_factory=dict)
    variables: dict[str, Value] = field(default_factory=dict)
    children: dict[str, Value] = field(default_factory=dict)


@dataclass(slots=True)
class Inventory:
    path: Path
    groups: dict[str, Group] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    def group(self, name: str) -> Group:
        return self.groups.setdefault(name, Group())


def split_reference(reference: str) -> tuple[Path, tuple[str, ...]]:
    """Return the file and the groups of FILE, FILE:GROUP or FILE:GROUP,GROUP. The name of a file may hold a colon."""
    path = Path(reference).expanduser()
    if not path.exists() and ":" in reference:
        file, _, groups = reference.rpartition(":")
        path = Path(file).expanduser()
        return path, tuple(group.strip() for group in groups.split(",") if group.strip())
    return path, ()


def inventory_targets(inventory: Inventory, wanted: Sequence[str] = ()) -> list[Target]:
    """Return the hosts of the groups `wanted`, or all hosts, in the file's order. Raise `InputError`."""
    found = [*inventory.mistakes, *_loops_and_gaps(inventory)]
    if found:
        raise MistakesError(found)
    known = [name for name in inventory.groups if name != ALL]
    for name in wanted:
        if name != ALL and name not in inventory.groups:
            raise InputError(f'{inventory.path}: there is no group "{name}".{suggestion(name, known)}')
    members = {name: _members(inventory, name) for name in inventory.groups}
    every = dict.fromkeys(host for group in inventory.groups.values() for host in group.hosts)
    members[ALL] = every
    chosen = [host for host in every if not wanted or any(host in members[name] for name in wanted)]
    if not chosen:
        raise InputError(f"{inventory.path}: names no host{' in ' + ', '.join(wanted) if wanted else ''}")
    outcome = [_target(inventory, host, members) for host in chosen]
    wrong = [mistake for _, mistakes in outcome for mistake in mistakes]
    if wrong:
        raise MistakesError(wrong)
    return [target for target, _ in outcome if target is not None]


def _loops_and_gaps(inventory: Inventory) -> Iterator[Mistake]:
    for name, group in inventory.groups.items():
        for child, at in group.children.items():
            if child not in inventory.groups:
                known = suggestion(child, list(inventory.groups))
                yield at.mistake(f'group "{name}": there is no group "{child}".{known}')
            elif name in _below(inventory, child):
                yield at.mistake(f'group "{name}": "{child}" contains it in turn. Leave one of the two out')


def _below(inventory: Inventory, name: str) -> dict[str, None]:
    """Return the group and all groups in it."""
    seen: dict[str, None] = {}
    waiting = [name]
    while waiting:
        current = waiting.pop()
        if current not in seen and current in inventory.groups:
            seen[current] = None
            waiting.extend(inventory.groups[current].children)
    return seen


def _members(inventory: Inventory, name: str) -> dict[str, None]:
    return dict.fromkeys(host for group in _below(inventory, name) for host in inventory.groups[group].hosts)


def _target(
    inventory: Inventory, host: str, members: dict[str, dict[str, None]]
) -> tuple[Target | None, list[Mistake]]:
    """Return the target of a host, or None if it is not reached by SSH, and the mistakes in its variables.

    A host's own variables go before those of its groups, and those of an inner group before those of an outer one.
    """
    groups = [name for name in inventory.groups if host in members[name]]
    # "all" is the outermost group; of two others the one with more groups below is further out.
    groups.sort(key=lambda name: (name == ALL, len(_below(inventory, name))), reverse=True)
    merged: dict[str, Value] = {}
    for name in groups:
        merged |= inventory.groups[name].variables
    for name in groups:
        merged |= inventory.groups[name].hosts.get(host, {})
    name, port = _with_port(host)
    fields: dict[str, Any] = {"host": name, "port": port, "connection": "ssh"}
    wrong: list[Mistake] = []
    for variable, value in merged.items():
        if variable in VARIABLES:
            try:
                fields[VARIABLES[variable]] = _checked(variable, value.value, inventory.path.parent)
            except FieldError as error:
                wrong.append(value.mistake(str(error)))
    if fields.pop("connection") not in ("ssh", "smart", "paramiko", "openssh"):
        return None, wrong  # this machine, or a container
    inside = tuple(group for group in inventory.groups if group in groups and group not in (ALL, "ungrouped"))
    return Target(text=name, name=name, groups=inside, **fields), wrong


def _checked(variable: str, value: object, folder: Path) -> object:
    if "{{" in str(value):
        raise FieldError(f"{variable} {shown(value)}: templates are not filled in. Write the value itself")
    match VARIABLES[variable]:
        case "port":
            return parse_whole(variable, value, 1, 65535, 22)
        case "host" if not HOST.fullmatch(str(value)):
            raise FieldError(f"{variable} {shown(value)}: expected a host name or IP address, as in 192.168.1.11")
        case "user" if not USER.fullmatch(str(value)):
            raise FieldError(f"{variable} {shown(value)}: expected a user name, as in pi")
        case "key":
            return (folder / Path(str(value)).expanduser()).absolute()
    return str(value)


def _with_port(host: str) -> tuple[str, int | None]:
    """Split `name:2222`, a form of Ansible's INI files."""
    name, colon, port = host.partition(":")
    return (name, int(port)) if colon and port.isdigit() and int(port) <= 65535 else (host, None)


def names_of(pattern: str) -> list[str]:
    """Return the hosts of an Ansible range, as `node[01:12].lan`, `db[a:c]` or `n[0:10:5]`. Raise `FieldError`."""
    names = [""]
    at = 0
    for match in _RANGE.finditer(pattern):
        names = [f"{name}{pattern[at : match.start()]}{step}" for name in names for step in _steps(match, pattern)]
        at = match.end()
        if len(names) > MAX_NAMES:
            raise FieldError(f"host {shown(pattern)}: stands for more than {MAX_NAMES} hosts. Name fewer")
    names = [name + pattern[at:] for name in names]
    if not HOST.fullmatch(names[0]):
        raise FieldError(f"host {shown(pattern)}: expected a host name, or a range as in node[01:12]")
    return names


def _steps(match: re.Match[str], pattern: str) -> list[str]:
    first, last, step = match[1], match[2], int(match[3] or 1)
    if first.isdigit() != last.isdigit():
        raise FieldError(f"host {shown(pattern)}: expected two numbers or two letters, as in [01:12] or [a:f]")
    low, high = (int(first), int(last)) if first.isdigit() else (ord(first), ord(last))
    if low > high or (high - low) // step >= MAX_NAMES:
        raise FieldError(f"host {shown(pattern)}: expected a range upwards of at most {MAX_NAMES}, as in [01:12]")
    width = len(first) if first.startswith("0") else 1
    return [f"{n:0{width}}" if first.isdigit() else chr(n) for n in range(low, high + 1, step)]


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
        group.children[child] = Value(child, partial(document.mistake, here, at_key=True))
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
    return {name: Value(value, partial(document.mistake, (*at, name))) for name, value in variables.items()}


def _parse_ini(path: Path, text: str) -> Inventory:
    inventory = Inventory(path)
    group, kind = "ungrouped", ""
    for number, line in enumerate(text.split("\n"), 1):
        entry = line.strip()
        if not entry or entry[0] in "#;":
            continue
        at = partial(_place, path, text, number)
        start = line.index(entry)
        section = _SECTION.fullmatch(entry)
        if section is not None:
            group, kind = section[1], section[2] or ""
            inventory.group(group)
        elif entry.startswith("[") and not re.match(r"\[[^\]]*:[^\]]*\]\S", entry):
            what = f"section {shown(entry)}: expected [GROUP], [GROUP:vars] or [GROUP:children]"
            inventory.mistakes.append(at(start, len(entry), what))
        elif kind == "vars":
            name, equals, value = entry.partition("=")
            if equals and name.strip():
                place = partial(at, start, len(entry))
                inventory.group(group).variables[name.strip()] = Value(value.strip().strip("\"'"), place)
            else:
                inventory.mistakes.append(at(start, len(entry), "expected NAME=VALUE, as in ansible_user=pi"))
        elif kind == "children":
            name = line.split("#")[0].strip()
            inventory.group(group).children[name] = Value(name, partial(at, start, len(name)))
        else:
            _hosts(inventory, group, line.rstrip(), at)
    inventory.group(ALL)
    return inventory


def _place(path: Path, text: str, line: int, column: int, length: int, what: str) -> Mistake:
    return Mistake(f"{path}:{line}:{column + 1}", what, span=Span(line, column + 1, max(1, length)), text=text)


def _hosts(inventory: Inventory, group: str, line: str, at: Callable[[int, int, str], Mistake]) -> None:
    plain = _BEFORE_COMMENT.match(line)
    end = plain.end() if plain is not None else 0
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
        place = partial(at, word.start(), len(word[0]))
        if not equals:
            what = f"{shown(word[0])}: expected NAME=VALUE after the host, as in ansible_host=10.0.0.7"
            inventory.mistakes.append(place(what))
            continue
        variables[name] = Value("".join(shlex.split(value)) if value else "", place)
    for name in names:
        inventory.group(group).hosts.setdefault(name, {}).update(variables)
