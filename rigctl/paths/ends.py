"""The ends of paths: which pairs of nodes are probed, at which addresses, and what their nodes know of each other."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from rigctl.base.errors import NodeError
from rigctl.hosts.fact import Runner
from rigctl.hosts.surroundings import ask_peer_macs, ask_surroundings
from rigctl.paths.probing import PathState, Spot, literal
from rigctl.paths.state import NodeState
from rigctl.records import Cell, RunPlan
from rigctl.settings.kinds import IPERF3

_MOST_PAIRS: Final = 600
"""Without a scenario, all pairs are probed if at most 600 (24 nodes), else each node with the next two by name."""


def pairs_to_probe(plan: RunPlan | None, names: list[str]) -> list[tuple[str, str]]:
    """Return the ordered pairs to probe: those of `plan` in both directions; without a plan, see `_MOST_PAIRS`."""
    if plan is not None:
        return sorted({ends for cell in plan.cells for ends in both_ways(cell)})
    count = len(names)
    steps = range(1, count) if count * (count - 1) <= _MOST_PAIRS else (1, 2, count - 2, count - 1)
    return [(name, names[(number + step) % count]) for step in steps for number, name in enumerate(names)]


def both_ways(cell: Cell) -> set[tuple[str, str]]:
    """Return source and destination of all pairs, and the reverse, because TCP's acknowledgements flow back."""
    forward = {(pair.source, pair.destination) for pair in cell.pairs}
    return forward | {(destination, source) for source, destination in forward}


def needed_ways(cell: Cell) -> set[tuple[str, str]]:
    """Return the ordered pairs of nodes over which a test opens connections or sends datagrams.

    The way back of a connection is not needed as a way of its own: a stateful firewall lets its packets pass.
    """
    if cell.engine == IPERF3:  # its clients connect from the source, whichever end sends
        return {(pair.source, pair.destination) for pair in cell.pairs}
    return {stream.ends for stream in cell.streams}


def same_family(pairs: Iterable[tuple[str, str]], spots: Mapping[str, Spot]) -> list[tuple[str, str]]:
    """Return the pairs whose ends both have an address of the same IP version."""
    known = [pair for pair in pairs if set(pair) <= spots.keys()]
    return [(source, peer) for source, peer in known if spots[source].version == spots[peer].version]


async def spot_of(state: NodeState, receivers: int = 1) -> Spot | None:
    """Return where to probe a node; None if its address is unknown. `receivers`: most that a test opens there."""
    address = await literal(state.address) if state.address is not None else None
    known = (state.facts.get("mtu"), state.node.data_ports, receivers)
    return None if address is None else Spot(state.name, address, *known)


def peers_of(name: str, nodes: Mapping[str, NodeState], pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return the data addresses of a node's destinations, without those of another IP version."""
    own = nodes[name].address or ""
    found = (nodes[destination].address for source, destination in pairs if source == name)
    return [address for address in found if address is not None and (":" in address) == (":" in own)]


async def look_around(
    run: Runner,
    state: NodeState,
    peers: Iterable[str],
    folders: Sequence[str] = (),
    congestions: Sequence[str] = (),
    *,
    traffic: bool = True,
) -> None:
    """Store in `state` the node's routes to `peers`, traffic, disks, loadable modules; nothing if the node is lost."""
    own = await literal(state.address) if state.address else None
    if own is None:
        return
    there = [address for peer in peers if (address := await literal(peer)) is not None]
    with suppress(NodeError):
        state.around = await ask_surroundings(run, state.interface, own, there, folders, congestions, traffic=traffic)


async def ask_neighbours(run: Mapping[str, Runner], nodes: Mapping[str, NodeState], paths: Sequence[PathState]) -> None:
    """Store in `nodes` the peers' MAC addresses that senders of faulty `paths` know. `run` runs commands, by node."""

    async def ask(name: str, peers: list[str]) -> None:
        with suppress(NodeError):
            nodes[name].neighbours = await ask_peer_macs(run[name], nodes[name].interface or "", peers)

    wanted: dict[str, list[str]] = {}
    for path in paths:
        if not path.whole and path.source in run and (address := nodes[path.destination].address) is not None:
            wanted.setdefault(path.source, []).append(address)
    await asyncio.gather(*(ask(name, peers) for name, peers in wanted.items()))
