"""Datagrams that a namespace drops, and some that only look like a flow's."""

import json
import socket
from pathlib import Path

from lab import Lab


def drop(lab: Lab, rule: str) -> None:
    hook = "type filter hook input priority 0"
    lab.run("nft", f"table inet loss {{ chain some {{ {hook}; meta l4proto udp {rule} counter drop\n}}\n}}\n")


def dropped(lab: Lab) -> int:
    listed = json.loads(lab.run("nft", "-j", "list", "table", "inet", "loss"))["nftables"]
    (rule,) = (one["rule"] for one in listed if "rule" in one)
    return next(int(part["counter"]["packets"]) for part in rule["expr"] if "counter" in part)


def beside_the_sender(port: int) -> socket.socket:
    """A socket whose datagrams have the addresses and ports of the flow into `port`."""
    lines = [line.split() for line in Path("/proc/net/udp").read_text().splitlines()[1:]]
    (local,) = [int(words[1].rpartition(":")[2], 16) for words in lines if words[2].endswith(f":{port:04X}")]
    forger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    forger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    forger.bind(("127.0.0.1", local))
    forger.connect(("127.0.0.1", port))
    return forger
