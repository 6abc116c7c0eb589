"""Measures one repetition of one cell, or of all classes of a test, and returns its records.

`measure_together` has the steps in order. Before and after the traffic it reads switch counters and the throttle flags
of Raspberry Pis. It also checks that the data used the data interfaces.
"""

import asyncio
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from rigctl.base.errors import NodeError, join_names, of_nodes
from rigctl.hosts.fact import ask_one
from rigctl.hosts.machine import THROTTLE_FLAGS, is_throttled_between
from rigctl.hosts.surroundings import LOOPBACKS, ask_surroundings
from rigctl.model.trials import searched_setting
from rigctl.records import Capture, Cell, Flow, NicCounters, NodeUsage, Pair, PortSeries, Repetition, Status
from rigctl.runner.by_agent import ByAgent
from rigctl.runner.by_iperf3 import ByIperf3
from rigctl.runner.engine import DRAIN_S, SALVAGE_S, Attempt, Bench, Engine
from rigctl.runner.nodes import Nodes
from rigctl.runner.outcome import Measurement, combine_status, make_repetition, write_captures
from rigctl.runner.progress import Progress
from rigctl.runner.schedule import MOST_ATTEMPTS, Blocked, MeasurementOrder, pairs_without
from rigctl.settings.kinds import AGENT, IPERF3

ENGINES: Final[Mapping[str, Engine]] = {AGENT: ByAgent, IPERF3: ByIperf3}
"""The class that measures a repetition, by engine name."""
_STOPPED: Final = "stopped by Ctrl-C or a signal"
_LEAST_BYTES: Final = 1_000_000
"""Least payload in bytes that can prove a wrong route. Less could hide in other traffic, such as SSH."""
_LEAST_SHARE: Final = 0.5
_LATE_S: Final = 3.0
"""Shortest test in which counters alone prove a wrong route: some drivers update counters once a second only."""
_ELSEWHERE: Final = "the rest took another interface; look at the policy rules (ip rule) of both ends"


async def measure_together(
    orders: Sequence[MeasurementOrder], bench: Bench, max_skew_s: float, progress: Progress
) -> list[Repetition]:
    """Measure one repetition; return a record per traffic class (an order each), all with the same status.

    A failure of the rig gives the status FAILED. Cancelling gives INTERRUPTED; the caller must then stop.
    """
    try:
        orders, left_out = await drop_unmeasurable(orders, bench.nodes, bench.blocked)
    except asyncio.CancelledError:
        return _Observer(orders, bench).records([], Status.INTERRUPTED, _STOPPED)
    observer, cell = _Observer(orders, bench), _with_all_pairs(orders)
    attempt = ENGINES[cell.engine](orders, bench, progress)
    status, reason, misrouted = Status.OK, None, None
    try:
        await bench.conditions.hold(cell)
        await observer.begin(attempt)
        bench.conditions.check(cell)
        await attempt.traffic()
        bench.conditions.check(cell)
    except asyncio.CancelledError:
        return observer.records([], Status.INTERRUPTED, _STOPPED)
    except TimeoutError as late:
        status, reason = Status.FAILED, f"not finished {DRAIN_S:g} s after its planned end; {late}"
    except (NodeError, ExceptionGroup) as error:
        status, reason = Status.FAILED, "; ".join(of_nodes(_reasons(error)))
    if reason is not None:
        reason = await attempt.stop(reason)
    measured = await observer.collect(attempt, 10.0 if status is Status.OK else SALVAGE_S)
    if status is Status.OK and measured[0].missing is not None:
        status, reason = Status.FAILED, measured[0].missing
    if status is Status.OK:
        misrouted = await _misrouted(measured, cell, bench.nodes)
    await attempt.close()
    results = observer.records(measured, status, reason, max_skew_s, misrouted)
    return results if left_out is None else [_in_part(result, left_out) for result in results]


def _with_all_pairs(orders: Sequence[MeasurementOrder]) -> Cell:
    """Return the first of the tests measured together, with the pairs of all of them."""
    pairs = dict.fromkeys(pair for order in orders for pair in order.cell.pairs)
    return replace(orders[0].cell, pairs=tuple(pairs))


async def _misrouted(measured: Sequence[Measurement], cell: Cell, nodes: Nodes) -> str | None:
    """Return why data did not use the data interfaces, judged by all classes that send during the whole test."""
    whole = [own for own in measured if own.lasts_whole_test]
    usage = {each.node: each for own in whole for each in own.usage}
    flows = [flow for own in whole for flow in own.flows]
    return await reason_misrouted(flows, usage.values(), cell.duration_s, nodes)


def _in_part(result: Repetition, left_out: str) -> Repetition:
    if result.status is Status.OK:
        return replace(result, reason=left_out, goodput_median_bps=None)
    return replace(result, reason=f"{result.reason}; {left_out}")


def _reasons(error: Exception) -> list[NodeError]:
    """Return all `NodeError`s in `error`, also from nested groups. Raise any other error."""
    if isinstance(error, ExceptionGroup):
        return [reason for inner in error.exceptions for reason in _reasons(inner)]
    if not isinstance(error, NodeError):
        raise error
    return [error]


class _Observer:
    """Reads switch counters and throttle flags before and after the traffic of any engine, and makes the records."""

    def __init__(self, orders: Sequence[MeasurementOrder], bench: Bench) -> None:
        self._orders, self._nodes, self._counters = orders, bench.nodes, bench.counters
        self._cell, self._captures = _with_all_pairs(orders), bench.captures
        self._names = sorted(self._cell.nodes)
        self._flags: dict[str, int | None] = {}  # throttle flags before the traffic, by node
        self._ports: tuple[PortSeries, ...] = ()
        self._silent: tuple[str, ...] = ()  # messages on switches that did not answer
        self._started_at, self._began_s = time.time(), time.monotonic()

    async def begin(self, attempt: Attempt) -> None:
        """Open the nodes, read throttle flags and switch counters, and let the engine prepare the flows."""
        await self._nodes.agents(self._names)
        self._flags = await _throttle_flags(self._nodes, self._names)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._counters.begin())
            group.create_task(attempt.prepare())

    async def collect(self, attempt: Attempt, deadline_s: float) -> list[Measurement]:
        """Return the engine's measurements. Read throttle flags and, unless the repetition failed, switch counters."""
        ended_ns = time.monotonic_ns()

        async def read() -> None:
            if deadline_s > SALVAGE_S:
                self._ports, self._silent = await self._counters.end(self._cell, attempt.at_ns, ended_ns)

        measured, _ = await asyncio.gather(attempt.collect(deadline_s), read())
        after = await _throttle_flags(self._nodes, self._names)
        throttled = {name: is_throttled_between(self._flags.get(name), after.get(name)) for name in self._names}
        return [
            replace(each, usage=tuple(replace(node, throttled=throttled.get(node.node)) for node in each.usage))
            for each in measured
        ]

    def records(
        self,
        measured: Sequence[Measurement],
        status: Status,
        reason: str | None,
        max_skew_s: float = math.inf,
        misrouted: str | None = None,
    ) -> list[Repetition]:
        each = list(zip(self._orders, measured or [Measurement()] * len(self._orders), strict=True))
        results = [make_repetition(*own, status, reason, max_skew_s, misrouted) for own in each]
        combined = combine_status([order.cell for order in self._orders], results)
        if combined is not None and combined[0] is Status.FAILED:  # a failed repetition has no measurement interval
            results = [make_repetition(*own, *combined) for own in each]
        elif combined is not None:
            results = [replace(result, status=combined[0], reason=combined[1]) for result in results]
        return [
            replace(
                result,
                started_at=self._started_at,
                wall_s=time.monotonic() - self._began_s,
                counters=self._ports,
                counters_missing=self._silent,
                captures=self._write_captures(order, own, result),
            )
            for result, (order, own) in zip(results, each, strict=True)
        ]

    def _write_captures(self, order: MeasurementOrder, own: Measurement, result: Repetition) -> tuple[Capture, ...]:
        """Write and return captures; none of an invalid first attempt, because it is measured again."""
        measured_again = result.status is Status.INVALID and order.attempt < MOST_ATTEMPTS
        prefix = f"{self._captures}-test{order.cell.number}-{order.repetition}"
        return write_captures(own.ends, prefix) if order.cell.capture and not measured_again else ()


async def drop_unmeasurable(
    orders: Sequence[MeasurementOrder], nodes: Nodes, blocked: Blocked
) -> tuple[Sequence[MeasurementOrder], str | None]:
    """Return the orders without the pairs that cannot be measured, and a text that names these pairs, or None.

    If a test or a class has no measurable pair, all orders stay unchanged, so that they fail with the reason.
    """
    cell, numbers = _with_all_pairs(orders), {order.cell.number for order in orders}
    if len(cell.pairs) < 2:
        return orders, None
    lost = await nodes.lost(cell.nodes)
    known = {pair: why for (number, pair), why in blocked.items() if number in numbers}
    kept = {pair for pair in pairs_without(cell, lost) if pair not in known}
    left = [pair for pair in cell.pairs if pair not in kept]
    if not left or searched_setting(cell) is not None or any(kept.isdisjoint(order.cell.pairs) for order in orders):
        return orders, None
    reasons = [*of_nodes(lost.values()), *dict.fromkeys(known[pair] for pair in left if pair in known)]
    which = join_names([f"{pair.source} → {pair.destination}" for pair in left])
    return [_without(order, left) for order in orders], f"not measured: {which} ({'; '.join(reasons)})"


def _without(order: MeasurementOrder, left: Sequence[Pair]) -> MeasurementOrder:
    kept = tuple(pair for pair in order.cell.pairs if pair not in left)
    return replace(order, cell=replace(order.cell, pairs=kept))


async def _throttle_flags(nodes: Nodes, names: Iterable[str]) -> dict[str, int | None]:
    """Return the throttle flags of the Raspberry Pis among `names`; None for a node that does not answer."""

    async def ask(name: str) -> None:
        with suppress(NodeError):
            flags[name] = await ask_one(nodes.shell(name), THROTTLE_FLAGS)

    flags: dict[str, int | None] = {name: None for name in names if nodes.facts_of(name).get("pi_model")}
    await asyncio.gather(*map(ask, flags))
    return flags


async def reason_misrouted(
    flows: Sequence[Flow], usage: Iterable[NodeUsage], duration_s: float, nodes: Nodes
) -> str | None:
    """Return why the data did not use the data interfaces; None if they did, or if this is unknown.

    With a wrong route, the result looks plausible, but belongs to another cable. An interface that carried the data
    counts at least the payload bytes; below half of them, the route is wrong. Other traffic can only hide this.
    """
    suspects = [each for each in usage if any(_is_short(*counts) for counts in _bytes_carried(each, flows))]
    devices = await asyncio.gather(*(_devices(nodes, each.node, flows) for each in suspects))
    verdicts = [
        verdict
        for each, own in zip(suspects, devices, strict=True)
        if own is not None and (verdict := _verdict(each, flows, own, duration_s, nodes)) is not None
    ]
    causes = [cause for _, cause in verdicts if cause is not None]
    return f"{join_names([text for text, _ in verdicts])}: {[*causes, _ELSEWHERE][0]}" if verdicts else None


def _is_short(payload: int, carried: int | None) -> bool:
    return carried is not None and payload >= _LEAST_BYTES and carried < _LEAST_SHARE * payload


def _bytes_carried(usage: NodeUsage, flows: Iterable[Flow]) -> tuple[tuple[int, int | None], tuple[int, int | None]]:
    """Return payload bytes and the interface's bytes (None if unknown), first of sending, then of receiving."""
    sent = received = 0
    for flow in flows:
        payload = flow.receiver.bytes if flow.receiver is not None else 0
        sent += payload if flow.stream.sender == usage.node else 0
        received += payload if flow.stream.receiver == usage.node else 0
    nic = usage.nic or NicCounters()
    return (sent, nic.tx_bytes), (received, nic.rx_bytes)


async def _devices(nodes: Nodes, name: str, flows: Iterable[Flow]) -> dict[str, str | None] | None:
    """Return the interface of the route to each peer; None if unknown, or if a bond or bridge uses it."""
    peers = {_peer(flow, name) for flow in flows if name in flow.stream.ends}
    try:
        addresses = {peer: nodes.data_address(peer) for peer in peers}
        interface, own, there = nodes.data_interface(name), nodes.data_address(name), list(addresses.values())
        around = await ask_surroundings(nodes.shell(name), interface, own, there, traffic=False)
    except NodeError:
        return None
    if around.above:
        return None
    return {peer: around.routes[address].device for peer, address in addresses.items() if address in around.routes}


def _peer(flow: Flow, name: str) -> str:
    return next((end for end in flow.stream.ends if end != name), name)


def _verdict(
    usage: NodeUsage, flows: Iterable[Flow], devices: Mapping[str, str | None], duration_s: float, nodes: Nodes
) -> tuple[str, str | None] | None:
    """Return how little a node's interface carried, and the wrong route if known; None if the bytes are plausible."""
    name, interface = usage.node, nodes.data_interface(usage.node)
    distant = [flow for flow in flows if name in flow.stream.ends and devices.get(_peer(flow, name)) not in LOOPBACKS]
    others = {peer: device for peer, device in devices.items() if device not in (None, interface, *LOOPBACKS)}
    for (payload, carried), verb in zip(_bytes_carried(usage, distant), ("sent", "received"), strict=True):
        if carried is None or not _is_short(payload, carried) or (duration_s < _LATE_S and not others):
            continue
        text = f"{name}: {interface} carried {carried / 1e6:,.0f} of {payload / 1e6:,.0f} MB {verb}"
        if others:
            peer, device = next(iter(others.items()))
            return text, f"data to {peer} leave by {device} ({name}: ip route get {nodes.data_address(peer)})"
        return text, None
    return None
