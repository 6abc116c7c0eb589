"""Which switch port a host is connected to, as LLDP (IEEE 802.1AB) has it: lldpd's own command and its JSON.

`lldpcli -f json` writes a list of one as the one, and a name as a key; `-f json0` writes every element as a list. Both
forms, of any version, are read here.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from rigctl.base.texts import printable

# lldpd's socket belongs to root and its own group. `$limit` bounds how long sudo may take.
COMMAND: Final = (
    "command -v lldpcli >/dev/null || echo absent; "
    "lldpcli -f json show neighbors || $limit sudo -n lldpcli -f json show neighbors || echo refused"
)
_MOST_TEXT: Final = 200


@dataclass(frozen=True, slots=True)
class Neighbour:
    """What says of itself that it is at the other end of `interface`'s cable."""

    interface: str
    chassis: str | None  # its name (sysName)
    chassis_id: str | None  # a MAC address, as most have it
    management: str | None  # an address to ask it by
    port: str | None  # its port, by interface name where it says so
    port_description: str | None
    is_switch: bool | None  # by its enabled capabilities; None: it names none


def neighbours(output: str) -> tuple[tuple[Neighbour, ...], str | None]:
    """The neighbours in the output of `COMMAND`; else why there are none: "absent" (no lldpd), or "refused"."""
    at = output.find("{")
    if at < 0:
        return (), "absent" if "absent" in output else "refused"
    try:
        document, _ = json.JSONDecoder().raw_decode(output[at:])
    except (ValueError, RecursionError):
        return (), "refused"
    found: list[Neighbour] = []
    for lldp in _listed(document.get("lldp")):
        for entry in _listed(lldp.get("interface") if isinstance(lldp, dict) else None):
            found += _neighbours(entry)
    return tuple(found), None


def _neighbours(entry: object) -> Iterator[Neighbour]:
    if not isinstance(entry, dict):
        return
    if "name" in entry and isinstance(entry["name"], str):  # json0
        yield _neighbour(entry["name"], entry)
        return
    for name, sections in entry.items():
        for section in _listed(sections):
            if isinstance(section, dict):
                yield _neighbour(name, section)


def _neighbour(interface: str, section: dict[str, Any]) -> Neighbour:
    name, chassis = _named(next(iter(_listed(section.get("chassis"))), {}))
    port = next((part for part in _listed(section.get("port")) if isinstance(part, dict)), {})
    kind, identity = _identity(port.get("id"))
    description = _text(port.get("descr"))
    # A port's id may be its MAC or a number (locally assigned): then its description is the interface's name.
    by_name = identity if kind in ("ifname", "ifalias") else None
    return Neighbour(
        interface=printable(interface)[:_MOST_TEXT],
        chassis=name,
        chassis_id=_identity(chassis.get("id"))[1],
        management=_text(chassis.get("mgmt-ip")),
        port=by_name or description or identity,
        port_description=description,
        is_switch=_is_switch(chassis.get("capability")),
    )


def _named(chassis: object) -> tuple[str | None, dict[str, Any]]:
    """The chassis' name and what it says: the name is a key above it (json), or a value in it (json0), or missing."""
    if not isinstance(chassis, dict):
        return None, {}
    if "id" in chassis:
        return _text(chassis.get("name")), chassis
    for name, section in chassis.items():
        if isinstance(section, dict):
            return printable(name)[:_MOST_TEXT] or None, section
    return None, {}


def _identity(value: object) -> tuple[str | None, str | None]:
    for part in _listed(value):
        if isinstance(part, dict):
            kind = part.get("type")
            return (kind if isinstance(kind, str) else None), _text(part)
    return None, None


def _is_switch(value: object) -> bool | None:
    said = {str(part.get("type")): bool(part.get("enabled")) for part in _listed(value) if isinstance(part, dict)}
    return None if not said else said.get("Bridge", False) or said.get("Router", False)


def _text(value: object) -> str | None:
    """A text, bare or as {"value": text}; the first of a list."""
    for part in _listed(value):
        text = part.get("value") if isinstance(part, dict) else part
        if isinstance(text, str | int) and str(text).strip():
            return printable(str(text).strip())[:_MOST_TEXT]
    return None


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
