"""The engine `agent`: the nodes' agents make the traffic of a repetition, and report what they measured."""

import asyncio
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from rigctl.base.errors import NodeError, join_names, of_nodes
from rigctl.measure.orders import StreamEnds, burst, channels
from rigctl.model.latency import baseline_s
from rigctl.paths.preparing import connect_stream
from rigctl.protocol.orders import Start
from rigctl.protocol.report import EndpointReport
from rigctl.records import Cell, Flow, nodes_of_tests
from rigctl.remote.agent import Agent, RefusedError
from rigctl.remote.clocks import Clocks, measure_clocks
from rigctl.runner.engine import DRAIN_S, SALVAGE_S, Bench, interval_ms
from rigctl.runner.outcome import CAPTURE_BYTES, EndReport, Measurement, Reports, measurement
from rigctl.runner.progress import Progress
from rigctl.runner.schedule import MeasurementOrder
from rigctl.settings import ITERATIONS

LEAST_HOLD_NS: Final = 1_000_000
HOLD_PER_FLOW_NS: Final = 50_000
"""Pause per flow after its first byte, so that no flow's burst delays the first byte of another flow."""


def hold_ns(*cells: Cell) -> int:
    """Return the pause in ns of every flow after its first byte, longer if `cells` have more flows in all."""
    return max(LEAST_HOLD_NS, HOLD_PER_FLOW_NS * sum(len(cell.streams) * cell.parallel for cell in cells))


class ByAgent:
    """Measures one repetition by agents; implements `runner.engine.Attempt`."""

    def __init__(self, orders: Sequence[MeasurementOrder], bench: Bench, progress: Progress) -> None:
        self.cells = [order.cell for order in orders]
        self.channels = channels(self.cells, lambda: secrets.token_hex(16))
        self._order_of = {order.cell.traffic_class: order for order in orders}
        self._duration_s = self.cells[0].duration_s  # of the test; classes may start later and stop earlier
        self.at_ns = 0
        self._nodes, self._progress = bench.nodes, progress
        self._ends = [(node, channel.endpoint) for channel in self.channels for node in channel.stream.ends]
        self._open_ends = set(self._ends)
        self._agents: dict[str, Agent] = {}
        self._clocks: Clocks | None = None
        self._unreported: dict[str, NodeError] = {}  # by node: why its report is missing
        self._broken: list[str] = []  # errors that senders and receivers reported when they were stopped
        self._ports: dict[int, int] = {}
        self._hold_ns = hold_ns(*self.cells)

    async def prepare(self) -> None:
        """Connect every flow, and wait until all flows are accepted."""
        self._agents = await self._nodes.agents(nodes_of_tests(self.cells))
        await self._connect_all()

    async def traffic(self) -> None:
        """Compare the clocks, start all flows, and wait until all have ended. Raise the first error of a flow."""
        self._clocks = await measure_clocks(self._agents)
        await self._start(self._clocks)
        lead_s = (self.at_ns - time.monotonic_ns()) / 1e9
        try:
            async with asyncio.timeout(lead_s + self._duration_s + DRAIN_S), asyncio.TaskGroup() as group:
                for channel in self.channels:
                    group.create_task(self._follow(channel))
        except TimeoutError:
            raise TimeoutError(f"waiting for {join_names(sorted({node for node, _ in self._open_ends}))}") from None

    async def _start(self, clocks: Clocks) -> None:
        """Order all flows to start at the same time, by each node's clock; latency probes start earlier."""
        idle_s = max(map(baseline_s, self.cells))
        probes_ns = time.monotonic_ns() + round(clocks.lead_s() * 1e9)
        self.at_ns = probes_ns + round(idle_s * 1e9)
        async with asyncio.TaskGroup() as group:
            for channel in self.channels:
                order = self._order_of[channel.traffic_class]
                for node in channel.stream.ends:
                    start_s, stop_s = order.cell.span_s
                    start = Start(
                        channel.endpoint,
                        at_ns=clocks.on_node(node, self.at_ns + round(start_s * 1e9)),
                        duration_ms=round(order.cell.sending_s * 1000),
                        iterations=order.cell[ITERATIONS],
                        per_second=order.per_second if node == channel.sender else None,
                        rate=order.rate_bps,
                        burst=burst(order.cell, order.rate_bps),
                        bin_us=order.cell.bin_us,
                        capture=CAPTURE_BYTES if order.cell.capture else None,
                        hold_us=round(self._hold_ns / 1e3),
                    )
                    if channel.probing:
                        duration_ms = round((idle_s + stop_s) * 1000)
                        start = Start(channel.endpoint, clocks.on_node(node, probes_ns), duration_ms)
                    group.create_task(self._agents[node].start(start))

    async def stop(self, reason: str) -> str:
        """Stop all senders and receivers, so that agents can report. Return `reason`, and errors that explain it."""

        async def stopped(node: str, endpoint: int) -> None:
            try:
                async with asyncio.timeout(SALVAGE_S):
                    await self._agents[node].stop(endpoint)
                    await self._agents[node].wait_endpoint(endpoint)
            except (RefusedError, TimeoutError):
                pass
            except NodeError as error:
                self._broken.append(str(error))

        await asyncio.gather(*(stopped(*end) for end in self._reachable()))
        # If an agent has exited, name this as the cause: the other agents only saw broken connections. Otherwise the
        # senders' errors tell why receivers got no data.
        deaths = of_nodes(agent.failure for agent in self._agents.values() if agent.failure is not None)
        return "; ".join(dict.fromkeys([*deaths, reason] if deaths else [reason, *self._broken]))

    async def collect(self, deadline_s: float) -> Sequence[Measurement]:
        """Return a measurement per traffic class, from the senders and receivers that report in time."""

        async def report(node: str, endpoint: int) -> EndpointReport | None:
            try:
                return await self._agents[node].report(endpoint, deadline_s=deadline_s)
            except NodeError as error:
                self._unreported.setdefault(node, error)
            return None

        ends = self._reachable()
        given = await asyncio.gather(*(report(*end) for end in ends))
        reports = {end: each for end, each in zip(ends, given, strict=True) if each is not None}
        interval_s = interval_ms(self._duration_s) / 1e3
        started: dict[str, Any] = {"at_ns": self.at_ns, "hold_ns": self._hold_ns, "interval_s": interval_s}
        measured = [measurement(cell, self.channels, reports, self._clocks, **started) for cell in self.cells]
        return [
            replace(
                own,
                ends=self._end_reports(reports, cell) if cell.capture else (),
                missing=self._missing(reports),
                other_flows=self._flows_alongside(own, cell, measured),
            )
            for cell, own in zip(self.cells, measured, strict=True)
        ]

    def _flows_alongside(self, own: Measurement, cell: Cell, measured: Sequence[Measurement]) -> tuple[Flow, ...]:
        """Return the flows of the other classes that start and stop with those of `cell`."""
        each = zip(self.cells, measured, strict=True)
        return tuple(
            flow for beside, other in each if other is not own and beside.span_s == cell.span_s for flow in other.flows
        )

    async def close(self) -> None:
        """Close all senders and receivers. Disconnect nodes that do not answer; the next test connects them again."""

        async def one(node: str, endpoint: int) -> None:
            try:
                async with asyncio.timeout(SALVAGE_S):
                    await self._agents[node].close(endpoint)
            except (NodeError, TimeoutError):
                # An agent that answers, but refuses `close`, has nothing to close.
                if self._agents[node].ended or not await self._answers(node):
                    await self._nodes.drop(node)

        await asyncio.gather(*(one(*end) for end in self._reachable()))

    def _missing(self, reports: Reports) -> str | None:
        missing = sorted({node for node, end in self._ends if (node, end) not in reports})
        explained = of_nodes(self._unreported[node] for node in missing if node in self._unreported)
        others = [node for node in missing if node not in self._unreported]
        return f"no report: {'; '.join(explained + others)}" if missing else None

    async def _connect_all(self) -> None:
        """Connect the flows of every stream, also after errors, so that the failure names each unreachable receiver."""
        ends = {name: self._nodes.end(name, agent) for name, agent in self._agents.items()}

        async def connect(channel: StreamEnds) -> None:
            cell = self._order_of[channel.traffic_class].tried
            port = await connect_stream(cell, channel, ends, interval_ms(self._duration_s))
            self._ports[channel.endpoint] = port

        done = await asyncio.gather(*map(connect, self.channels), return_exceptions=True)
        if failures := [failure for failure in done if isinstance(failure, Exception)]:
            raise ExceptionGroup("connecting", failures)

    async def _follow(self, channel: StreamEnds) -> None:
        async def ended(node: str) -> None:
            await self._agents[node].wait_endpoint(channel.endpoint)
            self._open_ends.discard((node, channel.endpoint))

        if not channel.probing:
            self._agents[channel.receiver].on_progress(channel.endpoint, partial(self._progress.on_bytes, channel))
        async with asyncio.TaskGroup() as group:
            group.create_task(ended(channel.sender))
            group.create_task(ended(channel.receiver))

    async def _answers(self, node: str) -> bool:
        with suppress(NodeError, TimeoutError):
            async with asyncio.timeout(SALVAGE_S):
                await self._agents[node].clock()
            return True
        return False

    def _reachable(self) -> list[tuple[str, int]]:
        return [(node, endpoint) for node, endpoint in self._ends if node in self._agents]

    def _end_reports(self, reports: Reports, cell: Cell) -> tuple[EndReport, ...]:
        return tuple(
            EndReport(node, channel, self._ports.get(channel.endpoint, 0), report)
            for channel in self.channels
            if channel.traffic_class == cell.traffic_class
            for node in channel.stream.ends
            if (report := reports.get((node, channel.endpoint))) is not None
        )
