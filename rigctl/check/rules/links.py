"""The data interfaces: link, speed, duplex and MTU against the rig file and each other, routes, traffic."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from rigctl.check.records import NodeSeen, Seen
from rigctl.check.rules.commands import as_root, command
from rigctl.check.rules.findings import found, node
from rigctl.findings import Finding, Severity
from rigctl.units import format_rate

BUSY_SHARE: Final = 0.01
"""Other traffic above this share of the link shows in results."""
BUSY_BPS: Final = 1e6
"""… and where the link's rate is unknown, or small."""


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


def _dead(each: NodeSeen) -> bool:
    """Its interface is down or has no link, which is said; what follows from that need not be."""
    return each.facts.get("up") is False or each.facts.get("carrier") == 0


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
    """Against the rig file; and whether all nodes have the same."""
    known = {each.name: each for each in seen.reached() if each.facts.get("mtu") is not None}
    wrong = set()
    for name, each in known.items():
        wanted, has = each.node.link.mtu, each.facts["mtu"]
        if wanted is not None and wanted != has:
            wrong.add(name)
            remedy = as_root(each, "mtu", mtu=wanted)
            text = f"{each.interface} has MTU {has}, the rig file {wanted}."
            yield found(Severity.WARNING, node(name), text, remedy, numbers={"mtu": has, "wanted_mtu": wanted})
    counts = Counter(each.facts["mtu"] for each in known.values())
    if len(counts) > 1:
        usual = max(counts, key=lambda size: (counts[size], size))
        for size in sorted(counts.keys() - {usual}):
            few = [each for name, each in known.items() if each.facts["mtu"] == size and name not in wrong]
            for each in few:
                text = (
                    f"{each.interface} has MTU {size}, {counts[usual]} other nodes {usual}. TCP agrees on the smaller; "
                    f"larger datagrams to it are lost."
                )
                remedy = as_root(each, "mtu", mtu=usual)
                yield found(Severity.WARNING, node(each.name), text, remedy, numbers={"mtu": size, "usual_mtu": usual})
    elif known and not wrong:
        (size,) = counts
        yield found(Severity.OK, node(*known), f"MTU {size}.", numbers={"mtu": size})


def routes(seen: Seen) -> Iterator[Finding]:
    """`ip route get`, `route get`: data go over the data interface, not over that of management."""
    good = []
    for each in seen.reached():
        if each.around is None or each.interface is None or _dead(each):
            continue
        names = {other.address: other.name for other in seen.nodes.values() if other.address is not None}
        wrong = False
        for peer, way in each.around.routes.items():
            to = names.get(peer, peer)
            if way.device is None:
                remedy = f"On the node: {command(each, 'show route', peer=peer, own=each.address)}"
                yield found(Severity.ERROR, node(each.name), f"no route to {to} ({peer}): {way.said}.", remedy)
            elif way.device not in (each.interface, "lo", "lo0"):
                via = f" via {way.via}" if way.via else ""
                text = f"data to {to} ({peer}) leave by {way.device}{via}, not by {each.interface}."
                remedy = as_root(each, "add route", peer=peer, own=each.address)
                yield found(Severity.ERROR, node(each.name), text, remedy)
            else:
                yield from _route_mtu(each, to, way.mtu)
                continue
            wrong = True
        if not wrong and each.around.routes:
            good.append(each.name)
    if good:
        yield found(Severity.OK, node(*good), "data leave by the data interface.")


def _route_mtu(each: NodeSeen, to: str, route_mtu: int | None) -> Iterator[Finding]:
    own = each.facts.get("mtu")
    if route_mtu is not None and own is not None and route_mtu < own:
        text = f"the route to {to} has MTU {route_mtu}, its interface {own}."
        remedy = f"{as_root(each, 'forget routes')}; or change the route."
        yield found(Severity.WARNING, node(each.name), text, remedy, numbers={"route_mtu": route_mtu, "mtu": own})


def traffic(seen: Seen) -> Iterator[Finding]:
    """What other programs move over the data interface now."""
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
