"""Simulated hosts, as `rig init` finds them: tests give a few values per interface; the rest is usual."""

from dataclasses import replace
from ipaddress import ip_interface, ip_network
from typing import Any

from rigctl.discovery.draft import HostAnswer
from rigctl.discovery.targets import targets_of
from rigctl.hosts.candidate import Candidate
from rigctl.hosts.lldp import Neighbour
from rigctl.hosts.network import HostInterface, TableRoute

G = 10**9
UNKNOWN: dict[str, Any] = dict.fromkeys(("hostname", "identity", "ssh_address"))
KNOWN: dict[str, Any] = {"is_virtual": False, "sudo": "granted", "has_ip": True}
USUAL = Candidate(machine="x86_64", system="Linux", os="Debian GNU/Linux 12 (bookworm)", **UNKNOWN, **KNOWN)


def nic(name: str, *addresses: str, speed_bps: int | None = G, **fields: Any) -> HostInterface:
    base = HostInterface(name, True, speed_bps, "full", 1500, None, "e1000e", True)
    return replace(base, addresses=tuple(map(ip_interface, addresses)), **fields)


def soft(name: str, *addresses: str, below: tuple[str, ...] = (), **fields: Any) -> HostInterface:
    """Return a software interface: a bridge, a bond or a tunnel."""
    return nic(name, *addresses, speed_bps=None, duplex=None, driver=None, is_hardware=False, below=below, **fields)


def host(
    *cards: HostInterface, ssh: str | None = None, routes: dict[str, str] | None = None, **fields: Any
) -> Candidate:
    ways = tuple(TableRoute(ip_network(to), over) for to, over in (routes or {}).items())
    return replace(USUAL, interfaces={card.name: card for card in cards}, ssh_address=ssh, routes=ways, **fields)


def asked(text: str, found: Candidate | None = None, reason: str | None = None) -> HostAnswer:
    (target,) = targets_of([text])
    return HostAnswer(target, found, reason)


def hears(interface: str, chassis: str, port: str, mac: str = "52:00:00:00:00:01", is_switch: bool = True) -> Neighbour:
    return Neighbour(interface, chassis, mac, "10.0.0.254", port, is_switch)


def simple(number: int, **fields: Any) -> Candidate:
    """Return a host with one card in 10.0.0.0/24. Address and MAC end with `number`."""
    card = nic("eth0", f"10.0.0.{number}/24", mac=f"02:00:00:00:00:{number:02x}", **fields.pop("card", {}))
    return host(card, ssh=f"10.0.0.{number}", **fields)
