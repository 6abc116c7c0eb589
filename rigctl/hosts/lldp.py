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
    port: str | None  # interface name (ifName) of the device's port; None: the device announces another kind of id
    is_switch: bool | None  # whether the device bridges or routes; None: it reports no capabilities
    port_id: str | None = None  # id of the port, whatever its kind: often a number or a MAC address
    number: int | None = None  # the id, if it is a number that the device chose: often the interface index
    description: str | None = None  # text on the port, which may be an interface name, or what somebody has typed

    @property
    def port_text(self) -> str | None:
        """Return the port as people may recognize it: its name, or id and description, as in `513 (server)`."""
        described = f" ({self.description})" if self.description and self.description != self.port_id else ""
        return self.port or (f"{self.port_id}{described}" if self.port_id else self.description)


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
    text, kind = _text(identity), identity.get("type")
    is_number = kind == "local" and text is not None and text.isascii() and text.isdigit() and len(text) <= 10
    return Neighbour(
        interface=printable(interface)[:_MOST_TEXT],
        chassis=name,
        chassis_id=_text(chassis.get("id")),
        management=_text(chassis.get("mgmt-ip")),
        port=text if kind == "ifname" else None,
        is_switch=_is_switch(chassis.get("capability")),
        port_id=text,
        number=int(text) if is_number and text is not None else None,
        description=_text(port.get("descr")),
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
