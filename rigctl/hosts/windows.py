"""Host facts of a Windows node, from its agent (experimental: tested under Wine, never on Windows).

The keys are those of other systems, and a few more (docs/reference/host-facts.md). Facts that need a shell are unknown:
routes, other traffic, offloads, interrupts (docs/reference/windows.md).
"""

from contextlib import suppress
from ipaddress import ip_interface
from typing import Final

from rigctl.hosts.candidate import Candidate
from rigctl.hosts.network import Held, HostInterface
from rigctl.protocol.host_facts import HostCard, HostReply
from rigctl.records import Facts
from rigctl.rig.inventory import Node

CHECKED: Final = ("up", "carrier", "administrator", "firewall")
"""Keys of facts that only a check reads."""
_ETHERNET: Final = 14
"""Bytes of the Ethernet header, which `*JumboPacket` counts and an MTU does not."""
_LEAST_FRAME: Final = 1514


def read_host(said: HostReply, node: Node, machine: str) -> Facts:
    """Return the facts of a Windows host and its data interface by key. Unknown facts are None."""
    card = _data_card(said, node)
    found: Facts = {
        "kernel": said.system and f"{said.system} {machine}",
        "os": said.system,
        "cpu_model": said.cpu_model,
        "hypervisor": said.hypervisor,
        "cpus": said.cpus,
        "memory_bytes": said.memory_bytes,
        "boot_id": said.boot_id,
        "power_plan": said.power_plan,
        "administrator": said.administrator,
        "firewall": {name: on for name, on in said.firewall.items() if on is not None} or None,
        "interface": None,
    }
    return found if card is None else found | _facts_of_card(card)


def read_windows_candidate(said: HostReply, machine: str, ssh_address: str) -> Candidate:
    """Return what `rig init` knows about a Windows host: its interfaces, not its routes and its switch port."""
    return Candidate(
        machine=machine,
        system="Windows",
        hostname=said.hostname,
        os=said.system,
        is_virtual=said.hypervisor,
        identity=(said.host_id, said.boot_id) if said.host_id and said.boot_id else None,
        ssh_address=ssh_address,
        sudo="absent",
        has_ip=True,
        interfaces={card.name: _interface_of(card) for card in said.interfaces},
        lldp="absent",
    )


def _interface_of(card: HostCard) -> HostInterface:
    return HostInterface(
        name=card.name,
        is_up=bool(card.up),
        speed_bps=card.speed_bps if card.hardware else None,
        duplex=None,
        mtu=card.mtu,
        mac=card.mac,
        driver=card.driver,
        is_hardware=bool(card.hardware),
        addresses=tuple(_global_addresses(card)),
    )


def _facts_of_card(card: HostCard) -> Facts:
    interface = _interface_of(card)
    own = sorted(interface.addresses, key=lambda each: each.version)
    return {
        "interface": card.name,
        "addresses": [str(each.ip) for each in own] or None,
        "driver": card.driver,
        "driver_date": card.driver_date,
        "driver_version": card.driver_version,
        "driver_provider": card.driver_provider,
        **_settings_of_card(card),
        "speed_bps": interface.speed_bps,
        "mtu": card.mtu,
        "mac": card.mac,
        "virtual": None if card.hardware is None else not card.hardware,
        "up": card.up,
        "carrier": None if card.up is None else int(card.up),
    }


def _settings_of_card(card: HostCard) -> Facts:
    """Return the driver's settings, which rigctl reads and does not change."""
    rings = {"rx": card.receive_buffers, "tx": card.transmit_buffers}
    jumbo = card.jumbo_packet or 0
    return {
        "interrupt_moderation": None if card.interrupt_moderation is None else card.interrupt_moderation > 0,
        "rss": None if card.rss is None else card.rss > 0,
        "rx_queues": 1 if card.rss == 0 else card.rss_queues,
        "rings": {way: size for way, size in rings.items() if size is not None} or None,
        "card_mtu": jumbo - _ETHERNET if jumbo >= _LEAST_FRAME else None,
    }


def _data_card(said: HostReply, node: Node) -> HostCard | None:
    """Return the interface that the rig file names, or else the one with the data address; None if not found."""
    if node.data_interface is not None:
        return next((card for card in said.interfaces if card.name == node.data_interface), None)
    address = node.data_address or node.address
    holders = (card for card in said.interfaces if any(address == each.split("/")[0] for each in card.addresses))
    return next(holders, None)


def _global_addresses(card: HostCard) -> list[Held]:
    found = list[Held]()
    for text in card.addresses:
        with suppress(ValueError):
            found.append(ip_interface(text))
    return [held for held in found if not held.ip.is_link_local]
