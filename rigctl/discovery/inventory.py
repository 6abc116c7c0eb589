"""Reads the hosts of an Ansible inventory from the JSON output of `ansible-inventory --list`.

Ansible resolves groups, precedence, ranges, group_vars and dynamic inventories, but fills in no templates.
https://docs.ansible.com/ansible/latest/cli/ansible-inventory.html
"""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rigctl.base.errors import InputError
from rigctl.base.processes import run_bounded
from rigctl.discovery.targets import Target
from rigctl.rig.fields import HOST, JUMP, USER
from rigctl.yamlfile import suggestion
from rigctl.yamlfile.fields import FieldError, parse_matching, parse_whole, show_value

_PROGRAM: Final = "ansible-inventory"
_UNSAFE: Final = "__ansible_unsafe"
_ALL: Final = "all"
_UNGROUPED: Final = "ungrouped"
_DEADLINE_S: Final = 60.0
"""Deadline of ansible-inventory; a dynamic inventory may have to ask a cloud."""
_ENVIRONMENT: Final = {
    "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true",
    "ANSIBLE_DEPRECATION_WARNINGS": "false",
    "ANSIBLE_NOCOLOR": "1",
}
# Field of `Target` → Ansible variables; the first one that the host has is used, as by Ansible's ssh plugin.
_VARIABLES: Final = {
    "host": ("ansible_ssh_host", "ansible_host"),
    "port": ("ansible_ssh_port", "ansible_port"),
    "user": ("ansible_ssh_user", "ansible_user"),
    "key": ("ansible_ssh_private_key_file", "ansible_private_key_file"),
}
_ARGUMENTS: Final = ("ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args")
_BY_SSH: Final = frozenset({"ssh", "smart", "openssh", "paramiko", "paramiko_ssh"})
_PARSERS: Final[Mapping[str, Callable[[str, object], object]]] = {
    "host": lambda name, value: parse_matching(name, value, HOST, "a host name or IP address, as in 192.168.1.11"),
    "port": lambda name, value: parse_whole(name, value, 1, 65535, 22),
    "user": lambda name, value: parse_matching(name, value, USER, "a user name, as in pi"),
    "jump": lambda name, value: parse_matching(name, value, JUMP, "one jump host, as in admin@gate:22"),
}
"""Maps fields of `Target` to parsers, which take (name for messages, value) and raise `FieldError`."""
_OF_SSH: Final = {"proxyjump": "jump", "user": "user", "port": "port"}  # option of ssh(1) → field of `Target`
_WITH_VALUE: Final = ("-o", "-J", "-l", "-p", "-i", "-F", "-W")  # options of ssh(1) that take a value
_FLAGS: Final = re.compile(r"-[46AaCfgKkNnqTtvXxYy]+")  # of a jump host's ssh(1): they do not affect what it forwards
_NAME: Final = re.compile(r"\s*=\s*|\s+")  # separates the name of an option of -o from its value
# Options of ssh(1) that are ignored without a note, because they do not affect a rig's connections.
_NO_MATTER: Final = frozenset(
    {"-c", "-q", "-v", "controlmaster", "controlpath", "controlpersist", "compression", "serveraliveinterval"}
)
_YAML: Final = (".yaml", ".yml", ".json")
_COMPLAINT: Final = re.compile(
    r"ailed to parse .*?with '?(?P<plugin>[\w.]+)'? plugin: (?P<why>.*?)(?: Failed to parse| Origin:|$)"
)
_ORIGIN: Final = re.compile(r"Origin: \S+?:(\d+:\d+)")


@dataclass(frozen=True, slots=True)
class Inventory:
    """An Ansible inventory: hosts and child groups by name of the group, variables by name of the host."""

    path: Path
    hosts: Mapping[str, Sequence[str]]
    children: Mapping[str, Sequence[str]]
    variables: Mapping[str, Mapping[str, Any]]


def split_reference(reference: str) -> tuple[Path, tuple[str, ...]]:
    """Return the file and the groups in FILE, FILE:GROUP or FILE:GROUP,GROUP. FILE may contain a colon."""
    path = Path(reference).expanduser()
    if not path.exists() and ":" in reference:
        file, _, groups = reference.rpartition(":")
        return Path(file).expanduser(), tuple(group.strip() for group in groups.split(",") if group.strip())
    return path, ()


def read_inventory(path: Path) -> Inventory:
    """Return an inventory as Ansible reads it. Raise `InputError` if Ansible is missing or rejects the file."""
    if not path.exists():
        raise InputError(f"{path}: no such file")
    program = shutil.which(_PROGRAM)
    if program is None:
        raise InputError(
            f"{path}: rigctl reads inventories with {_PROGRAM}, which is not installed here. Install "
            "ansible-core by pip or apt, or name the hosts, as in 'node[01-24]'"
        )
    try:
        words = [program, "-i", str(path.absolute()), "--list"]
        done = run_bounded(words, _DEADLINE_S, environment=os.environ | _ENVIRONMENT)
    except subprocess.TimeoutExpired:
        raise InputError(f"{path}: {_PROGRAM} had not answered after {_DEADLINE_S:g} s") from None
    complaint = done.stderr.decode("utf-8", "replace")
    try:
        answer = json.loads(done.stdout) if done.returncode == 0 else None
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise InputError(_reason(path, complaint))
    groups = {name: group for name, group in answer.items() if name != "_meta"}
    return Inventory(
        path,
        {name: group.get("hosts", ()) for name, group in groups.items()},
        {name: group.get("children", ()) for name, group in groups.items()},
        _plain(answer.get("_meta", {}).get("hostvars", {})),
    )


def _plain(value: Any) -> Any:  # noqa: ANN401 — any JSON
    """Return a value without the mappings by which ansible-core 2.19 marks values of plugins as no templates."""
    if isinstance(value, dict):
        return _plain(value[_UNSAFE]) if value.keys() == {_UNSAFE} else {key: _plain(own) for key, own in value.items()}
    return [_plain(own) for own in value] if isinstance(value, list) else value


def _reason(path: Path, complaint: str) -> str:
    """Return why Ansible rejects the file: all its plugins complain, but only one is made for the file's format."""
    parts = [" ".join(part.split()) for part in re.split(r"\[(?:WARNING|ERROR)\]:|ERROR! ", complaint) if part.strip()]
    reasons = {match["plugin"]: match for part in parts if (match := _COMPLAINT.search(part)) is not None}
    # Ansible also tries to read a YAML file as INI, and then complains about the colon after a name.
    if path.suffix in _YAML or "ending in ':'" in (reasons["ini"]["why"] if "ini" in reasons else ""):
        reasons.pop("ini", None)
    if "auto" in reasons and "no root 'plugin' key" in reasons["auto"]["why"]:
        del reasons["auto"]
    meant = reasons.get("ini") or next(iter(reasons.values()), None)
    if meant is None:
        return f"{path}: Ansible cannot read it: {parts[0] if parts else 'it gives no reason'}"
    place = _ORIGIN.search(meant.string)
    at = f"{path}:{place[1]}" if place is not None else path
    return f"{at}: Ansible cannot read it: {meant['why'].rstrip('.')}"


def inventory_targets(inventory: Inventory, wanted: Sequence[str] = ()) -> tuple[list[Target], list[str]]:
    """Return hosts of groups `wanted`, by default all, and notes on ignored settings. Raise `InputError` if none."""
    known = sorted({*inventory.hosts, *inventory.children} - {_ALL})
    for name in wanted:
        if name not in (*known, _ALL):
            raise InputError(f'{inventory.path}: there is no group "{name}".{suggestion(name, known)}')
    members = {name: dict.fromkeys(_members(inventory, name)) for name in (*known, _ALL)}
    chosen = [host for host in members[_ALL] if not wanted or any(host in members[name] for name in wanted)]
    if not chosen:
        raise InputError(f"{inventory.path}: names no host{' in ' + ', '.join(wanted) if wanted else ''}")
    targets, notes = [], dict[str, None]()
    for host in chosen:
        variables = inventory.variables.get(host, {})
        connection = str(variables.get("ansible_connection", "ssh"))
        if connection.removeprefix("ansible.builtin.").removeprefix("ansible.legacy.") not in _BY_SSH:
            notes[f"{host}: left out: ansible_connection is {show_value(connection)}, not SSH"] = None
            continue
        groups = tuple(name for name in known if name != _UNGROUPED and host in members[name])
        try:
            targets.append(_target(inventory.path, host, variables, groups, notes))
        except FieldError as error:
            notes[f"{host}: left out: {error}"] = None
    if not targets:
        raise InputError("\n".join(f"{inventory.path}: {note}" for note in notes))
    return targets, list(notes)


def _members(inventory: Inventory, name: str) -> Iterator[str]:
    yield from inventory.hosts.get(name, ())
    for child in inventory.children.get(name, ()):
        yield from _members(inventory, child)


def _target(
    path: Path, host: str, variables: Mapping[str, Any], groups: tuple[str, ...], notes: dict[str, None]
) -> Target:
    """Return the target for a host; add notes on SSH options for which a rig file has no key."""
    fields: dict[str, Any] = {"host": host}
    for field, names in _VARIABLES.items():
        name = next((name for name in names if variables.get(name) is not None), None)
        if name is not None:
            fields[field] = _check(field, name, variables[name], path)
    for name in _ARGUMENTS:
        for option, value in _options(name, variables.get(name)):
            if (of_ssh := _OF_SSH.get(option.lower())) is not None:
                fields.setdefault(of_ssh, _PARSERS[of_ssh](name, value))
            elif option.lower() == "proxycommand" and (hop := _jump_of(name, value)) is not None:
                fields.setdefault("jump", _PARSERS["jump"](name, hop.jump))
                notes.update({f"{name}: {show_value(what)} of the jump host is ignored": None for what in hop.ignored})
            elif option.lower() not in _NO_MATTER:
                notes[f"{name}: {show_value(f'{option} {value}'.strip())} is ignored"] = None
    fields["host"] = _PARSERS["host"]("host", fields["host"])
    return Target(text=host, name=host, groups=groups, **fields)


@dataclass(frozen=True, slots=True)
class _Hop:
    """A jump host, [user@]host[:port], and the options of its ssh(1) for which a rig file has no key."""

    jump: str
    ignored: tuple[str, ...]


def _jump_of(name: str, command: str) -> _Hop | None:
    """Return the jump host of a ProxyCommand such as `ssh -W %h:%p -q pi@bastion`; None for any other command."""
    words = [*_split(name, command)]
    if words[:1] == ["exec"]:
        words = words[1:]
    if not words or Path(words[0]).name != "ssh":
        return None
    known, ignored, place, forwards = dict[str, str](), list[str](), list[str](), False
    for option, value in _options(name, shlex.join(words[1:])):
        if option == "-W":
            forwards = value.replace("[", "").replace("]", "") == "%h:%p"
        elif (of_ssh := _OF_SSH.get(option.lower())) is not None:
            known.setdefault(of_ssh, value)
        elif not option.startswith("-") and not value:
            place.append(option)
        elif option.lower() not in _NO_MATTER and not _FLAGS.fullmatch(option):
            ignored.append(f"{option} {value}".strip())
    if not forwards or len(place) != 1 or "jump" in known:
        return None
    user, _, host = place[0].rpartition("@")
    user = user or known.get("user", "")
    host = f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host
    port = f":{known['port']}" if "port" in known else ""
    return _Hop(f"{user}@{host}{port}" if user else f"{host}{port}", tuple(ignored))


def _check(field: str, name: str, value: object, path: Path) -> object:
    if "{{" in str(value) or isinstance(value, Mapping):
        what = "templates are not filled in" if "{{" in str(value) else "a vault secret is not decrypted"
        raise FieldError(f"{name}: {what}. Write the value itself")
    if field in _PARSERS:
        return _PARSERS[field](name, value)
    # A relative path is relative to the current folder, as for Ansible, or else to the folder of the inventory.
    key = Path(str(value)).expanduser()
    beside = path.absolute().parent / key
    return beside if not key.exists() and beside.exists() else key.absolute()


def _options(name: str, text: object) -> Iterator[tuple[str, str]]:
    """Yield name and value of each ssh(1) option in a variable; -J, -l and -p are named as for -o (ProxyJump)."""
    waiting = _split(name, str(text or ""))
    for word in waiting:
        letter, value = word[:2], word[2:]
        if letter not in _WITH_VALUE:
            yield word, ""
            continue
        value = value or next(waiting, "")
        if letter == "-o":
            key, value = _NAME.split(value.strip(), maxsplit=1) if _NAME.search(value.strip()) else (value, "")
            yield key.strip(), value.strip()
        else:
            yield {"-J": "ProxyJump", "-l": "User", "-p": "Port"}.get(letter, letter), value


def _split(name: str, text: str) -> Iterator[str]:
    try:
        return iter(shlex.split(text))
    except ValueError as error:
        raise FieldError(f"{name} {show_value(text)}: {error}") from None
