"""Adds a bridge's forwarding table to snmpd (pass_persist in snmpd.conf(5)), as BRIDGE-MIB or Q-BRIDGE-MIB.

net-snmp has no module for these MIBs. `python bridge_mib.py BRIDGE q|d` serves the forwarding table of BRIDGE by VLAN
(q: dot1qTpFdbPort) or by address alone (d: dot1dTpFdbPort).
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

BASE_PORT = (1, 3, 6, 1, 2, 1, 17, 1, 4, 1, 2)
BY_MAC = (1, 3, 6, 1, 2, 1, 17, 4, 3, 1, 2)
BY_VLAN = (1, 3, 6, 1, 2, 1, 17, 7, 1, 2, 2, 1, 2)


def rows(bridge: str, kind: str) -> dict[tuple[int, ...], int]:
    table: dict[tuple[int, ...], int] = {}
    numbers: dict[str, int] = {}
    for path in Path(f"/sys/class/net/{bridge}/brif").iterdir():
        numbers[path.name] = int((path / "port_no").read_text(), 16)
        table[*BASE_PORT, numbers[path.name]] = int(Path(f"/sys/class/net/{path.name}/ifindex").read_text())
    listed = subprocess.run(["bridge", "-j", "fdb", "show", "br", bridge], check=True, capture_output=True, text=True)
    for entry in json.loads(listed.stdout):
        # Only learnt and static addresses; without the ports' addresses and multicast, which are permanent.
        if entry["ifname"] in numbers and entry.get("state") != "permanent":
            mac = tuple(int(part, 16) for part in entry["mac"].split(":"))
            table[(*BY_VLAN, 1, *mac) if kind == "q" else (*BY_MAC, *mac)] = numbers[entry["ifname"]]
    return table


def answers(bridge: str, kind: str) -> Iterator[str]:
    """Yield the answer to each request on standard input. The table is read again only when a walk begins."""
    table: dict[tuple[int, ...], int] = {}
    for line in sys.stdin:
        verb = line.strip()
        if verb == "PING":
            yield "PONG"
        elif verb in ("get", "getnext"):
            asked = tuple(int(part) for part in sys.stdin.readline().strip().strip(".").split("."))
            if asked not in table:
                table = rows(bridge, kind)
            found = asked if verb == "get" else min((oid for oid in table if oid > asked), default=())
            known = found in table
            yield f".{'.'.join(map(str, found))}\ninteger\n{table[found]}" if known else "NONE"
        else:
            return


if __name__ == "__main__":
    for answer in answers(sys.argv[1], sys.argv[2]):
        print(answer, flush=True)
