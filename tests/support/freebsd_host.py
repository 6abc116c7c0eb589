"""Command output of a FreeBSD host, written from the manual pages and the Handbook, not recorded on a host."""

import re
from pathlib import Path

_TEXTS = re.split(r"^\[\w+\]\n", Path(__file__).with_suffix(".txt").read_text(), flags=re.MULTILINE)
_, IFCONFIG, NO_CARRIER, PCICONF, CC_TABLE, _ROUTED, NETSTAT, OTHERS = _TEXTS
ROUTED = _ROUTED.removesuffix("\n")
GIGABIT = IFCONFIG.replace("10Gbase-T <full-duplex,rxpause,txpause>", "1000baseT <full-duplex>")
BY_GATEWAY = ROUTED.replace("fib: 0", "gateway: 192.168.1.1 fib: 0").replace("ix0", "em0").replace("9000", "1500")
ANSWER = {
    "kernel": "FreeBSD 14.1-RELEASE amd64",
    "hostname": "freenas.lab",
    "os": 'NAME=FreeBSD\nPRETTY_NAME="FreeBSD 14.1-RELEASE"',
    "hypervisor": "none",
    "boot_id": "4c4c4544-0042-3510-8054-b7c04f563332",
    "namespace": "{ sec = 1795100000, usec = 12 } Thu Nov 19 14:53:20 2026",
    "ssh_address": "192.168.1.2 50122 192.168.1.20 22",
    "uid": "0",
    "has_ip": "/sbin/ifconfig",
    "routes": NETSTAT,
    "interfaces": IFCONFIG + NO_CARRIER + OTHERS,
}


def answered(**outputs: str) -> str:
    """Return a node's output for `command_for`, after a banner."""
    return "Welcome to pi1!\n" + "".join(f"\n@@rigctl {key}\n{text}\n" for key, text in outputs.items())


def freebsd_answer(**changed: str) -> str:
    return answered(**(ANSWER | {"freebsd": ""} | changed))
