"""One repetition of one cell, from its orders to its record. The stages are in `measure_cell`, in their order."""

import asyncio
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rigctl.errors import NodeError, RigError
from rigctl.measure import TESTS, Stream, streams
from rigctl.model.contract import invalid_reason
from rigctl.model.window import common_window, cut
from rigctl.protocol import EndpointReport
from rigctl.records import Cell, Flow, NodeUsage, Repetition, Side, Status
from rigctl.remote.agent import Agent
from rigctl.runner.barrier import Clocks, measure_clocks, start_instant
from rigctl.runner.nodes import Nodes
from rigctl.runner.progress import Progress

PREPARE_S: Final = 5.0
"""A pair that has not connected by then is unreachable."""
DRAIN_S: Final = 12.0
"""After the planned end: what is queued drains, and an agent that sees no end-of-file gives up by itself."""
REPORT_S: Final = 10.0
SALVAGE_S: Final = 1.0
"""After a failure: what still answers within this is stored, the rest is not waited for."""
MOST_SAMPLES: Final = 3000
LEAST_INTERVAL_MS: Final = 100


@dataclass(frozen=True, slots=True)
class Order:
    """Which measurement: the cell, its repetition (from 1), the attempt (2 after an invalid one)."""

    cell: Cell
    repetition: int
    attempt: int


def interval_ms(duration_s: float) -> int:
    """Time between samples: 100 ms, longer where a flow would have more than `MOST_SAMPLES`."""
    return max(LEAST_INTERVAL_MS, -(-round(duration_s * 1000) // MOST_SAMPLES))


class Attempt:
    """The state of one repetition while it runs; `measure_cell` is its life."""

    def __init__(self, order: Order, nodes: Nodes, addresses: Mapping[str, str], progress: Progress) -> None:
        self.order, self.cell = order, order.cell
        self.streams = streams(order.cell, lambda: secrets.token_hex(16))
        self._nodes, self._addresses, self._progress = nodes, addresses, progress
        self._names = sorted({name for pair in order.cell.pairs for name in (pair.source, pair.destination)})
        self._agents: dict[str, Agent] = {}
        self._clocks: Clocks | None = None
        self._at_ns = 0
        self._started_at, self._began_s = time.time(), time.monotonic()

    async def prepare(self) -> None:
        """Agents present, every flow connected and accepted, clocks compared."""
        self._agents = await self._nodes.agents(self._names)
        async with asyncio.TaskGroup() as group:
            for stream in self.streams:
                group.create_task(self._connect(stream))
        self._clocks = await measure_clocks(self._agents)

    async def _connect(self, stream: Stream) -> None:
        receiver, sender = self._agents[stream.receiver], self._agents[stream.sender]
        settings = TESTS[self.cell.test].settings(self.cell) | {
            "endpoint": stream.endpoint,
            "token": stream.token,
            "interval_ms": interval_ms(self.cell.duration_s),
            "wait_ms": round(PREPARE_S * 1000),
        }
        address = self._addresses[stream.receiver]
        port = await receiver.listen(address=address, **settings)
        await sender.connect(address=address, port=port, bind=self._addresses[stream.sender], **settings)
        await receiver.ready(stream.endpoint)

    async def start(self) -> None:
        """One instant for all flows, ordered on every node's own clock."""
        assert self._clocks is not None
        self._at_ns = start_instant(self._clocks)
        duration_ms = round(self.cell.duration_s * 1000)
        async with asyncio.TaskGroup() as group:
            for node, endpoint in self._ends():
                at_ns = self._clocks.on_node(node, self._at_ns)
                group.create_task(self._agents[node].start(endpoint, at_ns=at_ns, duration_ms=duration_ms))

    async def traffic(self) -> None:
        """Until every flow of every pair has ended. The first that breaks, or is late, fails the cell."""
        late_s = (self._at_ns - time.monotonic_ns()) / 1e9 + self.cell.duration_s + DRAIN_S
        async with asyncio.timeout(late_s), asyncio.TaskGroup() as group:
            for stream in self.streams:
                group.create_task(self._follow(stream))

    async def _follow(self, stream: Stream) -> None:
        receiver, sender = self._agents[stream.receiver], self._agents[stream.sender]
        receiver.on_progress(stream.endpoint, lambda clock, total: self._progress.received(stream, clock, total))
        async with asyncio.TaskGroup() as group:
            group.create_task(sender.ended_endpoint(stream.endpoint))
            group.create_task(receiver.ended_endpoint(stream.endpoint))

    async def collect(self, deadline_s: float) -> dict[tuple[str, int], EndpointReport]:
        """The report of every endpoint that gives one in time, by node and endpoint."""

        async def one(node: str, endpoint: int) -> EndpointReport | None:
            try:
                return await self._agents[node].report(endpoint, deadline_s=deadline_s)
            except NodeError:
                return None

        ends = [(node, endpoint) for node, endpoint in self._ends() if node in self._agents]
        reports = await asyncio.gather(*(one(*end) for end in ends))
        return {end: report for end, report in zip(ends, reports, strict=True) if report is not None}

    async def halt(self) -> None:
        """Stop what still runs and forget every endpoint; never fails."""

        async def one(node: str, endpoint: int) -> None:
            with contextlib.suppress(NodeError):
                await self._agents[node].close(endpoint, deadline_s=SALVAGE_S)

        await asyncio.gather(*(one(node, endpoint) for node, endpoint in self._ends() if node in self._agents))

    async def stop(self) -> None:
        """End the traffic of every endpoint now, so that what was counted can be reported; never fails."""

        async def one(node: str, endpoint: int) -> None:
            with contextlib.suppress(NodeError, TimeoutError):
                async with asyncio.timeout(SALVAGE_S):
                    await self._agents[node].stop(endpoint)
                    await self._agents[node].ended_endpoint(endpoint)

        await asyncio.gather(*(one(node, endpoint) for node, endpoint in self._ends() if node in self._agents))

    def record(self, reports: Mapping[tuple[str, int], EndpointReport], failure: str | None) -> Repetition:
        """What was measured, cut to the common window and judged."""
        flows = [flow for stream in self.streams for flow in self._flows(stream, reports)]
        planned_end_ns = self._at_ns + round(self.cell.duration_s * 1e9)
        window = common_window(flows, self.cell.omit_s, planned_end_ns)
        usage = self._usage(reports)
        status, reason = Status.OK, failure
        if failure is not None:
            status = Status.FAILED
        else:
            reason = invalid_reason(self.cell, window, usage, self._max_skew_s)
            status = Status.OK if reason is None else Status.INVALID
        return Repetition(
            cell=self.cell.number,
            repetition=self.order.repetition,
            attempt=self.order.attempt,
            status=status,
            reason=reason,
            started_at=self._started_at,
            wall_s=time.monotonic() - self._began_s,
            window_start_ns=window.start_ns if window else None,
            window_end_ns=window.end_ns if window else None,
            start_skew_us=window.skew_ns / 1e3 if window else None,
            clock_error_us=self._clocks.error_ns / 1e3 if self._clocks else None,
            flows=tuple(cut(flow, window) if window else flow for flow in flows),
            nodes=usage,
        )
