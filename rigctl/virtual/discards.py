"""Frames that a virtual switch dropped on their way out: `python -m rigctl.virtual.discards`, asked by snmpd.

A switch counts what overflows a port's queue in ifOutDiscards (RFC 2863). Linux does not: its interface counts only
what the driver drops, and the queue (tbf) keeps a count of its own. snmpd asks this program for that one column
(pass_persist in snmpd.conf(5)); the program adds the two. It ends with snmpd, whose pipe it reads.
"""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

OUT_DISCARDS: Final = (1, 3, 6, 1, 2, 1, 2, 2, 1, 19)
_COLUMN: Final = "." + ".".join(map(str, OUT_DISCARDS))
_MODULO: Final = 2**32  # a Counter32
_SAME_S: Final = 0.005
"""One request asks for many ports, one after the other: they get numbers of one reading."""


def main() -> None:
    read_at, dropped = 0.0, Counter[int]()
    while verb := sys.stdin.readline().strip().lower():
        if verb == "ping":
            print("PONG", flush=True)
            continue
        oid = sys.stdin.readline().strip()
        if time.monotonic() - read_at > _SAME_S:
            dropped = counted(_shown(["ip", "-s", "-j", "link"]), _shown(["tc", "-s", "-j", "qdisc"]))
            read_at = time.monotonic()
        print(answer(verb, oid, dropped), flush=True)


def answer(verb: str, oid: str, dropped: Mapping[int, int]) -> str:
    """Return the answer to `get` or `getnext` for an OID: the object with its type and value, or NONE."""
    index = _index(oid)
    if index is None:
        return "NONE"
    if verb == "getnext":
        index = min((other for other in dropped if other > index), default=0)
    if verb not in {"get", "getnext"} or index not in dropped:
        return "NONE"
    return f"{_COLUMN}.{index}\ncounter\n{dropped[index] % _MODULO}"


def _index(oid: str) -> int | None:
    """Return the interface an OID of the column is about, 0 for the column itself; None for any other OID."""
    if oid == _COLUMN:
        return 0
    column, _, last = oid.partition(f"{_COLUMN}.")
    return int(last) if column == "" and last.isascii() and last.isdigit() else None


def counted(links: list[dict[str, Any]], queues: list[dict[str, Any]]) -> Counter[int]:
    """Return the dropped frames by interface index, from what `ip -s link` and `tc -s qdisc` print as JSON."""
    in_queue = {queue["dev"]: queue["drops"] for queue in queues if queue.get("root") and "drops" in queue}
    return Counter(
        {link["ifindex"]: link["stats64"]["tx"]["dropped"] + in_queue.get(link["ifname"], 0) for link in links}
    )


def _shown(command: list[str]) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return shown


if __name__ == "__main__":
    main()
