"""One repetition of one cell, from its orders to its record. `measure_cell` has the stages in their order."""

import asyncio
import secrets
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypedDict

from rigctl.errors import NodeError
from rigctl.measure import TESTS, Channel, channels, latency
from rigctl.model.latency import baseline_s, probe_interval_ms
from rigctl.protocol import Connect, EndpointReport, Listen, Sockets, Start
from rigctl.records import Cell, PortSeries, Repetition, Status
from rigctl.remote.agent import Agent, RefusedError
from rigctl.runner.advice import advised
from rigctl.runner.barrier import Clocks, hold_ns, measure_clocks, start_instant
from rigctl.runner.captures import CAPTURE_BYTES, Seen, write_captures
from rigctl.runner.conditions import Conditions
from rigctl.runner.counters import Counters
from rigctl.runner.nodes import Nodes
from rigctl.runner.orders import Order
from rigctl.runner.outcome import Measured, Reports
from rigctl.runner.progress import Progress
from rigctl.runner.throttling import ThrottleWatch

PREPARE_S: Final = 5.0
"""A pair whose flows are not all connected by then is unreachable."""
DRAIN_S: Final = 12.0
"""After the planned end: what is queued drains, and an agent that sees no end-of-file gives up by itself."""
MOST_PREPARE_S: Final = 600.0
REPORT_S: Final = 10.0
SALVAGE_S: Final = 1.0
"""After a failure: what still answers within this is stored, the rest is not waited for."""
MOST_SAMPLES: Final = 3000
LEAST_INTERVAL_MS: Final = 100


@dataclass(frozen=True, slots=True)
class Bench:
    """What a repetition is measured with: the nodes, their host settings, the switches' counters."""

    nodes: Nodes
    conditions: Conditions
    counters: Counters
    captures: Path = Path("capture")  # how the names of pcap files begin


def interval_ms(duration_s: float) -> int:
    """Time between samples: 100 ms, longer where a flow would have more than `MOST_SAMPLES`."""
    return max(LEAST_INTERVAL_MS, -(-round(duration_s * 1000) // MOST_SAMPLES))


def prepare_s(cell: Cell) -> float:
    """How long the flows of a cell may take to be there, files to be sent included."""
    rate = cell.kind.prepare_bytes_per_s
    files = cell.parallel * len(cell.pairs) if rate is not None and cell.file.read == "disk" else 0
    return min(MOST_PREPARE_S, PREPARE_S + files * (cell.message_bytes or 0) / (rate or 1))


async def measure_cell(order: Order, bench: Bench, max_skew_s: float, progress: Progress) -> Repetition:
    """Measure one repetition; whatever goes wrong on the rig is in the record, not raised.

    Cancelled, it gives an INTERRUPTED record: the caller goes no further.
    """
    attempt = Attempt(order, bench, progress)
    status, reason = Status.OK, None
    try:
        await bench.conditions.hold(order.cell)
        await attempt.prepare()
        await attempt.start()
        await attempt.traffic()
    except asyncio.CancelledError:
        return attempt.record({}, Status.INTERRUPTED, "stopped by Ctrl-C or a signal", None)
    except TimeoutError:
        status, reason = Status.FAILED, f"not finished {DRAIN_S:g} s after its planned end; {attempt.late()}"
    except (NodeError, ExceptionGroup) as error:
        status, reason = Status.FAILED, "; ".join(_reasons(error))
    if status is Status.FAILED:
        await attempt.stop()
        reason = attempt.causes(str(reason))
    reports = await attempt.collect(REPORT_S if status is Status.OK else SALVAGE_S)
    if status is Status.OK and len(reports) < 2 * len(attempt.channels):
        status, reason = Status.FAILED, attempt.silent(reports)
    await attempt.forget()
    return attempt.record(reports, status, reason, max_skew_s)


def _reasons(error: Exception) -> list[str]:
    """The distinct reasons in `error`, however deep groups nest them. What is not the rig's failure is raised."""
    if isinstance(error, ExceptionGroup):
        return list(dict.fromkeys(text for inner in error.exceptions for text in _reasons(inner)))
    if not isinstance(error, NodeError):
        raise error
    return [str(error)]


class _Common(TypedDict):
    """What both ends of a channel get besides the test's settings."""

    token: str
    interval_ms: int
    wait_ms: int


class Attempt:
    """One repetition while it runs; `measure_cell` leads it."""

    def __init__(self, order: Order, bench: Bench, progress: Progress) -> None:
        self.order, self.cell = order, order.cell
        streams = channels(order.cell, lambda: secrets.token_hex(16))
        self._probes = latency.probe_channels(order.cell, lambda: secrets.token_hex(16))
        self.channels = streams + self._probes
        self._nodes, self._counters, self._progress = bench.nodes, bench.counters, progress
        self._names = sorted({name for pair in order.cell.pairs for name in (pair.source, pair.destination)})
        self._ends = [(node, channel.endpoint) for channel in self.channels for node in channel.stream.ends]
        self._open_ends = set(self._ends)
        self._agents: dict[str, Agent] = {}
        self._clocks: Clocks | None = None
        self._throttling = ThrottleWatch(bench.nodes)
        self._read: tuple[tuple[PortSeries, ...], tuple[str, ...]] = ((), ())
        self._unreported: dict[str, NodeError] = {}  # why there is no report, by node
        self._at_ns = 0
        self._broken: list[str] = []  # what endpoints said when they were stopped
        self._ports: dict[int, int] = {}
        attempt = "" if order.attempt == 1 else f"-attempt{order.attempt}"
        self._capture_names = f"{bench.captures}-test{order.cell.number}-{order.repetition}{attempt}"
        self._hold_ns = hold_ns(order.cell, virtual=bench.nodes.rig.virtual is not None)
        self._started_at, self._began_s = time.time(), time.monotonic()

    async def prepare(self) -> None:
        """Agents present, every flow connected and accepted, clocks compared."""
        self._agents = await self._nodes.agents(self._names)
        await self._throttling.look(self._names)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._counters.begin())
            group.create_task(self._connect_all())
        self._clocks = await measure_clocks(self._agents)

    async def start(self) -> None:
        """One instant for all flows, ordered on every node's own clock."""
        assert self._clocks is not None
        idle_s = baseline_s(self.cell)
        probes_ns = start_instant(self._clocks)
        self._at_ns = probes_ns + round(idle_s * 1e9)
        probing = {channel.endpoint for channel in self._probes}
        async with asyncio.TaskGroup() as group:
            for node, endpoint in self._ends:
                if endpoint in probing:
                    at_ns = self._clocks.on_node(node, probes_ns)
                    duration_ms = round((idle_s + self.cell.duration_s) * 1000)
                    group.create_task(self._agents[node].start(Start(endpoint, at_ns, duration_ms)))
                    continue
                start = Start(
                    endpoint,
                    at_ns=self._clocks.on_node(node, self._at_ns),
                    duration_ms=round(self.cell.duration_s * 1000),
                    iterations=self.cell.messages.iterations,
                    rate=self.order.rate_bps,
                    bin_us=self.cell.bin_us,
                    capture=CAPTURE_BYTES if self.cell.capture else None,
                    hold_us=round(self._hold_ns / 1e3),
                )
                group.create_task(self._agents[node].start(start))

    async def traffic(self) -> None:
        """Until every flow of every pair has ended. The first that breaks, or is late, fails the cell."""
        lead_s = (self._at_ns - time.monotonic_ns()) / 1e9
        async with asyncio.timeout(lead_s + self.cell.duration_s + DRAIN_S), asyncio.TaskGroup() as group:
            for channel in self.channels:
                group.create_task(self._follow(channel))

    async def stop(self) -> None:
        """End the traffic of every endpoint now, so that what was counted can be reported; never fails."""

        async def stopped(node: str, endpoint: int) -> None:
            try:
                async with asyncio.timeout(SALVAGE_S):
                    await self._agents[node].stop(endpoint)
                    await self._agents[node].ended_endpoint(endpoint)
            except (RefusedError, TimeoutError):
                pass
            except NodeError as error:
                self._broken.append(str(error))

        await asyncio.gather(*(stopped(*end) for end in self._reachable()))

    async def collect(self, deadline_s: float) -> Reports:
        """The report of every endpoint that gives one in time, by node and endpoint."""

        async def one(node: str, endpoint: int) -> EndpointReport | None:
            try:
                return await self._agents[node].report(endpoint, deadline_s=deadline_s)
            except NodeError as error:
                self._unreported.setdefault(node, error)
            return None

        async def counted() -> None:
            # The failed, too, may be looked into; but nobody waits for their counters.
            if deadline_s > SALVAGE_S:
                self._read = await self._counters.end(self.cell, self._at_ns, time.monotonic_ns())

        ends = self._reachable()
        reports, _ = await asyncio.gather(asyncio.gather(*(one(*end) for end in ends)), counted())
        await self._throttling.look(self._names)
        return {end: report for end, report in zip(ends, reports, strict=True) if report is not None}

    async def forget(self) -> None:
        """Close every endpoint; a node that does not answer is given up, and opened anew for the next cell."""

        async def one(node: str, endpoint: int) -> None:
            try:
                async with asyncio.timeout(SALVAGE_S):
                    await self._agents[node].close(endpoint)
            except (NodeError, TimeoutError):
                # An agent that refuses has no such endpoint; one that is silent or gone is of no use any more.
                if self._agents[node].ended or not await self._answers(node):
                    await self._nodes.drop(node)

        await asyncio.gather(*(one(*end) for end in self._reachable()))

    def deaths(self) -> list[str]:
        """Why agents ended: the cause, where all that their peers saw was a broken connection."""
        return [str(agent.failure) for agent in self._agents.values() if agent.failure is not None]

    def causes(self, reason: str) -> str:
        """`reason`, and what else is known when everything has been stopped: a receiver that misses its end-of-file
        is told first, its sender knows why."""
        deaths = self.deaths()
        return "; ".join(dict.fromkeys([*deaths, reason] if deaths else [reason, *self._broken]))

    def late(self) -> str:
        """Who has not ended."""
        return "waiting for " + ", ".join(f"{node}" for node in sorted({node for node, _ in self._open_ends}))

    def silent(self, reports: Reports) -> str:
        """Who gave no report, and why."""
        missing = sorted({node for node, end in self._ends if (node, end) not in reports})
        return "no report: " + "; ".join(str(self._unreported.get(node, node)) for node in missing)

    def record(self, reports: Reports, status: Status, reason: str | None, max_skew_s: float | None) -> Repetition:
        """What was measured, cut to the measurement interval and checked."""
        kept = write_captures(self._captured(reports), self._capture_names) if self.cell.capture else ()
        measured = Measured(
            order=self.order,
            channels=self.channels[: len(self.channels) - len(self._probes)],
            probes=self._probes,
            reports=reports,
            clocks=self._clocks,
            at_ns=self._at_ns,
            hold_ns=self._hold_ns,
            interval_s=interval_ms(self.cell.duration_s) / 1e3,
            throttled={name: self._throttling.throttled(name) for name in self._names},
        )
        return replace(
            measured.repetition(status, reason, max_skew_s),
            started_at=self._started_at,
            wall_s=time.monotonic() - self._began_s,
            counters=self._read[0],
            counters_missing=self._read[1],
            captures=kept,
        )

    async def _connect_all(self) -> None:
        """Every channel, even where one fails: each receiver that cannot be reached is named."""
        congestion = self.cell.tcp.congestion
        each = (advised(self._connect(channel), self._nodes, congestion) for channel in self.channels)
        done = await asyncio.gather(*each, return_exceptions=True)
        if failures := [failure for failure in done if isinstance(failure, Exception)]:
            raise ExceptionGroup("connecting", failures)

    async def _connect(self, channel: Channel) -> None:
        receiver, sender = self._agents[channel.receiver], self._agents[channel.sender]
        test, probing = TESTS[self.cell.test], channel in self._probes
        common = _Common(
            token=channel.token,
            interval_ms=probe_interval_ms(self.cell) if probing else interval_ms(self.cell.duration_s),
            wait_ms=round(prepare_s(self.cell) * 1000),
        )
        address, bind = self._nodes.data_address(channel.receiver), self._nodes.data_address(channel.sender)
        inside, outside = self._nodes.data_interface(channel.receiver), self._nodes.data_interface(channel.sender)
        receives, sends = test.settings(self.cell), test.settings(self.cell, sender=True)
        if probing:
            receives = sends = latency.settings()
        there, here = Sockets(interface=inside, **common, **receives), Sockets(interface=outside, **common, **sends)
        first, last = self._nodes.data_ports(channel.receiver)
        port = await receiver.listen(Listen(channel.endpoint, address, there, first, last))
        self._ports[channel.endpoint] = port
        await sender.connect(Connect(channel.endpoint, address, port, bind, here))
        await receiver.ready(channel.endpoint)

    async def _follow(self, channel: Channel) -> None:
        def progressed(clock_ns: int, total_bytes: int) -> None:
            self._progress.received(channel, clock_ns, total_bytes)

        async def ended(node: str) -> None:
            await self._agents[node].ended_endpoint(channel.endpoint)
            self._open_ends.discard((node, channel.endpoint))

        if channel not in self._probes:
            self._agents[channel.receiver].on_progress(channel.endpoint, progressed)
        async with asyncio.TaskGroup() as group:
            group.create_task(ended(channel.sender))
            group.create_task(ended(channel.receiver))

    async def _answers(self, node: str) -> bool:
        try:
            async with asyncio.timeout(SALVAGE_S):
                await self._agents[node].clock()
        except (NodeError, TimeoutError):
            return False
        return True

    def _reachable(self) -> list[tuple[str, int]]:
        return [(node, endpoint) for node, endpoint in self._ends if node in self._agents]

    def _captured(self, reports: Reports) -> list[Seen]:
        """What each end of each stream captured."""
        by_number = {channel.endpoint: channel for channel in self.channels}
        return [
            Seen(node, by_number[endpoint], self._ports.get(endpoint, 0), reports[node, endpoint])
            for node, endpoint in self._ends
            if (node, endpoint) in reports
        ]
