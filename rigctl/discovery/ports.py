"""The switch port of each node: by LLDP if the node hears a switch, else by forwarding tables.

A port with many learnt addresses, or with two of the nodes, leads to another switch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.discovery.paths import with_those_below
from rigctl.probe.network import Interface, Neighbour
from rigctl.probe.surroundings import Surroundings
from rigctl.probe.switches import Forwarding

MOST_MACS: Final = 4
"""Further addresses behind a node's port, of containers and virtual machines."""


@dataclass(frozen=True, slots=True)
class SwitchPort:
    """A port of a switch. `switch`: its name, `management`: its address, `by`: how this is known."""

    switch: str
    port: str
    by: str
    management: str | None = None


@dataclass(frozen=True, slots=True)
class End:
    found: Surroundings
    interface: Interface | None


def located(
    ends: Mapping[str, End], tables: Sequence[tuple[str, Forwarding]]
) -> tuple[dict[str, SwitchPort], dict[str, str]]:
    """Return the known switch port of nodes, and for the other nodes the reason. `tables`: by switch key."""
    own = {mac for end in ends.values() for each in end.found.interfaces.values() if (mac := each.mac)}
    ports: dict[str, SwitchPort] = {}
    unknown: dict[str, str] = {}
    for name, end in ends.items():
        outcome = _by_lldp(end, own)
        if not isinstance(outcome, SwitchPort) and tables:
            outcome = _by_table(name, ends, tables)
        if isinstance(outcome, SwitchPort):
            ports[name] = outcome
        else:
            unknown[name] = outcome
    return ports, unknown


def _by_lldp(end: End, own: set[str]) -> SwitchPort | str:
    if end.interface is None:
        return "the data interface is unknown"
    if end.found.lldp is not None:
        absent = end.found.lldp == "absent"
        return "no lldpd on the node" if absent else "lldpd does not run, or does not answer this user"
    carriers = {each.name for each in with_those_below(end.interface, end.found)}
    heard = [each for each in end.found.neighbours if each.interface in carriers and _may_be_switch(each, own)]
    if not heard:
        return "no switch announces itself by LLDP"
    places = {(each.chassis or each.chassis_id, each.port): each for each in heard}
    if len(places) > 1:
        # A switch without LLDP forwards that of several others; a bond has several ports.
        said = ", ".join(f"{chassis or 'a switch'} {port or ''}".strip() for chassis, port in places)
        return f"several ports announce themselves by LLDP: {said}"
    neighbour = next(iter(places.values()))
    chassis = neighbour.chassis or neighbour.chassis_id
    if chassis is None or neighbour.port is None:
        return "the switch announces no name or port by LLDP"
    return SwitchPort(chassis, neighbour.port, "LLDP", neighbour.management)


def _may_be_switch(neighbour: Neighbour, own: set[str]) -> bool:
    """Return False for another of the hosts: hosts announce themselves too, some as bridges."""
    return neighbour.is_switch is not False and (neighbour.chassis_id or "").lower() not in own


def _by_table(name: str, ends: Mapping[str, End], tables: Sequence[tuple[str, Forwarding]]) -> SwitchPort | str:
    mine = _macs(ends[name])
    others = {mac for other, end in ends.items() if other != name for mac in _macs(end)}
    uplinks: list[str] = []
    fitting: list[tuple[int, SwitchPort]] = []
    for key, table in tables:
        for port, macs in table.ports.items():
            if macs.isdisjoint(mine):
                continue
            if macs & others or len(macs - mine) > MOST_MACS:
                uplinks.append(f"{key} {port} ({len(macs)} addresses)")
            else:
                fitting.append((len(macs - mine), SwitchPort(key, port, "the forwarding table")))
    if fitting:
        return min(fitting, key=lambda each: each[0])[1]
    if uplinks:
        return f"seen only behind ports that lead to other switches: {', '.join(uplinks)}"
    return "its address is in no forwarding table: it has sent nothing lately, or is connected elsewhere"


def _macs(end: End) -> set[str]:
    if end.interface is None:
        return set()
    return {mac for each in with_those_below(end.interface, end.found) if (mac := each.mac)}
