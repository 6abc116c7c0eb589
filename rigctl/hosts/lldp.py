"""The neighbours of a host by LLDP (IEEE 802.1AB), from the JSON output of lldpcli(8).

lldpcli prints a list of one element as the element itself, and a named object as {name: object}.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from rigctl.base.texts import printable
from rigctl.hosts.fact import SUDO_LIMIT, Fact, everywhere

# Only root and lldpd's group may use lldpd's socket, so sudo is tried second.
_COMMAND: Final = (
    f"command -v lldpcli >/dev/null || echo absent; {SUDO_LIMIT}; "
    "lldpcli -f json show neighbors || $limit sudo -n lldpcli -f json show neighbors || echo refused"
)
_MOST_TEXT: Final = 200


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The device at the other end of the cable of `interface`, as the device describes itself."""

    interface: str
    chassis: str | None  # the device's name (sysName)
    chassis_id: str | None  # the device's id, mostly a MAC address
    management: str | None  # management address of the device
    port: str | None  # the device's port, if possible by interface name
    is_switch: bool | None  # whether the device bridges or routes; None: it reports no capabilities


def parse_neighbours(output: str) -> tuple[tuple[Neighbour, ...], str | None]:
    """Return the neighbours in the output of lldpcli(8), and why they are unknown: "absent", "refused" or None."""
    at = output.find("{")
    if at < 0:
        return (), "absent" if "absent" in output else "refused"
    try:
        document, _ = json.JSONDecoder().raw_decode(output[at:])
    except (ValueError, RecursionError):
        return (), "refused"
    entries = [entry for lldp in _dicts(document.get("lldp")) for entry in _dicts(lldp.get("interface"))]
    named = [(name, section) for entry in entries for name, sections in entry.items() for section in _dicts(sections)]
    return tuple(_neighbour(name, section) for name, section in named), None


def _neighbour(interface: str, section: dict[str, Any]) -> Neighbour:
    name, chassis = _chassis(next(_dicts(section.get("chassis")), {}))
    port = next(_dicts(section.get("port")), {})
    identity = next(_dicts(port.get("id")), {})
    # If a port's id is an address or a number, the port's description mostly has the interface's name.
    by_name = _text(identity) if identity.get("type") in ("ifname", "ifalias") else None
    number = _text(identity) if identity.get("type") not in ("mac", "ip") else None
    return Neighbour(
        interface=printable(interface)[:_MOST_TEXT],
        chassis=name,
        chassis_id=_text(chassis.get("id")),
        management=_text(chassis.get("mgmt-ip")),
        port=by_name or _text(port.get("descr")) or number,
        is_switch=_is_switch(chassis.get("capability")),
    )


def _chassis(chassis: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """Return the name and the fields of a chassis: {name: fields}, or only the fields if it has no name."""
    if "id" in chassis:
        return None, chassis
    for name, section in chassis.items():
        if isinstance(section, dict):
            return printable(name)[:_MOST_TEXT] or None, section
    return None, {}


def _is_switch(value: object) -> bool | None:
    enabled = {str(part.get("type")): bool(part.get("enabled")) for part in _dicts(value)}
    return enabled.get("Bridge", False) or enabled.get("Router", False) if enabled else None


def _text(value: object) -> str | None:
    """Return the first text in `value`: a text, {"value": text}, or a list of both; None if there is none."""
    for part in _as_list(value):
        text = part.get("value") if isinstance(part, dict) else part
        if isinstance(text, str | int) and str(text).strip():
            return printable(str(text).strip())[:_MOST_TEXT]
    return None


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _dicts(value: object) -> Iterator[dict[str, Any]]:
    return (part for part in _as_list(value) if isinstance(part, dict))


NEIGHBOURS: Final = everywhere(Fact(_COMMAND, parse_neighbours))
