"""Chooses each host's data interface, and finds its switch port.

The data interface is the one in the network that the hosts have in common; at least two hosts must be in it. An address
that several hosts have (docker0, virbr0) is ignored. Of several networks, the best is chosen by, in this order:
hardware interfaces, number of hosts, speed, use by SSH, IPv4. A network to which the kernel of a host routes by another
interface, or in which another machine answers for a host, is none; without one the route to the hosts' SSH addresses
decides.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from itertools import permutations
from types import MappingProxyType
from typing import Final, TypeAlias

from rigctl.base.units import format_rate
from rigctl.hosts.candidate import Candidate
from rigctl.hosts.lldp import Neighbour
from rigctl.hosts.network import Held, HostInterface
from rigctl.switches import Forwarding
from rigctl.switches.reading import find_ports, port_name

_MOST_ASKED: Final = 3
"""Most networks in common for which hosts are asked."""
Network: TypeAlias = IPv4Network | IPv6Network
_Address: TypeAlias = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class DataEnd:
    """Interface and address of a host for data, and why they were chosen. None: data use the address of SSH."""

    interface: HostInterface | None
    address: str | None
    why: str


@dataclass(frozen=True, slots=True)
class NodePort:
    """A node's switch port: names of switch and port, source of these (`by`), and the switch's management address."""

    switch: str
    port: str
    by: str
    management: str | None = None
    others: int = 0  # other MAC addresses at the port, such as those of the node's virtual machines


@dataclass(frozen=True, slots=True)
class _End:
    interface: HostInterface
    address: Held
    has_ssh: bool


def data_paths(hosts: Mapping[str, Candidate]) -> dict[str, DataEnd]:
    """Return the data interface and address of each host, by host name."""
    ends = _common_networks(hosts)
    order = sorted(ends, key=lambda network: _weight(network, ends[network], hosts), reverse=True)
    refused: list[str] = []
    while order and (why := _why_no_network(order[0], ends[order[0]], hosts)) is not None:
        refused.append(why)
        order = order[1:]
    if not order:
        return {name: _by_route(name, hosts, None, refused) for name in hosts}
    best = order[0]
    paths: dict[str, DataEnd] = {}
    for name in hosts:
        if (end := ends[best].get(name)) is None:
            paths[name] = _by_route(name, hosts, next(iter(ends[best].values())).address.ip, refused)
        else:
            end = _routed_end(name, end, ends[best], hosts)
            others = [network for network in order[1:] if name in ends[network]]
            why = "; ".join((_reason(best, others, ends, name, len(hosts)), *refused))
            paths[name] = DataEnd(end.interface, str(end.address.ip), why)
    return paths


def addresses_to_ask(hosts: Mapping[str, Candidate]) -> dict[str, tuple[list[str], list[str]]]:
    """Return for each host the other hosts' addresses whose way it is asked for, and those that it looks for nearby.

    In each network, a host looks for the next host only: all together have then looked for each other.
    """
    ends = _common_networks(hosts)
    order = sorted(ends, key=lambda network: _weight(network, ends[network], hosts), reverse=True)[:_MOST_ASKED]
    asked: dict[str, tuple[list[str], list[str]]] = {}
    for name in hosts:
        others = [other for other in hosts if other != name]
        ways = [str(ip) for other in others if (ip := _ip(hosts[other].ssh_address)) is not None]
        within = [ends[network] for network in order if name in ends[network]]
        ways += [str(known[other].address.ip) for known in within for other in others if other in known]
        asked[name] = ways, [str(known[_next_in(known, name)].address.ip) for known in within]
    return asked


def _next_in(ends: Mapping[str, _End], name: str) -> str:
    names = list(ends)
    return names[(names.index(name) + 1) % len(names)]


def _why_no_network(network: Network, ends: Mapping[str, _End], hosts: Mapping[str, Candidate]) -> str | None:
    """Return why hosts do not reach each other in a network of equal numbers; None if nothing speaks against it."""
    outcomes = (_why_no_link(network, (name, other), ends, hosts) for name, other in permutations(ends, 2))
    return next((why for why in outcomes if why is not None), None)


def _why_no_link(
    network: Network, pair: tuple[str, str], ends: Mapping[str, _End], hosts: Mapping[str, Candidate]
) -> str | None:
    """Return why the first host of a pair does not reach the second one in a network; None if it may."""
    name, other = pair
    here, there = hosts[name].ways, str(ends[other].address.ip)
    way = here.to.get(there)
    routed = None if way is None else hosts[name].interfaces.get(way.interface)
    if way is not None and not any(held.network == network for held in (routed.addresses if routed else ())):
        return f"{network} is no network in common: {name} routes to {there} by {way.interface}"
    if ends[name].has_ssh or there not in here.near:
        return None  # where SSH came by this network, the hosts reach each other as the controller reaches them
    answered, own = here.near[there], {each.mac for each in hosts[other].interfaces.values() if each.mac}
    if answered is not None and (not own or answered in own):
        return None
    who = "nobody" if answered is None else f"another machine ({answered})"
    return f"{network} is no network in common: to {name}, {who} answers as {there}"


def _routed_end(name: str, end: _End, ends: Mapping[str, _End], hosts: Mapping[str, Candidate]) -> _End:
    """Return the end in the same network by which the kernel sends to the others, if the host has several there."""
    to = str(ends[_next_in(ends, name)].address.ip)
    way = hosts[name].ways.to.get(to)
    if way is None or way.interface == end.interface.name or way.interface not in hosts[name].interfaces:
        return end
    interface = hosts[name].interfaces[way.interface]
    same = [held for held in interface.addresses if held.network == end.address.network]
    chosen = next((held for held in same if str(held.ip) == way.source), same[0] if same else None)
    return end if chosen is None else replace(end, interface=interface, address=chosen)


def _common_networks(hosts: Mapping[str, Candidate]) -> dict[Network, dict[str, _End]]:
    held: Counter[_Address] = Counter()
    for found in hosts.values():
        held.update({address.ip for interface in found.interfaces.values() for address in interface.addresses})
    networks: dict[Network, dict[str, _End]] = {}
    for name, found in hosts.items():
        ssh = _ip(found.ssh_address)
        for interface in found.interfaces.values():
            for address in interface.addresses if interface.is_up else ():
                if held[address.ip] > 1 or address.network.num_addresses == 1:
                    continue
                end = _End(interface, address, address.ip == ssh)
                known = networks.setdefault(address.network, {}).setdefault(name, end)
                if _fitness(end, found) > _fitness(known, found):
                    networks[address.network][name] = end
    return {network: ends for network, ends in networks.items() if len(ends) > 1}


def _ip(text: str | None) -> _Address | None:
    try:
        return ip_address(text) if text else None
    except ValueError:
        return None


def _fitness(end: _End, found: Candidate) -> tuple[bool, int, bool]:
    return on_hardware(end.interface, found), end.interface.speed_bps or 0, end.has_ssh


def on_hardware(interface: HostInterface, found: Candidate) -> bool:
    """Tell whether the interface is hardware, or is a bond, bridge or VLAN on a hardware interface."""
    return any(each.is_hardware for each in with_those_below(interface, found))


def with_those_below(interface: HostInterface, found: Candidate) -> list[HostInterface]:
    """Return the interface and all interfaces below it, such as the members of a bond."""
    seen: dict[str, HostInterface] = {}
    waiting = [interface]
    while waiting:
        current = waiting.pop()
        if current.name not in seen:
            seen[current.name] = current
            waiting += [found.interfaces[name] for name in current.below if name in found.interfaces]
    return list(seen.values())


def _weight(
    network: Network, ends: Mapping[str, _End], hosts: Mapping[str, Candidate]
) -> tuple[bool, int, int, int, bool]:
    return (
        all(on_hardware(end.interface, hosts[name]) for name, end in ends.items()),
        len(ends),
        min(end.interface.speed_bps or 0 for end in ends.values()),
        sum(end.has_ssh for end in ends.values()),
        network.version == 4,
    )


def _reason(
    best: Network, others: list[Network], ends: Mapping[Network, Mapping[str, _End]], name: str, total: int
) -> str:
    shared = len(ends[best]) - 1
    reason = f"on {best}, as {'all ' if shared == total - 1 and shared > 1 else ''}{_hosts(shared)}"
    rest = []
    for network in others:
        interface = ends[network][name].interface
        rate = f" ({format_rate(interface.speed_bps)})" if interface.speed_bps else ""
        rest.append(f"{interface.name} {network}{rate}")
    return f"{reason}; preferred to {', '.join(rest)}" if rest else reason


def _hosts(count: int) -> str:
    return f"{count} other host{'s' * (count != 1)}"


def _by_route(name: str, hosts: Mapping[str, Candidate], to: _Address | None, refused: Sequence[str]) -> DataEnd:
    """Return the interface with the route to `to` (None: to most other hosts' SSH addresses), and its address."""
    found, none = hosts[name], "; ".join(refused) or "no network in common"
    if not found.has_ip:
        return DataEnd(None, None, "interfaces unknown: the host has no ip(8); data flow where SSH does")
    towards = [to] if to else [ip for other in hosts if other != name if (ip := _ip(hosts[other].ssh_address))]
    taken = Counter(route for ip in towards if (route := _route(found, ip)) is not None)
    for (interface_name, version, source), count in taken.most_common():
        interface = found.interfaces[interface_name]
        held = [str(each.ip) for each in interface.addresses if each.version == version]
        address = source if source in held else next(iter(held), None)
        if address is not None:
            where = str(to) if to else _hosts(count)
            return DataEnd(interface, address, f"the route to {where}; {none}")
    return DataEnd(None, None, f"{none}, no route: test data will use that of SSH")


def _route(found: Candidate, to: _Address) -> tuple[str, int, str | None] | None:
    """Return interface, IP version and source address of the way to `to`: the kernel's, or else by the main table."""
    way = found.ways.to.get(str(to))
    if way is not None:
        return (way.interface, to.version, way.source) if way.interface in found.interfaces else None
    usable = [route for route in found.routes if route.interface in found.interfaces]
    fitting = [route for route in usable if route.to.version == to.version and to in route.to]
    best = max(fitting, key=lambda route: route.to.prefixlen, default=None)
    return (best.interface, to.version, None) if best is not None else None


def locate_ports(
    hosts: Mapping[str, Candidate],
    paths: Mapping[str, DataEnd],
    tables: Sequence[tuple[str, Forwarding]],
    addresses: Mapping[str, str] = MappingProxyType({}),
) -> tuple[dict[str, NodePort], dict[str, str]]:
    """Return the known switch ports by node, and by node the reason why a port is unknown.

    `addresses` has the keys of the switches in `tables` by management address.
    LLDP tells the port of a node that hears one switch, else a forwarding table in `tables` (key of a switch, table). A
    port with addresses of two nodes leads to another switch. All other addresses at a port may be those of the node's
    virtual machines; of several ports with the node's address, the one with the fewest addresses is the node's.
    """
    own = {mac for found in hosts.values() for each in found.interfaces.values() if (mac := each.mac)}
    macs = {name: _macs(found, paths[name].interface) for name, found in hosts.items()}
    ports: dict[str, NodePort] = {}
    unknown: dict[str, str] = {}
    for name, found in hosts.items():
        heard = _heard(found, paths[name].interface, own)
        outcome = heard if isinstance(heard, str) else _by_lldp(heard, macs[name], tables, addresses)
        if not isinstance(outcome, NodePort) and any(table.ports or table.unplaced for _, table in tables):
            others = set().union(*(macs[other] for other in hosts if other != name))
            outcome = _by_table(macs[name], others, tables)
        if isinstance(outcome, NodePort):
            ports[name] = outcome
        else:
            unknown[name] = outcome
    return ports, unknown


def _heard(found: Candidate, interface: HostInterface | None, own: set[str]) -> Neighbour | str:
    """Return the switch port that announces itself to a host by LLDP, or why none is known. `own`: all hosts' MACs."""
    if interface is None:
        return "the data interface is unknown"
    if found.lldp is not None:
        absent = found.lldp == "absent"
        return "no lldpd on the node" if absent else "lldpd does not run, or does not answer this user"
    carriers = {each.name for each in with_those_below(interface, found)}
    heard = [each for each in found.neighbours if each.interface in carriers and _may_be_switch(each, own)]
    if not heard:
        return "no switch announces itself by LLDP"
    # Two ports may have the same description, so that only the id tells them apart.
    places = {(each.chassis or each.chassis_id, each.port_id or each.port_text): each for each in heard}
    if len(places) > 1:
        # Causes: a bond, or a switch without LLDP that forwards what other switches announce.
        texts = ", ".join(
            f"{each.chassis or each.chassis_id or 'a switch'} {each.port_text or ''}".strip() for each in heard
        )
        return f"several ports announce themselves by LLDP: {texts}"
    (neighbour,) = places.values()
    known = (neighbour.chassis or neighbour.chassis_id) and neighbour.port_text
    return neighbour if known else "the switch announces no name or port by LLDP"


def _by_lldp(
    heard: Neighbour, mine: set[str], tables: Sequence[tuple[str, Forwarding]], addresses: Mapping[str, str]
) -> NodePort | str:
    """Return the port that a switch announces, with its name in SNMP if the switch was read; or why it has no name.

    The announced interface name counts first, then the announced number as an interface index, then id and description
    if they are names of one interface. If these are different ports, the one with a MAC address in `mine` counts.
    """
    switch = heard.chassis or heard.chassis_id or ""
    announced = f"{switch} announces {heard.port_text} by LLDP"
    managed = addresses.get(heard.management or "")
    same = (table for key, table in tables if (table.name or "").casefold() == switch.casefold() or key == managed)
    known = next(same, None)
    if known is None or not known.interfaces:
        if heard.port is not None:
            return NodePort(switch, heard.port, "LLDP", heard.management)
        return f"{announced}, which may be no interface name: with --switch, its name is looked up by SNMP"
    texts = [heard.port] if heard.port is not None else [heard.port_id, heard.description]
    indexes, refused = find_ports([text for text in texts if text], known.interfaces)
    found = [heard.number] if heard.number is not None and heard.number in known.interfaces else []
    found += [indexes[text] for text in texts if text in indexes]
    if not found:
        return f"{announced}, but in SNMP {next(iter(refused.values()))}"
    names = [port_name(index, known.interfaces) or f"ifIndex {index}" for index in found]
    name = next((name for name in names if not mine.isdisjoint(known.ports.get(name, ()))), names[0])
    return NodePort(switch, name, "LLDP", heard.management)


def _may_be_switch(neighbour: Neighbour, own: set[str]) -> bool:
    """Tell whether an LLDP neighbour may be a switch. Hosts announce themselves too, some as bridges."""
    return neighbour.is_switch is not False and (neighbour.chassis_id or "").lower() not in own


def _by_table(mine: set[str], others: set[str], tables: Sequence[tuple[str, Forwarding]]) -> NodePort | str:
    """Return the port with a node's MAC addresses `mine` and the fewest others, or the reason why no port fits."""
    uplinks: list[str] = []
    fitting: list[tuple[int, NodePort]] = []
    for key, table in tables:
        for port, macs in table.ports.items():
            if macs.isdisjoint(mine):
                continue
            if macs & others:
                uplinks.append(f"{key} {port} ({len(macs)} addresses)")
            else:
                others_there = len(macs - mine)
                fitting.append((others_there, NodePort(key, port, "the forwarding table", others=others_there)))
    fewest = min((count for count, _ in fitting), default=0)
    best = [port for count, port in fitting if count == fewest]
    if len(best) == 1:
        return best[0]
    if best:
        return f"its address is at several ports: {', '.join(f'{port.switch} {port.port}' for port in best)}"
    if uplinks:
        return f"seen only at ports where other nodes are too, so another switch is between: {', '.join(uplinks)}"
    if unnamed := [key for key, table in tables if table.unplaced & mine]:
        return f"its address is in the forwarding table of {', '.join(unnamed)}, at a port without a name"
    return "its address is in no forwarding table: it has sent nothing lately, or is connected elsewhere"


def _macs(found: Candidate, interface: HostInterface | None) -> set[str]:
    return {each.mac for each in with_those_below(interface, found) if each.mac} if interface is not None else set()
