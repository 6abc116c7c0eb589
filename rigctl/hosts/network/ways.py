"""The kernel's way from a host to other hosts, for `rig init`: interface and source address, and who answers there.

`ip route get` counts all tables and rules, such as table 52 of Tailscale. For addresses on a network of its own, the
kernel only believes that they are there: two sites may use the same numbers. ARP and NDP tell who answers.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from rigctl.base.texts import printable
from rigctl.hosts.fact import Fact
from rigctl.rig.fields import is_address

_MARK: Final = "@near"
_MAC: Final = re.compile(r"\blladdr ([0-9a-f]{2}(?::[0-9a-f]{2}){5})\b")
_ASKED: Final = re.compile(r"\b(?:FAILED|INCOMPLETE)\b")


@dataclass(frozen=True, slots=True)
class ChosenRoute:
    """A host's way to an address: its own interface and its source address (None: the kernel does not say)."""

    interface: str
    source: str | None


@dataclass(frozen=True, slots=True)
class Ways:
    """A host's ways by address. `near` has who answered for an address on a network of its own: a MAC, or None."""

    to: Mapping[str, ChosenRoute] = field(default_factory=dict)
    near: Mapping[str, str | None] = field(default_factory=dict)


def ways_fact(addresses: Iterable[str], near: Iterable[str]) -> Fact:
    """Return how to ask for the ways to `addresses`, and who answers for the addresses in `near`."""
    own, beside = (" ".join(map(shlex.quote, dict.fromkeys(texts))) for texts in (addresses, near))
    gets = f"printf 'route get %s\\n' {own} | ip -o -force -batch -" if own else ":"
    pings = f"for a in {beside}; do ping -c 1 -W 1 $a >/dev/null 2>&1 & done; wait" if beside else ":"
    tells = f'for a in {beside}; do echo "$a $(ip -o neigh show to $a | head -n 1)"; done' if beside else ":"
    return Fact(f"{gets}; echo {_MARK}; command -v ping >/dev/null && {{ {pings}; {tells}; }}", parse_ways)


def parse_ways(output: str) -> Ways:
    """Return the ways in the output of `ways_fact`. An address without a route, or without an entry, is left out."""
    gets, _, beside = output.partition(_MARK)
    lines = [printable(line).split() for line in gets.splitlines()]
    found = {words[0]: way for words in lines if words and (way := _way(words)) is not None}
    near: dict[str, str | None] = {}
    for line in beside.splitlines():
        address, _, entry = printable(line).partition(" ")
        match = _MAC.search(entry)
        if is_address(address) and (match is not None or _ASKED.search(entry)):
            near[address] = match[1] if match is not None else None
    return Ways(found, near)


def _way(words: Sequence[str]) -> ChosenRoute | None:
    # Examples: 100.64.0.2 dev tailscale0 table 52 src 100.64.0.1 uid 0; 10.1.0.7 via 10.0.0.9 dev eth0 src 10.0.0.2
    after = dict(pairwise(words))
    if not is_address(words[0]) or "dev" not in after:
        return None
    source = after.get("src")
    return ChosenRoute(after["dev"], source if source is not None and is_address(source) else None)
