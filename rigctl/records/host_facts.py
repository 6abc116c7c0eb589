"""The records of host facts: the type that a stored value has, and the title on pages. `rigctl.hosts` reads the values.

A fact that only a check asks for has no record, because it is not stored. Neither have the facts `condition NAME`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFact:
    """A host fact that is stored with every run. Without a title, pages have its key."""

    key: str
    kind: type  # of the value, which may also be None
    title: str | None = None
    parts: Mapping[str, str] = field(default_factory=dict)  # titles of parts of a dict, by their keys

    @property
    def titles(self) -> dict[str, str]:
        """Titles by the names of the fact and its parts, as in `rings: rx`."""
        own = {self.key: self.title} if self.title is not None else {}
        return own | {f"{self.key}: {part}": title for part, title in self.parts.items()}


_RECORDS: Final = (
    HostFact(key="pi_model", kind=str, title="Model"),
    HostFact(key="kernel", kind=str, title="Kernel"),
    HostFact(key="os", kind=str, title="System"),
    HostFact(key="cpu_model", kind=str, title="CPU"),
    HostFact(key="cpus", kind=int, title="CPUs"),
    HostFact(key="governor", kind=str, title="CPU governor"),
    HostFact(key="power_plan", kind=str, title="Power plan"),
    HostFact(key="idle_state", kind=str, title="Deepest idle state"),
    HostFact(key="idle_latency_us", kind=int, title="Its exit latency"),
    HostFact(key="memory_bytes", kind=int, title="Memory"),
    HostFact(key="driver", kind=str, title="NIC driver"),
    HostFact(key="driver_version", kind=str, title="Its version"),
    HostFact(key="driver_date", kind=str, title="Its date"),
    HostFact(key="driver_provider", kind=str, title="Its provider"),
    HostFact(key="firmware", kind=str, title="NIC firmware"),
    HostFact(key="numa_node", kind=int, title="NUMA node of the NIC"),
    HostFact(key="interrupt_processors", kind=str, title="Processors of its interrupts"),
    HostFact(key="rx_queues", kind=int, title="Receive queues"),
    HostFact(key="rss", kind=bool, title="Receive-side scaling"),
    HostFact(key="interrupt_moderation", kind=bool, title="Interrupt moderation"),
    HostFact(key="rings", kind=dict, parts={"rx": "Receive buffers", "tx": "Transmit buffers"}),
    HostFact(key="card_mtu", kind=int, title="MTU that the NIC takes"),
    HostFact(key="interface", kind=str, title="Interface"),
    HostFact(key="speed_bps", kind=int, title="Link speed"),
    HostFact(key="duplex", kind=str, title="Duplex"),
    HostFact(key="pause", kind=dict, parts={"rx": "Heeds pause frames", "tx": "Sends pause frames"}),
    HostFact(key="eee", kind=str, title="Energy-Efficient Ethernet"),
    HostFact(key="cards", kind=list, title="Cards below it"),
    HostFact(
        key="bond",
        kind=dict,
        title="Bond",
        parts={
            "mode": "Bond mode",
            "hash": "Its hash",
            "cards": "Its cards with a link",
            "card_bps": "Speed of one card",
            "total_bps": "Speed of its cards",
        },
    ),
    HostFact(key="vlan_tags", kind=int, title="VLAN tags"),
    HostFact(key="mtu", kind=int, title="MTU"),
    HostFact(key="mac", kind=str, title="MAC address"),
    HostFact(key="addresses", kind=list, title="Addresses"),
    HostFact(key="data_address", kind=str, title="Data address"),
    HostFact(key="virtual", kind=bool, title="Virtual interface"),
    HostFact(key="hypervisor", kind=bool, title="Virtual machine"),
    HostFact(key="emulated", kind=bool, title="Emulated"),
    HostFact(key="throttled", kind=list, title="Throttled"),
    HostFact(key="notes", kind=list, title="Notes"),
    HostFact(key="boot_id", kind=str),
    HostFact(key="ssh_address", kind=str),
    HostFact(key="offloads", kind=dict),
    HostFact(key="sysctls", kind=dict),
    HostFact(key="numa_processors", kind=dict),
    HostFact(key="iperf3", kind=str),
)
HOST_FACTS: Final[Mapping[str, HostFact]] = {fact.key: fact for fact in _RECORDS}
"""Records by key, in the order of pages."""
