"""One repetition of one cell, or of all classes of a test, from its orders to its records.

`measure_together` has the stages in their order.

Beside the traffic: switch counters, throttled Raspberry Pis, and whether the data interfaces carried the data.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from rigctl.base.errors import NodeError, named, of_nodes
from rigctl.check.rules.nodes import LOOPBACKS
from rigctl.probe.facts import throttled_between, throttled_now
from rigctl.probe.readiness import Surroundings, parse_surroundings, surroundings_script
from rigctl.records import Flow, NicCounters, NodeUsage, PortSeries, Repetition, Status
from rigctl.runner.by_agent import ByAgent
from rigctl.runner.by_iperf3 import ByIperf3
from rigctl.runner.engine import DRAIN_S, SALVAGE_S, Attempt, Bench, Engine
from rigctl.runner.nodes import Nodes
from rigctl.runner.outcome import Counted, recorded, worst_of, write_captures
from rigctl.runner.progress import Progress
from rigctl.runner.schedule import Blocked, Order, pairs_without
from rigctl.settings import MAX_RATE, RATE
from rigctl.settings.kinds import AGENT, IPERF3

ENGINES: Final[Mapping[str, Engine]] = {AGENT: ByAgent, IPERF3: ByIperf3}
"""The class that measures a repetition, for each engine of `rigctl.engines`."""
REPORT_S: Final = 10.0
_STOPPED: Final = "stopped by Ctrl-C or a signal"
LEAST_BYTES: Final = 1_000_000
"""Below this number other traffic, as of SSH, may be as much."""
LEAST_SHARE: Final = 0.5
LATE_S: Final = 3.0
"""Some drivers read their counters from the card once a second: counters alone prove nothing in a shorter test."""
_ELSEWHERE: Final = "the rest took another interface; look at the policy rules (ip rule) of both ends"


async def measure_together(
    orders: Sequence[Order], bench: Bench, max_skew_s: float, progress: Progress
) -> list[Repetition]:
    """Measure one repetition, and return a record for each order; whatever goes wrong on the rig is in the records.

    Return INTERRUPTED records if cancelled: the caller goes no further. All records have the same status.
    """
    try:
        orders, left_out = await measurable(orders, bench.nodes, bench.blocked)
    except asyncio.CancelledError:
        return _Around(orders, bench).records([], Status.INTERRUPTED, _STOPPED, None)
    around, cell = _Around(orders, bench), orders[0].cell
    attempt = ENGINES[cell.engine](orders, bench, progress)
    status, reason = Status.OK, None
    try:
        await bench.conditions.hold(cell)
        await around.begin(attempt)
        bench.conditions.check(cell)
        await attempt.traffic()
        bench.conditions.check(cell)
    except asyncio.CancelledError:
        return around.records([], Status.INTERRUPTED, _STOPPED, None)
    except TimeoutError as late:
        status, reason = Status.FAILED, f"not finished {DRAIN_S:g} s after its planned end; {late}"
    except (NodeError, ExceptionGroup) as error:
        status, reason = Status.FAILED, "; ".join(of_nodes(_reasons(error)))
    if reason is not None:
        reason = await attempt.stop(reason)
    counted = await around.collect(attempt, REPORT_S if status is Status.OK else SALVAGE_S)
    if status is Status.OK and counted[0].missing is not None:
        status, reason = Status.FAILED, counted[0].missing
    if status is Status.OK:
        ways = await astray(counted[0].flows + counted[0].beside, counted[0].usage, cell.duration_s, bench.nodes)
        counted = [replace(own, astray=ways) for own in counted]
    await attempt.close()
    return [_in_part(result, left_out) for result in around.records(counted, status, reason, max_skew_s)]


def _in_part(result: Repetition, left_out: str | None) -> Repetition:
    if left_out is None:
        return result
    if result.status is Status.OK:
        return replace(result, reason=left_out, goodput_median_bps=None)
    return replace(result, reason=f"{result.reason}; {left_out}")


def _reasons(error: Exception) -> list[NodeError]:
    """Return the reasons in `error`, however deep groups nest them. Raise what is not the rig's failure."""
    if isinstance(error, ExceptionGroup):
        return [reason for inner in error.exceptions for reason in _reasons(inner)]
    if not isinstance(error, NodeError):
        raise error
    return [error]


class _Around:
    """The measurements beside the traffic, for every engine: switch counters, throttling, times."""

    def __init__(self, orders: Sequence[Order], bench: Bench) -> None:
        self._orders, self._nodes, self._counters = orders, bench.nodes, bench.counters
        self._names, self._captures = sorted(orders[0].cell.nodes), bench.captures
        self._flags_before: dict[str, int | None] = {}
        self._flags_after: dict[str, int | None] = {}
        self._read: tuple[tuple[PortSeries, ...], tuple[str, ...]] = ((), ())
        self._started_at, self._began_s = time.time(), time.monotonic()

    async def begin(self, attempt: Attempt) -> None:
        """Open the nodes, read the counters, prepare the flows."""
        await self._nodes.agents(self._names)
        self._flags_before = self._flags_after = await _throttle_flags(self._nodes, self._names)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._counters.begin())
            group.create_task(attempt.prepare())

    async def collect(self, attempt: Attempt, deadline_s: float) -> Sequence[Counted]:
        """Collect what the engine counted and, if the repetition did not fail, the switches."""
        ended_ns = time.monotonic_ns()

        async def read() -> None:
            if deadline_s > SALVAGE_S:
                self._read = await self._counters.end(self._orders[0].cell, attempt.at_ns, ended_ns)

        counted, _ = await asyncio.gather(attempt.collect(deadline_s), read())
        self._flags_after = await _throttle_flags(self._nodes, self._names)
        return counted

    def records(
        self, counted: Sequence[Counted], status: Status, reason: str | None, max_skew_s: float | None
    ) -> list[Repetition]:
        before, after = self._flags_before, self._flags_after
        throttled = {name: throttled_between(before.get(name), after.get(name)) for name in self._names}
        each = list(zip(self._orders, counted or [Counted()] * len(self._orders), strict=True))
        made = [recorded(*own, status, reason, max_skew_s, throttled) for own in each]
        worst = worst_of([order.cell for order in self._orders], made)
        if worst is not None and worst[0] is Status.FAILED:  # without a measurement interval
            made = [recorded(*own, *worst, max_skew_s, throttled) for own in each]
        elif worst is not None:
            made = [replace(result, status=worst[0], reason=worst[1]) for result in made]
        return [
            replace(
                result,
                started_at=self._started_at,
                wall_s=time.monotonic() - self._began_s,
                counters=self._read[0],
                counters_missing=self._read[1],
                captures=write_captures(own.captured, self._names_of_captures(order)) if order.cell.capture else (),
            )
            for result, (order, own) in zip(made, each, strict=True)
        ]

    def _names_of_captures(self, order: Order) -> str:
        attempt = "" if order.attempt == 1 else f"-attempt{order.attempt}"
        return f"{self._captures}-test{order.cell.number}-{order.repetition}{attempt}"


async def measurable(orders: Sequence[Order], nodes: Nodes, blocked: Blocked) -> tuple[Sequence[Order], str | None]:
    """Return the orders without the pairs that cannot be measured, and the text that names them; None if all can be.

    A test without a pair that can be measured stays as it is: it fails, with the reason.
    """
    cell, numbers = orders[0].cell, {order.cell.number for order in orders}
    if len(cell.pairs) < 2:
        return orders, None
    lost = await nodes.lost(cell.nodes)
    known = {pair: why for (number, pair), why in blocked.items() if number in numbers}
    kept = tuple(pair for pair in pairs_without(cell, lost) if pair not in known)
    if not kept or len(kept) == len(cell.pairs) or cell[RATE] == MAX_RATE:
        return orders, None
    left = [pair for pair in cell.pairs if pair not in kept]
    reasons = [*of_nodes(lost.values()), *dict.fromkeys(known[pair] for pair in left if pair in known)]
    which = named([f"{pair.source} → {pair.destination}" for pair in left])
    fewer = [replace(order, cell=replace(order.cell, pairs=kept)) for order in orders]
    return fewer, f"not measured: {which} ({'; '.join(reasons)})"


async def _throttle_flags(nodes: Nodes, names: Iterable[str]) -> dict[str, int | None]:
    """Return the flags of the Raspberry Pis among `names`; None if a node does not answer."""

    async def flags(name: str) -> int | None:
        try:
            return await throttled_now(nodes.shell(name))
        except NodeError:
            return None

    pis = [name for name in names if nodes.is_pi(name)]
    return dict(zip(pis, await asyncio.gather(*map(flags, pis)), strict=True))


async def astray(flows: Iterable[Flow], usage: Iterable[NodeUsage], duration_s: float, nodes: Nodes) -> str | None:
    """Return why the data did not flow over the data interfaces, or None if they did, or nothing is known.

    A route that leads elsewhere gives a clean result of the wrong cable. An interface counts at least the bytes of its
    payload, whatever its offloads do with headers; half of them is clearly too few. Other traffic of the interface only
    adds to its counters: it can hide a fault, and never makes one.
    """
    moved = tuple(flows)
    suspects = {each.node: each for each in usage if any(_is_short(*counts) for counts in _counts(each, moved))}
    ways = dict(zip(suspects, await asyncio.gather(*(_asked(nodes, name, moved) for name in suspects)), strict=True))
    found = [_verdict(each, moved, ways[name], duration_s, nodes) for name, each in suspects.items()]
    said = [verdict[0] for verdict in found if verdict is not None]
    causes = [verdict[1] for verdict in found if verdict is not None and verdict[1] is not None]
    return f"{named(said)}: {[*causes, _ELSEWHERE][0]}" if said else None


def _is_short(payload: int, carried: int | None) -> bool:
    return carried is not None and payload >= LEAST_BYTES and carried < LEAST_SHARE * payload


def _counts(usage: NodeUsage, flows: Iterable[Flow]) -> tuple[tuple[int, int | None], tuple[int, int | None]]:
    """Return the bytes of payload and those that the interface carried: out, then in."""
    sent = received = 0
    for flow in flows:
        payload = flow.receiver.bytes if flow.receiver is not None else 0
        sent += payload if flow.stream.sender == usage.node else 0
        received += payload if flow.stream.receiver == usage.node else 0
    nic = usage.nic or NicCounters()
    return (sent, nic.tx_bytes), (received, nic.rx_bytes)


async def _asked(nodes: Nodes, name: str, flows: Iterable[Flow]) -> dict[str, str | None] | None:
    """Return the interface by which `name` sends to each peer; None: unknown, or a bond or bridge is on it."""
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
