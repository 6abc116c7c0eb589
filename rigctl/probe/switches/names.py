"""Interface names: what the rig file calls a port against what the switch calls it."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

_PARTS: Final = re.compile(r"\s*([A-Za-z-]*)\s*(.*?)\s*")


def resolved(
    wanted: Iterable[str], known: Mapping[int, tuple[str, ...]]
) -> tuple[dict[str, int], dict[str, list[str]]]:
    """The interface index of each wanted name, and for each name without one the nearest names there are.

    `known`: the names of each interface (ifName, ifDescr, ifAlias). The same name wins; else one whose letters
    begin alike and whose numbers are equal, as Gi1/1 and GigabitEthernet1/1, where only one interface fits.
    """
    exact = {name.casefold(): index for index, names in reversed(list(known.items())) for name in names if name}
    found: dict[str, int] = {}
    missing: dict[str, list[str]] = {}
    for name in wanted:
        index = exact.get(name.casefold())
        if index is None:
            alike = {key for key, names in known.items() for other in names if other and _alike(name, other)}
            index = alike.pop() if len(alike) == 1 else None
        if index is None:
            every = list(dict.fromkeys(names[0] for names in known.values() if names and names[0]))
            missing[name] = get_close_matches(name, every, 3, 0.3) or every[:3]
        else:
            found[name] = index
    return found, missing


def _alike(one: str, other: str) -> bool:
    parts = [match.groups() for name in (one, other) if (match := _PARTS.fullmatch(name.casefold()))]
    if len(parts) < 2 or parts[0][1] != parts[1][1] or not parts[0][1]:
        return False
    words = (parts[0][0], parts[1][0])
    return bool(words[0] and words[1]) and (words[0].startswith(words[1]) or words[1].startswith(words[0]))
