"""Check that the data interfaces carried the data of a repetition: their counters against those of the receivers.

A route that leads elsewhere gives a clean result of the wrong cable. An interface counts at least the bytes of its
payload, whatever its offloads do with headers; half of them is clearly too few. What also uses the interface only adds
to its counters, so it can hide a fault and never makes one.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from rigctl.base.errors import NodeError, named
from rigctl.check.rules.links import LOOPBACKS
from rigctl.probe.readiness import Surroundings, parse_surroundings, surroundings_script
from rigctl.records import Flow, NicCounters, NodeUsage
from rigctl.runner.nodes import Nodes

LEAST_BYTES: Final = 1_000_000
"""Below it other traffic, as of SSH, may be as much."""
LEAST_SHARE: Final = 0.5
LATE_S: Final = 3.0
"""Some drivers read their counters from the card once a second: of a shorter test the counters alone say nothing."""

_ELSEWHERE: Final = "the rest took another interface; look at the policy rules (ip rule) of both ends"


async def astray(flows: Iterable[Flow], usage: Iterable[NodeUsage], duration_s: float, nodes: Nodes) -> str | None:
    """Return why the data did not flow over the data interfaces, or None if they did, or nothing is known."""
    moved = tuple(flows)
    suspects = {each.node: each for each in usage if _short(each, moved)}
    ways = dict(zip(suspects, await asyncio.gather(*(_asked(nodes, name, moved) for name in suspects)), strict=True))
    found = [_verdict(each, moved, ways[name], duration_s, nodes) for name, each in suspects.items()]
    verdicts = [verdict for verdict in found if verdict is not None]
    if not verdicts:
        return None
    causes = [cause for _, cause in verdicts if cause is not None]
    return f"{named([said for said, _ in verdicts])}: {causes[0] if causes else _ELSEWHERE}"


def _short(usage: NodeUsage, flows: Iterable[Flow]) -> bool:
    return any(_is_short(*each) for each in _counts(usage, flows))


def _is_short(payload: int, carried: int | None) -> bool:
    return carried is not None and payload >= LEAST_BYTES and carried < LEAST_SHARE * payload


def _counts(usage: NodeUsage, flows: Iterable[Flow]) -> tuple[tuple[int, int | None], tuple[int, int | None]]:
    """Payload and what the interface carried: out, then in."""
    sent = received = 0
    for flow in flows:
        payload = flow.receiver.bytes if flow.receiver is not None else 0
        sent += payload if flow.stream.sender == usage.node else 0
        received += payload if flow.stream.receiver == usage.node else 0
    nic = usage.nic or NicCounters()
    return (sent, nic.tx_bytes), (received, nic.rx_bytes)


async def _asked(nodes: Nodes, name: str, flows: Iterable[Flow]) -> dict[str, str | None] | None:
    """The interface by which `name` sends to each of its peers; None: not known, or a bond or bridge is on it."""
    peers = {_peer(flow, name) for flow in flows if name in flow.stream.ends}
    try:
        addresses = {peer: nodes.data_address(peer) for peer in peers}
        script = surroundings_script(
            nodes.data_interface(name), nodes.data_address(name), list(addresses.values()), traffic=False
        )
        around: Surroundings = parse_surroundings(await nodes.shell(name)(script))
    except NodeError:
        return None
    if around.above:
        return None
    return {peer: way.device for peer, address in addresses.items() if (way := around.routes.get(address)) is not None}


def _peer(flow: Flow, name: str) -> str:
    return next((end for end in flow.stream.ends if end != name), name)


def _verdict(
    usage: NodeUsage, flows: tuple[Flow, ...], ways: Mapping[str, str | None] | None, duration_s: float, nodes: Nodes
) -> tuple[str, str | None] | None:
    """Return what a node's interface carried, and the route that explains it; None if nothing is wrong, or known."""
    name, interface = usage.node, nodes.data_interface(usage.node)
    if ways is None:
        return None
    distant = [flow for flow in flows if name in flow.stream.ends and ways.get(_peer(flow, name)) not in LOOPBACKS]
    others = {peer: way for peer, way in ways.items() if way not in (None, interface, *LOOPBACKS)}
    for (payload, carried), verb in zip(_counts(usage, distant), ("sent", "received"), strict=True):
        if carried is None or not _is_short(payload, carried) or (duration_s < LATE_S and not others):
            continue
        said = f"{name}: {interface} carried {carried / 1e6:,.0f} of {payload / 1e6:,.0f} MB {verb}"
        if others:
            peer, way = next(iter(others.items()))
            return said, f"data to {peer} leave by {way} ({name}: ip route get {nodes.data_address(peer)})"
        return said, None
    return None
