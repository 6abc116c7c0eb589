"""Frames that a port's queue dropped: how they are counted, and what snmpd is told."""

from typing import Any

import pytest

from rigctl.virtual.snmpd import answer, discards

COLUMN = ".1.3.6.1.2.1.2.2.1.19"
COUNTED = {2: 7, 5: 0, 11: 2**32 + 3}


def link(index: int, name: str, dropped: int) -> dict[str, Any]:
    """An interface as `ip -s -j link` prints it."""
    counted = {"rx": {"dropped": 9}, "tx": {"packets": 8, "dropped": dropped}}
    return {"ifindex": index, "ifname": name, "stats64": counted}


def queue(name: str, dropped: int, **more: Any) -> dict[str, Any]:
    """A queue as `tc -s -j qdisc` prints it."""
    return {"kind": "tbf", "handle": "8001:", "dev": name, "drops": dropped, **more}


def test_drops_of_interface_and_queue_are_both_discards() -> None:
    links = [link(4, "a", 3), link(5, "b", 0), link(6, "c", 2)]
    assert discards(links, [queue("a", 40, root=True), queue("b", 1, root=True)]) == {4: 43, 5: 1, 6: 2}
    assert discards([link(4, "a", 0)], [queue("a", 40, parent="8001:1")]) == {4: 0}  # its outer queue counts it


@pytest.mark.parametrize(
    ("verb", "oid", "expected"),
    [
        ("get", f"{COLUMN}.2", f"{COLUMN}.2\ncounter\n7"),
        ("get", f"{COLUMN}.5", f"{COLUMN}.5\ncounter\n0"),
        ("get", f"{COLUMN}.11", f"{COLUMN}.11\ncounter\n3"),  # 32 bits wrap
        ("get", f"{COLUMN}.3", "NONE"),
        ("get", COLUMN, "NONE"),
        ("getnext", COLUMN, f"{COLUMN}.2\ncounter\n7"),
        ("getnext", f"{COLUMN}.2", f"{COLUMN}.5\ncounter\n0"),
        ("getnext", f"{COLUMN}.3", f"{COLUMN}.5\ncounter\n0"),
        ("getnext", f"{COLUMN}.11", "NONE"),
        ("get", ".1.3.6.1.2.1.2.2.1.18.2", "NONE"),
        ("get", f"{COLUMN}9.2", "NONE"),
        ("get", f"{COLUMN}.2.1", "NONE"),
        ("get", f"{COLUMN}.-2", "NONE"),
        ("get", "", "NONE"),
        ("set", f"{COLUMN}.2", "NONE"),
    ],
)
def test_snmpd_gets_a_counter_or_none(verb: str, oid: str, expected: str) -> None:
    assert answer(verb, oid, COUNTED) == expected
