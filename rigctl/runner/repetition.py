"""One repetition of one cell, from its orders to its record. `measure_cell` has the stages in their order."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from rigctl.base.errors import NodeError, of_nodes
from rigctl.records import PortSeries, Repetition, Status
from rigctl.runner.by_agent import ByAgent
from rigctl.runner.by_iperf3 import ByIperf3
from rigctl.runner.captures import write_captures
from rigctl.runner.carried import astray
from rigctl.runner.engine import DRAIN_S, SALVAGE_S, Attempt, Bench, Engine
from rigctl.runner.measurable import measurable
from rigctl.runner.orders import Order
from rigctl.runner.outcome import Counted, recorded
from rigctl.runner.progress import Progress
from rigctl.runner.throttling import ThrottleWatch
from rigctl.settings.engines import AGENT, IPERF3

ENGINES: Final[Mapping[str, Engine]] = {AGENT: ByAgent, IPERF3: ByIperf3}
"""Of each engine of `rigctl.engines`, what measures a repetition."""
REPORT_S: Final = 10.0
_STOPPED: Final = "stopped by Ctrl-C or a signal"


async def measure_cell(order: Order, bench: Bench, max_skew_s: float, progress: Progress) -> Repetition:
    """Measure one repetition; whatever goes wrong on the rig is in the record, not raised.

    Cancelled, it gives an INTERRUPTED record: the caller goes no further.
    """
    try:
        order, left_out = await measurable(order, bench.nodes, bench.blocked)
    except asyncio.CancelledError:
        return _Around(order, bench).record(Counted(), Status.INTERRUPTED, _STOPPED, None)
    around = _Around(order, bench)
    attempt = ENGINES[order.cell.engine](order, bench, progress)
    status, reason = Status.OK, None
    try:
        await bench.conditions.hold(order.cell)
        await around.begin(attempt)
        bench.conditions.check(order.cell)
        await attempt.traffic()
        bench.conditions.check(order.cell)
    except asyncio.CancelledError:
        return around.record(Counted(), Status.INTERRUPTED, _STOPPED, None)
    except TimeoutError as late:
        status, reason = Status.FAILED, f"not finished {DRAIN_S:g} s after its planned end; {late}"
    except (NodeError, ExceptionGroup) as error:
        status, reason = Status.FAILED, "; ".join(of_nodes(_reasons(error)))
    if reason is not None:
        reason = await attempt.stop(reason)
    counted = await around.collect(attempt, REPORT_S if status is Status.OK else SALVAGE_S)
    if status is Status.OK and counted.missing is not None:
        status, reason = Status.FAILED, counted.missing
    if status is Status.OK:
        ways = await astray(counted.flows, counted.usage, order.cell.duration_s, bench.nodes)
        counted = replace(counted, astray=ways)
    await attempt.close()
    return _in_part(around.record(counted, status, reason, max_skew_s), left_out)


def _in_part(result: Repetition, left_out: str | None) -> Repetition:
    """A repetition without some pairs: what is known of the others counts, their sum is not that of the test."""
    if left_out is None:
        return result
    if result.status is Status.OK:
        return replace(result, reason=left_out, goodput_median_bps=None)
    return replace(result, reason=f"{result.reason}; {left_out}")


def _reasons(error: Exception) -> list[NodeError]:
    """The reasons in `error`, however deep groups nest them. What is not the rig's failure is raised."""
    if isinstance(error, ExceptionGroup):
        return [reason for inner in error.exceptions for reason in _reasons(inner)]
    if not isinstance(error, NodeError):
        raise error
    return [error]


class _Around:
    """What is looked at beside the traffic, whoever makes it: switch counters and throttling; and the times."""

    def __init__(self, order: Order, bench: Bench) -> None:
        self._order, self._nodes, self._counters = order, bench.nodes, bench.counters
        self._names = sorted(order.cell.nodes)
        self._throttling = ThrottleWatch(bench.nodes)
        self._read: tuple[tuple[PortSeries, ...], tuple[str, ...]] = ((), ())
        attempt = "" if order.attempt == 1 else f"-attempt{order.attempt}"
        self._capture_names = f"{bench.captures}-test{order.cell.number}-{order.repetition}{attempt}"
        self._started_at, self._began_s = time.time(), time.monotonic()

    async def begin(self, attempt: Attempt) -> None:
        """The nodes open, the counters read, the flows prepared."""
        await self._nodes.agents(self._names)
        await self._throttling.look(self._names)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._counters.begin())
            group.create_task(attempt.prepare())

    async def collect(self, attempt: Attempt, deadline_s: float) -> Counted:
        """What the engine and, of a repetition that did not fail, the switches counted."""
        ended_ns = time.monotonic_ns()

        async def read() -> None:
            # The failed, too, may be looked into; but nobody waits for their counters.
            if deadline_s > SALVAGE_S:
                self._read = await self._counters.end(self._order.cell, attempt.at_ns, ended_ns)

        counted, _ = await asyncio.gather(attempt.collect(deadline_s), read())
        await self._throttling.look(self._names)
        return counted

    def record(self, counted: Counted, status: Status, reason: str | None, max_skew_s: float | None) -> Repetition:
        """What was measured, cut to the measurement interval and checked."""
        throttled = {name: self._throttling.throttled(name) for name in self._names}
        return replace(
            recorded(self._order, counted, status, reason, max_skew_s, throttled),
            started_at=self._started_at,
            wall_s=time.monotonic() - self._began_s,
            counters=self._read[0],
            counters_missing=self._read[1],
            captures=write_captures(counted.captured, self._capture_names) if self._order.cell.capture else (),
        )
