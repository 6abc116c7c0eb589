"""Rules on data interfaces: link, speed, duplex and MTU, routes, other traffic."""

from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from typing import Final

from rigctl.base.units import format_rate
from rigctl.check.records import NodeSeen, Seen
from rigctl.check.rules.findings import as_root, by_value, command, found, most_common, node
from rigctl.findings import Finding, Severity
from rigctl.probe.readiness import Route

BUSY_SHARE: Final = 0.01
"""Other traffic above this share of the link shows in results."""
BUSY_BPS: Final = 1e6
"""The same bound for links whose rate is unknown or small."""
LOOPBACKS: Final = ("lo", "lo0")


def link(seen: Seen) -> Iterator[Finding]:
    good = []
    for each in seen.reached():
        name, interface = node(each.name), each.interface
        if interface is None:
            if each.failure is None:
                remedy = "Name it in the rig file: data_interface."
                yield found(Severity.WARNING, name, "the interface of its data address was not found.", remedy)
        elif each.facts.get("up") is False:
            remedy = as_root(each, "up")
            yield found(Severity.ERROR, name, f"{interface} is down.", remedy)
        elif each.facts.get("carrier") == 0:
            remedy = "Look at cable, transceiver and the switch's port."
            yield found(Severity.ERROR, name, f"{interface} has no link.", remedy)
        else:
            good.append(each)
            yield from _speed(each)
    if good:
        yield found(Severity.OK, node(*(each.name for each in good)), "the data interface has its link.")


def is_dead(each: NodeSeen) -> bool:
    """Tell whether its interface is down or has no link. Faults that follow from that are not reported."""
    return each.facts.get("up") is False or each.facts.get("carrier") == 0


def is_loopback(each: NodeSeen) -> bool:
    """Tell whether no other host can send to its data address."""
    try:
        return each.address is not None and ip_address(each.address).is_loopback
    except ValueError:  # a name
        return False


def _speed(each: NodeSeen) -> Iterator[Finding]:
    speed_bps, wanted_bps, duplex = each.facts.get("speed_bps"), each.node.link.rate_bps, each.facts.get("duplex")
    name, interface = node(each.name), each.interface
    if duplex == "half":
        remedy = f"Let both ends negotiate: {command(each, 'negotiate')}; the same on the switch's port."
        yield found(Severity.WARNING, name, f"{interface} runs half duplex: both directions share the link.", remedy)
    if speed_bps is None or wanted_bps is None or speed_bps == wanted_bps:
        return
    text = f"{interface} runs at {format_rate(speed_bps)}, the rig file has {format_rate(wanted_bps)}."
    numbers = {"speed_mbps": speed_bps / 1e6, "wanted_mbps": wanted_bps / 1e6}
    if speed_bps < wanted_bps:
        remedy = f"Look at the cable and the switch's port ({command(each, 'medium')}), or correct the rig file."
        yield found(Severity.WARNING, name, text, remedy, numbers=numbers)
    else:
        remedy = "Correct the rig file, unless the link is slower elsewhere."
        yield found(Severity.NOTE, name, text, remedy, numbers)


def mtu(seen: Seen) -> Iterator[Finding]:
    """Compare the MTUs with the rig file and with each other."""
    known = {
        each.name: each
        for each in seen.reached()
        if each.facts.get("mtu") is not None and each.interface not in LOOPBACKS
    }
    wrong = set()
    for name, each in known.items():
        wanted, has = each.node.link.mtu, each.facts["mtu"]
        if wanted is not None and wanted != has:
            wrong.add(name)
            remedy = as_root(each, "mtu", mtu=wanted)
            text = f"{each.interface} has MTU {has}, the rig file {wanted}."
            yield found(Severity.WARNING, node(name), text, remedy, numbers={"mtu": has, "wanted_mtu": wanted})
    sizes = {each.facts["mtu"] for each in known.values()}
    if len(sizes) > 1:
        yield from _unlike([each for name, each in known.items() if name not in wrong])
    elif known and not wrong:
        (size,) = sizes
        yield found(Severity.OK, node(*known), f"MTU {size}.", numbers={"mtu": size})


def _unlike(nodes: Sequence[NodeSeen]) -> Iterator[Finding]:
    """Report the nodes with another MTU than most; if no MTU is the usual one, all nodes at once."""
    sizes = {each.name: each.facts["mtu"] for each in nodes}
    usual = most_common(sizes)
    said = "TCP agrees on the smaller; larger datagrams to it are lost."
    if usual is None and len(set(sizes.values())) > 1:
        text = f"the MTUs of the data interfaces differ, {by_value(sizes)}. {said}"
        yield found(Severity.WARNING, node(*sizes), text, "Give the interfaces the same MTU.")
    others = list(sizes.values()).count(usual)
    for each in nodes if usual is not None else ():
        if (size := sizes[each.name]) != usual:
            text = f"{each.interface} has MTU {size}, {others} other nodes {usual}. {said}"
            remedy = as_root(each, "mtu", mtu=usual)
            yield found(Severity.WARNING, node(each.name), text, remedy, numbers={"mtu": size, "usual_mtu": usual})


def routes(seen: Seen) -> Iterator[Finding]:
    """Check by `ip route get` or `route get` that data leave by the data interface."""
    good = []
    for each in seen.reached():
        if each.around is None or each.interface is None or is_dead(each) or is_loopback(each):
            continue
        wrong = astray(seen, each)
        for (_, to), way in wrong.items():
            yield _astray(each, to, way)
        for ends, way in _ways(seen, each).items():
            if ends not in wrong:
                yield from _route_mtu(each, ends[1], way.mtu)
        if not wrong and each.around.routes:
            good.append(each.name)
    if good:
        yield found(Severity.OK, node(*good), "data leave by the data interface.")


def astray(seen: Seen, each: NodeSeen) -> dict[tuple[str, str], Route]:
    """Return the routes of a node that do not lead over its data interface, by node and peer."""
    if each.around is None or each.interface is None or is_dead(each) or is_loopback(each):
        return {}
    right = {each.interface, *LOOPBACKS, *each.around.above}
    return {ends: way for ends, way in _ways(seen, each).items() if way.device not in right}


def _ways(seen: Seen, each: NodeSeen) -> dict[tuple[str, str], Route]:
    names = {other.address: other.name for other in seen.nodes.values() if other.address is not None}
    routes = each.around.routes if each.around is not None else {}
    return {(each.name, names.get(peer, peer)): way for peer, way in routes.items() if peer != each.address}


def _astray(each: NodeSeen, to: str, way: Route) -> Finding:
    if way.device is None:
        said, _, forbidding = way.said.partition("; ")
        text = f"no route to {to} ({way.peer}): {said}."
        if not forbidding:
            remedy = f"On the node: {command(each, 'show route', peer=way.peer, own=each.address)}"
            return found(Severity.ERROR, node(each.name), text, remedy)
        kind, _, rest = forbidding.partition(" ")
        text = f"no route to {to} ({way.peer}): a route of type {kind} covers it, {rest} ({said})."
        return found(Severity.ERROR, node(each.name), text, f"On the node, as root: ip route del {forbidding}")
    via = f" via {way.via}" if way.via else ""
    text = f"data to {to} ({way.peer}) leave by {way.device}{via}, not by {each.interface}."
    change = as_root(each, "set route", peer=way.peer, own=each.address)
    remedy = f"{change}; or correct data_interface in the rig file."
    return found(Severity.ERROR, node(each.name), text, remedy)


def _route_mtu(each: NodeSeen, to: str, route_mtu: int | None) -> Iterator[Finding]:
    own = each.facts.get("mtu")
    if route_mtu is not None and own is not None and route_mtu < own:
        text = f"the route to {to} has MTU {route_mtu}, its interface {own}."
        remedy = f"{as_root(each, 'forget routes')}; or change the route."
        yield found(Severity.WARNING, node(each.name), text, remedy, numbers={"route_mtu": route_mtu, "mtu": own})


def traffic(seen: Seen) -> Iterator[Finding]:
    """Report the present traffic of other programs on the data interface."""
    good = []
    for each in seen.reached():
        if each.around is None or each.around.rx_bps is None or each.around.tx_bps is None:
            continue
        rate_bps = seen.rate_bps(each.name)
        most_bps = max(BUSY_BPS, BUSY_SHARE * (rate_bps or 0))
        rx_bps, tx_bps = each.around.rx_bps, each.around.tx_bps
        if max(rx_bps, tx_bps) > most_bps:
            text = (
                f"other traffic on {each.interface} now: {rx_bps / 1e6:.1f} Mbit/s in, {tx_bps / 1e6:.1f} Mbit/s out."
            )
            remedy = f"Find what causes it, as with: {command(each, 'sockets')}; or measure when it is over."
            numbers = {"rx_mbps": round(rx_bps / 1e6, 3), "tx_mbps": round(tx_bps / 1e6, 3)}
            yield found(Severity.WARNING, node(each.name), text, remedy, numbers=numbers)
        else:
            good.append(each.name)
    if good:
        yield found(Severity.OK, node(*good), "no other traffic on the data interface.")
