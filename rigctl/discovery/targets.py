"""Parses host names in command lines: `node[001-012]`, `pi@10.0.0.7:2222`, `[fd00::1]:22`, and lists of these."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rigctl.rig.allocation import members_here
from rigctl.rig.fields import USER, is_address
from rigctl.rig.inventory import Transport
from rigctl.rig.ranges import MAX_NAMES, host_names
from rigctl.yamlfile.fields import FieldError, show_value

_HOST: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}", re.ASCII)
# The colon distinguishes an IPv6 address in brackets from a range as in node[1-3].
_V6: Final = re.compile(r"\[([^\[\]]*:[^\[\]]*)\](?::(.*))?")
_COMMA: Final = re.compile(r",(?![^\[\]]*\])")
_FORM: Final = "expected HOST, USER@HOST or HOST:PORT, as in node[001-012], pi@10.0.0.7:2222 or [fd00::1]:22"


@dataclass(frozen=True, slots=True)
class Target:
    """One host, and how SSH reaches it. For a field that is None, ~/.ssh/config applies."""

    text: str  # as the user named the host, with ranges expanded
    host: str  # host name or address for SSH
    user: str | None = None
    port: int | None = None
    key: Path | None = None
    name: str | None = None  # name in an Ansible inventory
    jump: str | None = None
    groups: tuple[str, ...] = ()  # groups in an Ansible inventory
    transport: Transport = "ssh"

    @property
    def place(self) -> tuple[str, str | None, int]:
        """Return host, jump host and port, which are equal if two targets name the same host."""
        return (self.host.lower(), self.jump, self.port or 22)


def targets_of(words: Iterable[str]) -> list[Target]:
    """Return the hosts that `words` name, in order. Raise `FieldError` for a malformed name."""
    found = [target for word in words for part in _COMMA.split(word) if part.strip() for target in _parse(part.strip())]
    if len(found) > MAX_NAMES:
        raise FieldError(f"{len(found)} hosts are named: expected at most {MAX_NAMES}")
    return found


def fill_in_allocation() -> list[Target]:
    """Return the nodes of the Slurm allocation in which rigctl runs. Raise `InputError` for fewer than two nodes."""
    return [Target(member.name, member.name, transport="srun") for member in members_here(srun=True)]


def _parse(text: str) -> Iterator[Target]:
    user, at, place = text.rpartition("@")
    if at and not USER.fullmatch(user):
        raise FieldError(f"host {show_value(text)}: {show_value(user)} is no user name. {_FORM}")
    literal = _V6.fullmatch(place)
    if literal is not None or is_address(place):
        host, port = (literal[1], literal[2]) if literal is not None else (place, None)
        if not is_address(host):
            raise FieldError(f"host {show_value(text)}: {show_value(host)} is no IPv6 address. {_FORM}")
        yield Target(text, host, user or None, _port(port, text))
        return
    name, colon, port = place.partition(":")
    number = _port(port if colon else None, text)
    for host in host_names(name):
        if not _HOST.fullmatch(host):
            raise FieldError(f"host {show_value(text)}: {show_value(host)} is no host name. {_FORM}")
        yield Target(f"{user}{at}{host}{colon}{port}", host, user or None, number)


def _port(text: str | None, whole: str) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65535):
        raise FieldError(f"host {show_value(whole)}: port {show_value(text)}: expected 1 to 65535, as in pi1:22")
    return int(text)


def once_each(targets: Iterable[Target]) -> tuple[list[Target], list[Target]]:
    """Return the first target of each host, and the targets that name a host again."""
    first: dict[tuple[str, str | None, int], Target] = {}
    again = [target for target in targets if first.setdefault(target.place, target) is not target]
    return list(first.values()), again
