"""Frames that a virtual switch dropped on their way out: `python -m rigctl.virtual.discards`, asked by snmpd.

A switch counts what overflows a port's queue in ifOutDiscards (RFC 2863). Linux doesn't: its interface counts only what
the driver drops, the queue (tbf) keeps its own count. snmpd asks this program for that one column (pass_persist in
snmpd.conf(5)), which adds the two. It ends with snmpd, whose pipe it reads.
"""

import socket
import sys
import time
from collections import Counter
from collections.abc import Mapping
from typing import Final

from rigctl.virtual.netlink import ask_drops, drops, is_last

OUT_DISCARDS: Final = (1, 3, 6, 1, 2, 1, 2, 2, 1, 19)
_COLUMN: Final = "." + ".".join(map(str, OUT_DISCARDS))
_MODULO: Final = 2**32  # a Counter32
_SAME_S: Final = 0.005
"""One request asks for many ports, one after the other: they get numbers of one reading."""
_MOST_BYTES: Final = 1 << 20


def main() -> None:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.bind((0, 0))
        read_at, counted = 0.0, Counter[int]()
        while verb := sys.stdin.readline().strip().lower():
            if verb == "ping":
                print("PONG", flush=True)
                continue
            oid = sys.stdin.readline().strip()
            if time.monotonic() - read_at > _SAME_S:
                read_at, counted = time.monotonic(), _read(kernel)
            print(answer(verb, oid, counted), flush=True)


def answer(verb: str, oid: str, counted: Mapping[int, int]) -> str:
    """The answer to `get` or `getnext` for an OID: the object with its type and value, or NONE."""
    index = _index(oid)
    if index is None:
        return "NONE"
    if verb == "getnext":
        index = min((other for other in counted if other > index), default=0)
    if verb not in {"get", "getnext"} or index not in counted:
        return "NONE"
    return f"{_COLUMN}.{index}\ncounter\n{counted[index] % _MODULO}"


def _index(oid: str) -> int | None:
    """The interface an OID of the column is about, 0 for the column itself; None for any other OID."""
    if oid == _COLUMN:
        return 0
    column, _, last = oid.partition(f"{_COLUMN}.")
    return int(last) if column == "" and last.isascii() and last.isdigit() else None


def _read(kernel: socket.socket) -> Counter[int]:
    counted = Counter[int]()
    for question in ask_drops():
        kernel.send(question)
        last = False
        while not last:
            data = kernel.recv(_MOST_BYTES)
            for index, number in drops(data):
                counted[index] += number
            last = is_last(data)
    return counted


if __name__ == "__main__":
    main()
