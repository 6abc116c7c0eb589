"""Answers SNMP for known switches: net-snmp's snmpd asks `python -m known_switch.mib SOCKET` (pass_persist).

The values are those of the running switches (`ports.read`), as IF-MIB (RFC 2863) and EtherLike-MIB (RFC 3635) have
them. The interface index of a port is its place among all ports, its name that of the node at the other end.
"""

import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from known_switch.ports import read

_IF: Final = (1, 3, 6, 1, 2, 1, 2, 2, 1)
_IFX: Final = (1, 3, 6, 1, 2, 1, 31, 1, 1, 1)
_STATS: Final = (1, 3, 6, 1, 2, 1, 10, 7, 2, 1)
_PAUSE: Final = (1, 3, 6, 1, 2, 1, 10, 7, 10, 1)
SUBTREES: Final = ("1.3.6.1.2.1.2.2", "1.3.6.1.2.1.31.1.1", "1.3.6.1.2.1.10.7.2", "1.3.6.1.2.1.10.7.10")
"""The tables that snmpd is to ask this program for, instead of reading this machine's interfaces."""
_SAME_S: Final = 0.02
"""Within this time, requests get values of the same reading, because snmpd asks for each value separately."""
_ZERO: Final[dict[tuple[int, ...], str]] = {
    **{(*_IF, column): "counter" for column in (14, 20)},  # ifInErrors, ifOutErrors
    (*_IFX, 19): "timeticks",  # ifCounterDiscontinuityTime
    **{(*_STATS, column): "counter" for column in (2, 3, 8)},  # alignment and FCS errors, late collisions
}
_WAYS: Final = (("in", 10, 6, 3), ("out", 16, 10, 4))
"""Of each way: its first columns in ifTable and ifXTable, and its 32-bit column in dot3PauseTable."""
_KINDS: Final = ("unicast", "multicast", "broadcast")
Row = tuple[str, object]


def rows(ports: Mapping[str, Any]) -> dict[tuple[int, ...], Row]:
    """Return type and value of each OID, from what `ports.read` has of the ports."""
    table: dict[tuple[int, ...], Row] = {}
    for index, (name, port) in enumerate(ports.items(), 1):
        columns: dict[tuple[int, ...], Row] = {column: (kind, 0) for column, kind in _ZERO.items()}
        columns |= {(*_IF, 1): ("integer", index), (*_IF, 2): ("string", name), (*_IF, 3): ("integer", 6)}
        columns |= {(*_IF, 5): ("gauge", port["rate_bps"]), (*_IF, 8): ("integer", 1)}  # ifSpeed, ifOperStatus
        columns |= {(*_IFX, 1): ("string", name), (*_IFX, 15): ("gauge", port["rate_bps"] // 10**6)}
        for way, first, wide, pause in _WAYS:
            counts = port[way]
            columns[*_IF, first] = "counter", counts["octets"] % 2**32
            columns[*_IF, first + 1] = "counter", counts["unicast"] % 2**32
            columns[*_IF, first + 2] = "counter", (counts["multicast"] + counts["broadcast"]) % 2**32
            columns[*_IF, first + 3] = "counter", counts["discards"] % 2**32
            for place, kind in enumerate(("octets", *_KINDS)):
                columns[*_IFX, wide + place] = "counter64", counts[kind]
            columns[*_PAUSE, pause] = "counter", counts["pause"] % 2**32
            columns[*_PAUSE, pause + 2] = "counter64", counts["pause"]
        table |= {(*column, index): row for column, row in columns.items()}
    return table


def answers(control: Path) -> Iterator[str]:
    """Yield the answer to each request on standard input: OID, type and value, or NONE."""
    table: dict[tuple[int, ...], Row] = {}
    read_s = 0.0
    for line in sys.stdin:
        verb = line.strip()
        if verb == "PING":
            yield "PONG"
        elif verb in ("get", "getnext"):
            asked = tuple(int(part) for part in sys.stdin.readline().strip().strip(".").split("."))
            if time.monotonic() - read_s > _SAME_S:
                table, read_s = rows(read(control)["ports"]), time.monotonic()
            found = asked if verb == "get" else min((oid for oid in table if oid > asked), default=())
            kind, value = table.get(found, ("", ""))
            yield f".{'.'.join(map(str, found))}\n{kind}\n{value}" if kind else "NONE"
        else:
            return


if __name__ == "__main__":
    for answer in answers(Path(sys.argv[1])):
        print(answer, flush=True)
