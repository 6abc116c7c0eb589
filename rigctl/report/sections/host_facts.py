"""Host facts for people: a row per fact, a column per node; what is the same on all nodes is said once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rigctl.records import Facts
from rigctl.report.text import UNKNOWN
from rigctl.units import format_rate

# What a fact is called on the page; others are shown under their own names.
_TITLES: Final = {
    "pi_model": "Model",
    "kernel": "Kernel",
    "os": "System",
    "cpu_model": "CPU",
    "cpus": "CPUs",
    "governor": "CPU governor",
    "memory_bytes": "Memory",
    "driver": "NIC driver",
    "interface": "Interface",
    "speed_bps": "Link speed",
    "duplex": "Duplex",
    "mtu": "MTU",
    "data_address": "Data address",
    "virtual": "Virtual interface",
    "hypervisor": "Virtual machine",
    "throttled": "Throttled",
    "notes": "Notes",
}
# The page is made to be published: what tells one machine from all others in the world stays in the store.
_HIDDEN: Final = frozenset({"boot_id", "mac", "addresses"})


@dataclass(frozen=True, slots=True)
class FactRow:
    """One fact. `same` is its value where all nodes agree; else `values` has one per node."""

    title: str
    same: str | None
    values: tuple[str, ...]


def fact_rows(facts: Mapping[str, Facts]) -> list[FactRow]:
    """The facts of all nodes: those with a name of their own first, then sysctls, offloads and the rest."""
    flat = [dict(_flattened(known)) for known in facts.values()]
    names = list(dict.fromkeys(name for known in flat for name in known))
    order = {name: at for at, name in enumerate(_TITLES)}
    names.sort(key=lambda name: (order.get(name, len(order)), name if name not in order else ""))
    rows = []
    for name in names:
        values = tuple(_text(name, known.get(name)) for known in flat)
        if any(value != UNKNOWN for value in values):
            same = values[0] if len(set(values)) == 1 else None
            rows.append(FactRow(_TITLES.get(name, name), same, values))
    return rows


def _flattened(facts: Facts, prefix: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in facts.items():
        if name in _HIDDEN:
            continue
        if isinstance(value, dict):
            # A sysctl's own name says what it is; an offload's does not.
            inner = "" if name == "sysctls" else f"{name}: "
            found.extend(_flattened(value, prefix + inner))
        else:
            found.append((prefix + name, value))
    return found


def _text(name: str, value: object) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        words = ("on", "off") if ": " in name else ("yes", "no")
        return words[0] if value else words[1]
    if isinstance(value, list):
        # No notes is nothing to say; never throttled is worth saying.
        return ", ".join(str(one) for one in value) or (UNKNOWN if name == "notes" else "none")
    if isinstance(value, int | float) and name.endswith("_bps"):
        return format_rate(float(value))
    if isinstance(value, int | float) and name.endswith("_bytes"):
        return f"{value / 2**20:,.0f} MiB"
    return " ".join(str(value).split())
