"""The neighbours of a host by LLDP (IEEE 802.1AB).

They come from lldpd's own command as JSON. It writes a list of one element as the element, and a name as a key.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from rigctl.base.texts import printable
from rigctl.hosts.fact import LIMIT, Fact, everywhere

# lldpd's socket belongs to root and its own group.
_COMMAND: Final = (
    f"command -v lldpcli >/dev/null || echo absent; {LIMIT}; "
    "lldpcli -f json show neighbors || $limit sudo -n lldpcli -f json show neighbors || echo refused"
)
_MOST_TEXT: Final = 200


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The device at the other end of `interface`'s cable, as it describes itself."""

    interface: str
    chassis: str | None  # its name (sysName)
    chassis_id: str | None  # a MAC address, as most have it
    management: str | None  # an address to ask it by
    port: str | None  # its port, by interface name where it says so
    is_switch: bool | None  # by the capabilities that it enables; None: it reports none


def parse_neighbours(output: str) -> tuple[tuple[Neighbour, ...], str | None]:
    """Return the neighbours in what lldpcli(8) says; else why there are none: "absent" or "refused"."""
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
    # A port's id may be its MAC or a number (locally assigned): then its description is the interface's name.
    by_name = _text(identity) if identity.get("type") in ("ifname", "ifalias") else None
    return Neighbour(
        interface=printable(interface)[:_MOST_TEXT],
        chassis=name,
        chassis_id=_text(chassis.get("id")),
        management=_text(chassis.get("mgmt-ip")),
        port=by_name or _text(port.get("descr")) or _text(identity),
        is_switch=_is_switch(chassis.get("capability")),
    )


def _chassis(chassis: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """Return name and section of a chassis. The name is a key above the section, if it has one."""
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
    """Return the first text in `value`, bare or as {"value": text}."""
    for part in _listed(value):
        text = part.get("value") if isinstance(part, dict) else part
        if isinstance(text, str | int) and str(text).strip():
            return printable(str(text).strip())[:_MOST_TEXT]
    return None


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _dicts(value: object) -> Iterator[dict[str, Any]]:
    return (part for part in _listed(value) if isinstance(part, dict))


NEIGHBOURS: Final = everywhere(Fact(_COMMAND, parse_neighbours))
