"""Which switch port each node is connected to: by LLDP where the node hears a switch, else by forwarding tables. Pure.

A port behind which a switch has learnt many addresses, or two of the nodes, leads to another switch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.discovery.paths import with_those_below
from rigctl.probe.network import Interface, Neighbour
from rigctl.probe.surroundings import Surroundings
from rigctl.probe.switches import Forwarding

MOST_MACS: Final = 4
"""Addresses beside the node's own behind a node's port: containers and virtual machines have some."""


@dataclass(frozen=True, slots=True)
class SwitchPort:
    """A port of a switch. `switch` is its name, `management` where it may be asked, `by` how this is known."""

    switch: str
    port: str
    by: str
    management: str | None = None


@dataclass(frozen=True, slots=True)
class End:
    """A node's end of the cable."""

    found: Surroundings
    interface: Interface | None


def located(
    ends: Mapping[str, End], tables: Sequence[tuple[str, Forwarding]]
) -> tuple[dict[str, SwitchPort], dict[str, str]]:
    """The switch port of each node where it is known, and for the others why not. `tables`: by the switch's key."""
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
        return {"absent": "no lldpd on the node"}.get(
            end.found.lldp, "lldpd does not run, or does not answer this user"
        )
    carriers = {each.name for each in with_those_below(end.interface, end.found)}
    heard = [each for each in end.found.neighbours if each.interface in carriers and _may_be_switch(each, own)]
    if not heard:
        return "no switch announces itself by LLDP"
    places = {(each.chassis or each.chassis_id, each.port): each for each in heard}
    if len(places) > 1:
        # A switch that knows no LLDP passes it on from several others; a bond has a port each.
        said = ", ".join(f"{chassis or 'a switch'} {port or ''}".strip() for chassis, port in places)
        return f"several ports announce themselves by LLDP: {said}"
    neighbour = next(iter(places.values()))
    chassis = neighbour.chassis or neighbour.chassis_id
    if chassis is None or neighbour.port is None:
        return "the switch announces no name or port by LLDP"
    return SwitchPort(chassis, neighbour.port, "LLDP", neighbour.management)


def _may_be_switch(neighbour: Neighbour, own: set[str]) -> bool:
    """Not another of the hosts: those announce themselves, too, and some say that they are bridges."""
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
    """Of the data interface and what it consists of."""
    if end.interface is None:
        return set()
    return {mac for each in with_those_below(end.interface, end.found) if (mac := each.mac)}
