"""Names of nodes for hosts: short, unique, fit for a rig file. Pure."""

import re
from collections import Counter
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final

from rigctl.discovery.targets import Target, is_address
from rigctl.rig.fields import NODE_NAME

_MOST: Final = 15
_NO_NAMES: Final = frozenset({"localhost", "localhost6", "(none)"})


def node_names(hosts: Sequence[tuple[Target, str | None]]) -> list[str]:
    """A name for each host, given its target and what it calls itself.

    The inventory's name, else the first part of the host's; an address is replaced by what the host calls itself,
    where only one does. Two that would have the same name get -2, -3.
    """
    called = Counter(_first_part(hostname) for _, hostname in hosts if hostname)
    wanted = [_wanted(target, hostname, called) for target, hostname in hosts]
    short = _shortened(wanted)
    names: list[str] = []
    for name in short:
        unique, number = name, 2
        while unique in names:
            suffix = f"-{number}"
            unique, number = name[: _MOST - len(suffix)] + suffix, number + 1
        names.append(unique)
    return names


def key_of(text: str) -> str:
    """A switch's name as a key of the rig file."""
    return _shortened([_fit(text.partition(".")[0]) or "switch"])[0]


def _wanted(target: Target, hostname: str | None, called: Counter[str]) -> str:
    named = target.name or target.host
    if not is_address(named):
        return _fit(_first_part(named)) or "node"
    own = _first_part(hostname) if hostname else ""
    if own and own not in _NO_NAMES and called[own] == 1 and _fit(own):
        return _fit(own)
    address = ip_address(named)
    # An IPv4 address is at most 15 characters long, as a name may be.
    return str(address).replace(".", "-") if address.version == 4 else "node"


def _first_part(name: str) -> str:
    return name if is_address(name) else name.partition(".")[0]


def _fit(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-_")


def _shortened(names: Sequence[str]) -> list[str]:
    """Names of at most 15 characters: the beginning where that tells them apart, else the end."""
    starts, ends = Counter(name[:_MOST] for name in names), [_fit(name[-_MOST:]) or "node" for name in names]
    cut = [
        name[:_MOST] if starts[name[:_MOST]] == 1 or len(name) <= _MOST else end
        for name, end in zip(names, ends, strict=True)
    ]
    return [name if NODE_NAME.fullmatch(name) else "node" for name in cut]
