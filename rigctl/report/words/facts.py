"""Host facts in words: their titles and values."""

from typing import Final

from rigctl.base.units import format_rate
from rigctl.report.words.text import UNKNOWN

# What a fact is called on the page; others are shown under their own names.
FACT_TITLES: Final = {
    "pi_model": "Model",
    "kernel": "Kernel",
    "os": "System",
    "cpu_model": "CPU",
    "cpus": "CPUs",
    "governor": "CPU governor",
    "memory_bytes": "Memory",
    "driver": "NIC driver",
    "firmware": "NIC firmware",
    "interface": "Interface",
    "speed_bps": "Link speed",
    "duplex": "Duplex",
    "mtu": "MTU",
    "data_address": "Data address",
    "virtual": "Virtual interface",
    "hypervisor": "Virtual machine",
    "emulated": "Emulated",
    "throttled": "Throttled",
    "notes": "Notes",
}


def fact_text(name: str, value: object) -> str:
    """A value as the page prints it."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        words = ("on", "off") if ": " in name else ("yes", "no")
        return words[0] if value else words[1]
    if isinstance(value, list | tuple):
        # No notes is nothing to say; never throttled is worth saying.
        return ", ".join(str(item) for item in value) or (UNKNOWN if name == "notes" else "none")
    if isinstance(value, int | float) and name.endswith("_bps"):
        return format_rate(float(value))
    if isinstance(value, int | float) and name.endswith("_bytes"):
        return f"{value / 2**20:,.0f} MiB"
    return " ".join(str(value).split())
