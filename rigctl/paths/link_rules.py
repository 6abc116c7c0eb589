"""Rules on data interfaces: their link, and the routes of the kernel through them to the peers."""

from collections.abc import Iterator
from ipaddress import ip_address

from rigctl.base.units import format_rate
from rigctl.findings import Finding
from rigctl.findings import link as links
from rigctl.findings import mtu as mtus
from rigctl.findings import path as paths
from rigctl.hosts.surroundings import LOOPBACKS, Route
from rigctl.model.bonds import bond_of_facts
from rigctl.paths.commands import as_root, command_on, find_on, say_in_order
from rigctl.paths.state import NodeState, RigState


def check_link(state: RigState) -> Iterator[Finding]:
    """Check that the data interface exists, is up, has carrier, and runs at the rate of the rig file."""
    good = []
    for each in state.reached():
        interface = each.interface
        if interface is None:
            if each.failure is None:
                yield find_on(each, links.INTERFACE_UNKNOWN)
        elif each.facts.get("up") is False:
            yield find_on(each, links.LINK_DOWN, command=as_root(each, "up"))
        elif each.facts.get("carrier") == 0:
            yield find_on(each, links.NO_CARRIER)
        else:
            good.append(each.name)
            yield from _speed(each)
            yield from _bond(each)
    yield from say_in_order(links.LINK_UP, good)


def is_dead(each: NodeState) -> bool:
    """Tell whether a node's data interface is down or has no carrier. Its routes and paths are then not judged."""
    return each.facts.get("up") is False or each.facts.get("carrier") == 0


def is_loopback(each: NodeState) -> bool:
    """Tell whether a node's data address is a loopback address, to which no other host can send."""
    try:
        return each.address is not None and ip_address(each.address).is_loopback
    except ValueError:  # the address is a host name
        return False


def _speed(each: NodeState) -> Iterator[Finding]:
    speed_bps, wanted_bps = each.facts.get("speed_bps"), each.node.link.rate_bps
    if each.facts.get("duplex") == "half":
        yield find_on(each, links.HALF_DUPLEX, command=command_on(each, "negotiate"))
    offered_bps = each.facts.get("offered_bps")
    if speed_bps is not None and offered_bps is not None and speed_bps < offered_bps:
        offer = {"speed": format_rate(speed_bps), "offered": format_rate(offered_bps)}
        numbers = {"speed_mbps": speed_bps / 1e6, "offered_mbps": offered_bps / 1e6}
        yield find_on(each, links.LINK_BELOW_OFFER, numbers, command=command_on(each, "medium"), **offer)
        return
    bond = bond_of_facts(each.facts)
    if speed_bps is None or wanted_bps in (None, speed_bps, bond and bond.card_bps):
        return
    rates = {"speed": format_rate(speed_bps), "wanted": format_rate(wanted_bps)}
    numbers = {"speed_mbps": speed_bps / 1e6, "wanted_mbps": wanted_bps / 1e6}
    sentence = links.LINK_SLOW if speed_bps < wanted_bps else links.LINK_FAST
    yield find_on(each, sentence, numbers, command=command_on(each, "medium"), **rates)


def _bond(each: NodeState) -> Iterator[Finding]:
    """Tell what one flow and several flows get of a bond, if that is not the same."""
    bond = bond_of_facts(each.facts)
    if bond is None or bond.card_bps is None or bond.total_bps is None or bond.is_plain:
        return
    most_bps = bond.bound_bps(bond.cards, sends=True) or bond.total_bps
    numbers = {"cards": bond.cards, "card_mbps": bond.card_bps / 1e6, "total_mbps": bond.total_bps / 1e6}
    card, most = format_rate(bond.card_bps), format_rate(most_bps)
    yield find_on(each, links.BOND, numbers, bond=bond.name, card=card, most=most)


def routes(state: RigState) -> Iterator[Finding]:
    """Check that the kernel routes packets to the peers through the data interface."""
    good = []
    for each in state.reached():
        known, wrong = _routes_by_peer(state, each), find_misrouted(state, each)
        for (_, to), way in wrong.items():
            yield _judge_misrouted(each, to, way)
        for ends, way in known.items():
            own = each.facts.get("mtu")
            if ends not in wrong and way.mtu is not None and own is not None and way.mtu < own:
                numbers, forget = {"route_mtu": way.mtu, "mtu": own}, as_root(each, "forget routes")
                yield find_on(each, mtus.ROUTE_MTU, numbers, peer=ends[1], command=forget)
        if not wrong and each.around is not None and each.around.routes and _is_usable(each):
            good.append(each.name)
    yield from say_in_order(paths.ROUTES, good)


def find_misrouted(state: RigState, each: NodeState) -> dict[tuple[str, str], Route]:
    """Return the routes that do not use the node's data interface, by the names (node, peer)."""
    right = {each.interface, *LOOPBACKS, *(each.around.above if each.around is not None else ())}
    return {ends: way for ends, way in _routes_by_peer(state, each).items() if way.device not in right}


def _is_usable(each: NodeState) -> bool:
    return each.interface is not None and not is_dead(each) and not is_loopback(each)


def _routes_by_peer(state: RigState, each: NodeState) -> dict[tuple[str, str], Route]:
    """Return a node's routes by the names (node, peer); {} if its data interface is unusable."""
    if each.around is None or not _is_usable(each):
        return {}
    names = {other.address: other.name for other in state.nodes.values() if other.address is not None}
    routes = each.around.routes.items()
    return {(each.name, names.get(peer, peer)): way for peer, way in routes if peer != each.address}


def _judge_misrouted(each: NodeState, to: str, way: Route) -> Finding:
    words: dict[str, object] = {"peer": to, "address": way.peer}
    if way.device is not None:
        change = command_on(each, "set route", peer=way.peer, own=each.address)
        via = f" via {way.via}" if way.via else ""
        words |= {"device": way.device, "via": via, "command": change}
        return find_on(each, paths.ROUTE_ELSEWHERE, **words)
    reason, _, forbidding = way.reason.partition("; ")
    if not forbidding:
        look = command_on(each, "show route", peer=way.peer, own=each.address)
        return find_on(each, paths.NO_ROUTE, reason=reason, command=look, **words)
    kind, _, rest = forbidding.partition(" ")
    return find_on(each, paths.ROUTE_FORBIDS, kind=kind, route=rest, reason=reason, **words)
