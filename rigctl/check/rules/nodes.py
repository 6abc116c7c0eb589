"""Rules on nodes: access, lock, agent, rights, clock, and the data interface's MTU and other traffic."""

from collections.abc import Iterator
from typing import Final

from rigctl.findings import Finding, about_nodes
from rigctl.findings import link as links
from rigctl.findings import mtu as mtus
from rigctl.findings import nodes as said
from rigctl.hosts.surroundings import LOOPBACKS
from rigctl.paths.commands import as_root, by_value, command_on, find_deviating, find_on, say_in_order
from rigctl.paths.state import NodeState, RigState
from rigctl.records import host_system
from rigctl.settings.kinds import IPERF3

_CLOCK_AHEAD_S: Final = 1.0
"""Clock difference from which logs and captures of two nodes are hard to compare."""
SKEW_S: Final = 0.010
"""Limit of the start skew for a check without scenario."""
_REACHED: Final = {
    "ssh": "reached by SSH, with known host keys",
    "openssh": "reached by ssh(1), with known host keys",
    "srun": "reached by srun, in its allocation",
    "local": "this machine, reached without SSH",
    "netns": "a network namespace of this machine, reached without SSH",
}


def check_reach(state: RigState) -> Iterator[Finding]:
    """Check that each node can be reached (by SSH: with a known host key), is not locked, and has a data address."""
    failed = [each for each in state.nodes.values() if each.failure is not None and each.failure.stage != "agent"]
    yield from (find_on(each, said.UNREACHABLE, why=each.failure.text) for each in failed if each.failure is not None)
    good = [each for each in state.nodes.values() if each not in failed]
    for transport, how in _REACHED.items():
        names = (each.name for each in good if each.node.transport == transport)
        yield from say_in_order(said.NODES_REACHED, names, how=how)


def agent(state: RigState) -> Iterator[Finding]:
    """Check that the agent runs from its usual folder, and that the host settings of earlier runs were restored."""
    for each in state.nodes.values():
        if each.failure is not None and each.failure.stage == "agent":
            yield find_on(each, said.AGENT_FAILS, why=each.failure.text)
        if each.note is not None:
            yield find_on(each, said.AGENT_FOLDER, note=each.note)
        if each.unrestored is not None:
            yield find_on(each, said.UNRESTORED, settings=each.unrestored)
    machines = {each.name: each.machine for each in state.nodes.values() if each.machine is not None}
    for machine in sorted(set(machines.values())):
        names = (name for name, own in machines.items() if own == machine)
        yield from say_in_order(said.AGENT_RUNS, names, machine=machine)


def rights(state: RigState) -> Iterator[Finding]:
    """Check that agents run as root, as with `sudo: true`, if conditions or captures need root."""
    needs = [f"condition {condition.name}" for condition in state.conditions() if condition.settings]
    needs += ["captures"] if any(cell.capture for cell in state.cells()) else []
    for each in state.reached() if needs else ():
        if each.as_root is False:
            yield find_on(each, said.NO_ADMINISTRATOR if each.is_windows else said.NO_ROOT, needs=", ".join(needs))
    good = (each.name for each in state.reached() if needs and each.as_root)
    yield from say_in_order(said.ROOT, good, needs=", ".join(needs))


def conditions(state: RigState) -> Iterator[Finding]:
    """Report settings of conditions that a node refuses, as far as this is known without changing the settings."""
    for each in state.nodes.values():
        for text in each.refused:
            if each.as_root is False and text.endswith("(EACCES)"):
                continue  # `rights` reports it
            why, _, remedy = text.partition("; in PowerShell, ")  # the agent for Windows names the command
            refused = said.REFUSED.advising(bool(remedy))
            yield find_on(each, refused, why=why, remedy=f"in PowerShell, {remedy}")


def iperf3(state: RigState) -> Iterator[Finding]:
    """Check that the nodes of tests with `engine: iperf3` have iperf3."""
    users = {name for cell in state.cells() if cell.engine == IPERF3 for name in cell.nodes}
    for each in state.reached():
        if each.name in users and each.facts.get(IPERF3) is None:
            yield find_on(each, said.NO_IPERF3)


_UNCHECKED: Final = {
    "FreeBSD": "socket buffers, congestion control, the card and the processor",
    "Windows": "routes, other traffic, the clock, socket buffers, congestion control, the card and the processor",
}


def name_unchecked(state: RigState) -> Iterator[Finding]:
    """Report which checks are left out on FreeBSD and Windows nodes."""
    for each in state.reached():
        system = host_system(each.facts)
        if system in _UNCHECKED:
            yield find_on(each, said.UNCHECKED, system=system, proof=said.PROOF[system], unchecked=_UNCHECKED[system])


def clock(state: RigState) -> Iterator[Finding]:
    """Check the wall clocks, and that the clock offsets are exact enough to start flows at the same time."""
    bound_s = state.plan.max_skew_s if state.plan is not None else SKEW_S
    good = {}
    for each in state.nodes.values():
        ahead_s = _surely_ahead_s(each)
        if ahead_s is not None and abs(ahead_s) < _CLOCK_AHEAD_S:
            good[each.name] = abs(ahead_s)
        elif ahead_s is not None:
            way, numbers = "ahead of" if ahead_s > 0 else "behind", {"clock_ahead_s": round(ahead_s, 3)}
            yield find_on(each, said.CLOCK_OFF, numbers, apart_s=abs(ahead_s), way=way, command=as_root(each, "clock"))
        if each.clock_error_s is not None and each.clock_error_s > bound_s:
            numbers = {"clock_error_ms": round(each.clock_error_s * 1e3, 3)}
            yield find_on(each, said.CLOCK_COARSE, numbers, bound_ms=bound_s * 1e3)
    yield from say_in_order(said.CLOCKS_AGREE, good, {"clock_ahead_s": round(max(good.values(), default=0.0), 3)})


def _surely_ahead_s(state: NodeState) -> float | None:
    """Return how many seconds the node's clock is ahead at least (negative: behind); None if unknown."""
    if state.clock_ahead_s is None:
        return None
    low, high = state.clock_ahead_s
    return 0.0 if low <= 0 <= high else low if low > 0 else high


_BUSY_SHARE: Final = 0.01
"""Other traffic above this share of the link's rate affects results."""
_BUSY_BPS: Final = 1e6
"""Limit of other traffic for a link whose rate is unknown or below 100 Mbit/s."""


def mtu(state: RigState) -> Iterator[Finding]:
    """Check that the nodes have the MTU of the rig file, and all the same MTU."""
    known = [each for each in state.reached() if each.facts.get("mtu") is not None and each.interface not in LOOPBACKS]
    sizes = {each.name: each.facts["mtu"] for each in known}
    wrong = [each for each in known if each.node.link.mtu not in (None, sizes[each.name])]
    for each in wrong:
        wanted, has = each.node.link.mtu, sizes[each.name]
        numbers = {"mtu": has, "wanted_mtu": wanted}
        yield find_on(each, mtus.MTU_OFF, numbers, command=as_root(each, "mtu", mtu=wanted))
    if len(set(sizes.values())) > 1:
        own = {name: size for name, size in sizes.items() if state.nodes[name] not in wrong}
        differ = mtus.MTUS_DIFFER.say(about_nodes(own), values=by_value(own))
        yield from find_deviating(own, state.nodes, differ, _unlike)
    elif not wrong:
        for size in set(sizes.values()):
            yield from say_in_order(mtus.SAME_MTU, sizes, {"mtu": size}, mtu=size)


def _unlike(each: NodeState, usual: int, others: str) -> Finding:
    numbers = {"mtu": each.facts["mtu"], "usual_mtu": usual}
    return find_on(each, mtus.MTU_UNLIKE, numbers, others=others, command=as_root(each, "mtu", mtu=usual))


def traffic(state: RigState) -> Iterator[Finding]:
    """Report traffic on the data interface; before a run, it comes from other programs."""
    good = []
    for each in state.reached():
        if each.around is None or each.around.rx_bps is None or each.around.tx_bps is None:
            continue
        rx_mbps, tx_mbps = each.around.rx_bps / 1e6, each.around.tx_bps / 1e6
        if max(rx_mbps, tx_mbps) * 1e6 > max(_BUSY_BPS, _BUSY_SHARE * (state.rate_bps(each.name) or 0)):
            numbers = {"rx_mbps": round(rx_mbps, 3), "tx_mbps": round(tx_mbps, 3)}
            yield find_on(each, links.OTHER_TRAFFIC, numbers, command=command_on(each, "sockets"))
        else:
            good.append(each.name)
    yield from say_in_order(links.NO_OTHER_TRAFFIC, good)
