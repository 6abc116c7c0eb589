"""Rules on nodes: SSH, lock, agent, rights, clock; their data interface with its link, MTU, routes, other traffic."""

from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final

from rigctl.base.units import format_rate
from rigctl.check.records import NodeState, RigState
from rigctl.check.rules.findings import as_root, by_value, command, error, fine, nodes_of, note, unlike, warning
from rigctl.findings import Finding
from rigctl.hosts.surroundings import Route

CLOCK_AHEAD_S: Final = 1.0
"""Beyond this, logs and captures of two nodes are hard to compare."""
SKEW_S: Final = 0.010
"""Bound of the start skew without a scenario."""
UNCHECKED_ON_FREEBSD: Final = (
    "socket buffers, congestion control, the card and the processor are not checked on FreeBSD, and whether an ICMP "
    "message answers its datagrams is not known."
)
_REACHED: Final = {
    "ssh": "reached by SSH, with known host keys",
    "srun": "reached by srun, in its allocation",
    "local": "this machine, reached without SSH",
}


def reached(state: RigState) -> Iterator[Finding]:
    """Check the transport (SSH with a known host key), the lock and the data address."""
    failed = [each for each in state.nodes.values() if each.failure is not None and each.failure.stage != "agent"]
    yield from (error(each, each.failure.text) for each in failed if each.failure is not None)
    good = [each for each in state.nodes.values() if each not in failed]
    for transport, how in _REACHED.items():
        names = (each.name for each in good if each.node.transport == transport)
        yield from fine(names, f"{how}; not in use by another run.")


def agent(state: RigState) -> Iterator[Finding]:
    """Check that the agent was uploaded to a folder with room and without noexec, and runs."""
    for each in state.nodes.values():
        if each.failure is not None and each.failure.stage == "agent":
            yield error(each, f"the agent does not run: {each.failure.text}")
        if each.note is not None:
            remedy = "A home that is mounted noexec or full is passed over; nothing has to be done."
            yield note(each, f"{each.note}.", remedy)
        if each.unrestored is not None:
            text = f"host settings of an earlier run could not be put back: {each.unrestored}."
            yield warning(each, text, "Set them by hand, or restart the node.")
    machines = {each.name: each.machine for each in state.nodes.values() if each.machine is not None}
    for machine in sorted(set(machines.values())):
        yield from fine((name for name, own in machines.items() if own == machine), f"the agent for {machine} runs.")


def rights(state: RigState) -> Iterator[Finding]:
    """Check for root's rights if conditions or captures need them. With `sudo: true` the agent's start has used it."""
    conditions = state.plan.conditions if state.plan is not None else ()
    needs = [f"condition {condition.name}" for condition in conditions if condition.settings]
    needs += ["captures"] if any(cell.capture for cell in state.cells()) else []
    for each in state.reached() if needs else ():
        if each.as_root is False:
            remedy = f"Log in as root, or give node {each.name} `sudo: true` in the rig file."
            yield error(each, f"{', '.join(needs)} cannot be had without root.", remedy)
    good = (each.name for each in state.reached() if needs and each.as_root)
    yield from fine(good, f"root's rights for {', '.join(needs)}.")


def conditions(state: RigState) -> Iterator[Finding]:
    """Check that each node has what the conditions set, and takes the values that it can judge without a change."""
    for each in state.nodes.values():
        yield from (error(each, f"{text}.") for text in each.refused)


def unchecked_on_freebsd(state: RigState) -> Iterator[Finding]:
    """Name what is not checked on FreeBSD."""
    yield from (note(each, UNCHECKED_ON_FREEBSD) for each in state.reached() if each.is_freebsd)


def clock(state: RigState) -> Iterator[Finding]:
    """Check the wall clock, and the precision of the clock that starts the flows."""
    bound_s = state.plan.max_skew_s if state.plan is not None else SKEW_S
    good = {}
    for each in state.nodes.values():
        ahead_s = _surely_ahead_s(each)
        if ahead_s is not None and abs(ahead_s) < CLOCK_AHEAD_S:
            good[each.name] = abs(ahead_s)
        elif ahead_s is not None:
            text = (
                f"its clock is {abs(ahead_s):.1f} s {'ahead of' if ahead_s > 0 else 'behind'} the controller's. "
                "Measurements are not affected; times in its logs are."
            )
            yield warning(each, text, as_root(each, "clock"), clock_ahead_s=round(ahead_s, 3))
        if each.clock_error_s is not None and each.clock_error_s > bound_s:
            text = (
                f"its clock is known to ±{each.clock_error_s * 1e3:.1f} ms only (the SSH connection is slow); flows "
                f"are to start within {bound_s * 1e3:g} ms of each other."
            )
            remedy = "Raise max_skew in the scenario, or run rigctl nearer to the rig."
            yield warning(each, text, remedy, clock_error_ms=round(each.clock_error_s * 1e3, 3))
    worst_s = max(good.values(), default=0.0)
    yield from fine(good, "clocks agree within a second.", clock_ahead_s=round(worst_s, 3))


def _surely_ahead_s(state: NodeState) -> float | None:
    """Return the least time that its clock is ahead (negative: behind); the time of the reading is not exact."""
    if state.clock_ahead_s is None:
        return None
    low, high = state.clock_ahead_s
    return 0.0 if low <= 0 <= high else low if low > 0 else high


BUSY_SHARE: Final = 0.01
"""Other traffic above this share of the link shows in results."""
BUSY_BPS: Final = 1e6
"""The same bound for links whose rate is unknown or small."""
LOOPBACKS: Final = ("lo", "lo0")
_SMALLER: Final = "TCP agrees on the smaller; larger datagrams to it are lost."


def link(state: RigState) -> Iterator[Finding]:
    """Check that the data interface exists, is up, has its link, and runs at the rate of the rig file."""
    good = []
    for each in state.reached():
        interface = each.interface
        if interface is None:
            if each.failure is None:
                remedy = "Name it in the rig file: data_interface."
                yield warning(each, "the interface of its data address was not found.", remedy)
        elif each.facts.get("up") is False:
            yield error(each, f"{interface} is down.", as_root(each, "up"))
        elif each.facts.get("carrier") == 0:
            yield error(each, f"{interface} has no link.", "Look at cable, transceiver and the switch's port.")
        else:
            good.append(each.name)
            yield from _speed(each)
    yield from fine(good, "the data interface has its link.")


def is_dead(each: NodeState) -> bool:
    """Tell whether its interface is down or has no link. Faults that follow from that are not reported."""
    return each.facts.get("up") is False or each.facts.get("carrier") == 0


def is_loopback(each: NodeState) -> bool:
    """Tell whether no other host can send to its data address."""
    try:
        return each.address is not None and ip_address(each.address).is_loopback
    except ValueError:  # a name
        return False


def _speed(each: NodeState) -> Iterator[Finding]:
    speed_bps, wanted_bps = each.facts.get("speed_bps"), each.node.link.rate_bps
    if each.facts.get("duplex") == "half":
        remedy = f"Let both ends negotiate: {command(each, 'negotiate')}; the same on the switch's port."
        yield warning(each, f"{each.interface} runs half duplex: both directions share the link.", remedy)
    if speed_bps is None or wanted_bps is None or speed_bps == wanted_bps:
        return
    text = f"{each.interface} runs at {format_rate(speed_bps)}, the rig file has {format_rate(wanted_bps)}."
    remedy = "Correct the rig file, unless the link is slower elsewhere."
    if speed_bps < wanted_bps:
        remedy = f"Look at the cable and the switch's port ({command(each, 'medium')}), or correct the rig file."
    level = warning if speed_bps < wanted_bps else note
    yield level(each, text, remedy, speed_mbps=speed_bps / 1e6, wanted_mbps=wanted_bps / 1e6)


def mtu(state: RigState) -> Iterator[Finding]:
    """Compare the MTUs with the rig file and with each other."""
    known = [each for each in state.reached() if each.facts.get("mtu") is not None and each.interface not in LOOPBACKS]
    sizes = {each.name: each.facts["mtu"] for each in known}
    wrong = [each for each in known if each.node.link.mtu not in (None, sizes[each.name])]
    for each in wrong:
        wanted, has = each.node.link.mtu, sizes[each.name]
        text = f"{each.interface} has MTU {has}, the rig file {wanted}."
        yield warning(each, text, as_root(each, "mtu", mtu=wanted), mtu=has, wanted_mtu=wanted)
    if len(set(sizes.values())) > 1:
        own = {name: size for name, size in sizes.items() if state.nodes[name] not in wrong}
        text = f"the MTUs of the data interfaces differ, {by_value(own)}. {_SMALLER}"
        differ = warning(nodes_of(own), text, "Give the interfaces the same MTU.")
        yield from unlike(own, state.nodes, differ, _unlike)
    elif not wrong:
        for size in set(sizes.values()):
            yield from fine(sizes, f"MTU {size}.", mtu=size)


def _unlike(each: NodeState, usual: int, others: str) -> Finding:
    size = each.facts["mtu"]
    text = f"{each.interface} has MTU {size}, {others}. {_SMALLER}"
    return warning(each, text, as_root(each, "mtu", mtu=usual), mtu=size, usual_mtu=usual)


def routes(state: RigState) -> Iterator[Finding]:
    """Check by `ip route get` or `route get` that data leave by the data interface."""
    good = []
    for each in state.reached():
        known, wrong = _routes_by_peer(state, each), misrouted(state, each)
        for (_, to), way in wrong.items():
            yield _misrouted(each, to, way)
        for ends, way in known.items():
            own = each.facts.get("mtu")
            if ends not in wrong and way.mtu is not None and own is not None and way.mtu < own:
                text = f"the route to {ends[1]} has MTU {way.mtu}, its interface {own}."
                remedy = f"{as_root(each, 'forget routes')}; or change the route."
                yield warning(each, text, remedy, route_mtu=way.mtu, mtu=own)
        if not wrong and each.around is not None and each.around.routes and _is_usable(each):
            good.append(each.name)
    yield from fine(good, "data leave by the data interface.")


def misrouted(state: RigState, each: NodeState) -> dict[tuple[str, str], Route]:
    """Return the routes of a node that do not lead over its data interface, by node and peer."""
    right = {each.interface, *LOOPBACKS, *(each.around.above if each.around is not None else ())}
    return {ends: way for ends, way in _routes_by_peer(state, each).items() if way.device not in right}


def _is_usable(each: NodeState) -> bool:
    return each.interface is not None and not is_dead(each) and not is_loopback(each)


def _routes_by_peer(state: RigState, each: NodeState) -> dict[tuple[str, str], Route]:
    """Return the routes of a node whose interface can be used, by node and peer."""
    if each.around is None or not _is_usable(each):
        return {}
    names = {other.address: other.name for other in state.nodes.values() if other.address is not None}
    routes = each.around.routes.items()
    return {(each.name, names.get(peer, peer)): way for peer, way in routes if peer != each.address}


def _misrouted(each: NodeState, to: str, way: Route) -> Finding:
    if way.device is not None:
        via = f" via {way.via}" if way.via else ""
        text = f"data to {to} ({way.peer}) leave by {way.device}{via}, not by {each.interface}."
        change = as_root(each, "set route", peer=way.peer, own=each.address)
        wrong = f"If {way.device} is the right one: data_interface: {way.device} in the rig file."
        return error(each, text, f"{wrong} Else {change[:1].lower()}{change[1:]}")
    reason, _, forbidding = way.reason.partition("; ")
    if not forbidding:
        remedy = f"On the node: {command(each, 'show route', peer=way.peer, own=each.address)}"
        return error(each, f"no route to {to} ({way.peer}): {reason}.", remedy)
    kind, _, rest = forbidding.partition(" ")
    text = f"no route to {to} ({way.peer}): a route of type {kind} covers it, {rest} ({reason})."
    return error(each, text, f"On the node, as root: ip route del {forbidding}")


def traffic(state: RigState) -> Iterator[Finding]:
    """Report the present traffic of other programs on the data interface."""
    good = []
    for each in state.reached():
        if each.around is None or each.around.rx_bps is None or each.around.tx_bps is None:
            continue
        rx_mbps, tx_mbps = each.around.rx_bps / 1e6, each.around.tx_bps / 1e6
        if max(rx_mbps, tx_mbps) * 1e6 > max(BUSY_BPS, BUSY_SHARE * (state.rate_bps(each.name) or 0)):
            text = f"other traffic on {each.interface} now: {rx_mbps:.1f} Mbit/s in, {tx_mbps:.1f} Mbit/s out."
            remedy = f"Find what causes it, as with: {command(each, 'sockets')}; or measure when it is over."
            yield warning(each, text, remedy, rx_mbps=round(rx_mbps, 3), tx_mbps=round(tx_mbps, 3))
        else:
            good.append(each.name)
    yield from fine(good, "no other traffic on the data interface.")
