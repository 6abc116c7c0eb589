"""The engine `iperf3`: measures a repetition with the nodes' own iperf3, over rigctl's SSH connections.

Each pair's destination runs a server, which listens before any client starts. All clients are started at once. iperf3
reports its start in whole seconds only. The true start lies between the order to start and the end minus the duration;
rigctl takes the middle, with half of this interval as error bound. The start skew is unknown.
"""

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from rigctl.base.errors import NodeError, RigError
from rigctl.base.values import total
from rigctl.findings.nodes import NO_IPERF3
from rigctl.hosts.fact import ask_one
from rigctl.hosts.machine import LISTENING_PORTS
from rigctl.measure import iperf3
from rigctl.paths.preparing import PREPARE_S
from rigctl.protocol.orders import Listen, Sockets
from rigctl.records import Facts, NodeUsage, Pair, RunPlan
from rigctl.remote.children import Children, ProgramEnd, children_on
from rigctl.runner.engine import DRAIN_S, Bench, interval_ms
from rigctl.runner.outcome import Measurement
from rigctl.runner.progress import Progress
from rigctl.runner.schedule import MeasurementOrder
from rigctl.settings.kinds import IPERF3

_LOOK_S: Final = 0.05
"""Interval at which the servers are checked for listening."""


def check_iperf3(plan: RunPlan, facts: Mapping[str, Facts]) -> None:
    """Raise `RigError` with the names of all nodes in `facts` that need iperf3 for `plan` and lack it."""
    missing = [name for name in _users(plan, facts) if facts[name].get(IPERF3) is None]
    if missing:
        raise RigError(f"{', '.join(missing)}: {NO_IPERF3.text} {NO_IPERF3.remedy}")


def iperf3_versions(plan: RunPlan, facts: Mapping[str, Facts]) -> dict[str, str]:
    """Return the nodes' iperf3 versions, as one text under the key `iperf3`; empty if no node uses iperf3."""
    versions = sorted({str(facts[name][IPERF3]) for name in _users(plan, facts) if facts[name].get(IPERF3)})
    return {IPERF3: ", ".join(versions)} if versions else {}


def _users(plan: RunPlan, facts: Mapping[str, Facts]) -> list[str]:
    pairs = [pair for cell in plan.cells if cell.engine == IPERF3 for pair in cell.pairs]
    return sorted({name for pair in pairs for name in (pair.source, pair.destination)} & facts.keys())


@dataclass(slots=True)
class _Work:
    """A pair, and the numbers that `Children` gave its iperf3 processes; None: not started."""

    pair: Pair
    port: int = 0
    server: int | None = None
    client: int | None = None


class ByIperf3:
    """Measures one repetition by iperf3; implements `runner.engine.Attempt`."""

    def __init__(self, orders: Sequence[MeasurementOrder], bench: Bench, progress: Progress) -> None:  # noqa: ARG002 — iperf3 reports at its end only
        (order,) = orders
        self.order, self.cell = order, order.cell
        self.at_ns = 0
        self._nodes = bench.nodes
        self._works = [_Work(pair) for pair in order.cell.pairs]
        self._interval_s = iperf3.interval_s(order.cell, interval_ms(order.cell.duration_s) / 1e3)
        self._stack = AsyncExitStack()
        self._children: dict[str, Children] = {}

    async def prepare(self) -> None:
        """Start a server for every pair, and wait until all servers listen."""
        try:
            await self._open()
            await self._choose_ports()
            for work in self._works:
                address = self._nodes.data_address(work.pair.destination)
                words = iperf3.server_words(address, work.port, self._interval_s)
                work.server = self._children[work.pair.destination].start(words)
            await asyncio.gather(*map(self._listening, sorted({work.pair.destination for work in self._works})))
        except BaseException:
            await self.close()
            raise

    async def traffic(self) -> None:
        """Start all clients at once, and wait until every process has ended. Raise the first error of a process."""
        self.at_ns = time.monotonic_ns()
        for work in self._works:
            source, destination = work.pair.source, work.pair.destination
            to, bind = self._nodes.data_address(destination), self._nodes.data_address(source)
            words = iperf3.client_words(self.cell, to, work.port, bind, self._interval_s, self.order.rate_bps)
            work.client = self._children[source].start(words)
        try:
            async with asyncio.timeout(PREPARE_S + self.cell.duration_s + DRAIN_S), asyncio.TaskGroup() as group:
                for work in self._works:
                    group.create_task(self._follow(work))
        except TimeoutError:
            late = {work.pair.source for work in self._works if not self._over(work)}
            raise TimeoutError(f"waiting for iperf3 on {', '.join(sorted(late))}") from None
        except asyncio.CancelledError:
            await self.close()
            raise

    async def stop(self, reason: str) -> str:
        """End all processes, because a server would wait for a client that never comes. Return `reason`."""
        await self.close()
        return reason

    async def collect(self, deadline_s: float) -> Sequence[Measurement]:  # noqa: ARG002 — it does not wait
        """Return one measurement, with the pairs whose client and server both gave a report."""
        exchanges, errors_ns, missing = [], [], []
        for work in self._works:
            try:
                exchange, error_ns = self._exchange(work)
            except NodeError as error:
                missing.append(str(error))
            else:
                exchanges.append(exchange)
                errors_ns.append(error_ns)
        measured = Measurement(
            flows=tuple(flow for exchange in exchanges for flow in iperf3.flows_of_pair(exchange, self.cell)),
            usage=self._usage(exchanges),
            at_ns=min((exchange.anchor_ns for exchange in exchanges), default=self.at_ns),
            clock_error_ns=max(errors_ns, default=None),
            skew_known=False,
            interval_s=self._interval_s,
            missing="; ".join(missing) or None,
        )
        return [measured]

    async def close(self) -> None:
        """End every process, by closing the input of the shells that started them."""
        with contextlib.suppress(NodeError, ExceptionGroup):  # processes on a lost node end without the controller
            await self._stack.aclose()

    async def _open(self) -> None:
        names = sorted(self.cell.nodes)
        deadline_s = 2 * PREPARE_S + self.cell.duration_s + DRAIN_S
        for name, opened in (await self._nodes.open(names)).items():
            if isinstance(opened, NodeError):
                raise opened
            self._children[name] = await self._stack.enter_async_context(children_on(opened[0], deadline_s))

    async def _choose_ports(self) -> None:
        """Find a free port for each server in the rig file's range: the node's agent opens it and closes it again."""
        agents = await self._nodes.agents({work.pair.destination for work in self._works})
        plain = Sockets(token="0" * 32, flows=1, interval_ms=1000, wait_ms=1000)
        try:
            for number, work in enumerate(self._works, 1):
                address = self._nodes.data_address(work.pair.destination)
                ports = self._nodes.data_ports(work.pair.destination)
                work.port = await agents[work.pair.destination].listen(Listen(number, address, plain, *ports))
        finally:
            for number, work in enumerate(self._works, 1):
                if work.port:
                    await agents[work.pair.destination].close(number)

    async def _listening(self, node: str) -> None:
        """Wait until every server on `node` listens. Raise `NodeError` if a server ended or is late."""
        own = [work for work in self._works if work.pair.destination == node]
        look, until_s = self._nodes.shell(node), time.monotonic() + PREPARE_S
        while True:
            ports = await ask_one(look, LISTENING_PORTS)
            if all(work.port in ports for work in own):
                return
            for work in own:
                if work.server is not None and self._children[node].over(work.server):
                    _read(node, await self._children[node].wait_end(work.server))
                    raise NodeError(node, "the iperf3 server ended before its client connected")
            if time.monotonic() > until_s:
                raise NodeError(node, f"the iperf3 server does not listen {PREPARE_S:g} s after its start")
            await asyncio.sleep(_LOOK_S)

    async def _follow(self, work: _Work) -> None:
        # The client's error comes first, because it also causes an error of the server.
        source, destination = work.pair.source, work.pair.destination
        assert work.client is not None and work.server is not None
        _read(source, await self._children[source].wait_end(work.client))
        _read(destination, await self._children[destination].wait_end(work.server))

    def _over(self, work: _Work) -> bool:
        return work.client is not None and self._children[work.pair.source].over(work.client)

    def _result(self, node: str, number: int | None) -> ProgramEnd:
        ended = None if number is None or node not in self._children else self._children[node].result(number)
        if ended is None:
            raise NodeError(node, "iperf3 gave no report")
        return ended

    def _exchange(self, work: _Work) -> tuple[iperf3.Exchange, int]:
        """Return a pair's reports and start, and the start's error bound in ns. Raise `NodeError` without a report."""
        pair = work.pair
        client, server = self._result(pair.source, work.client), self._result(pair.destination, work.server)
        at_client, at_server = _read(pair.source, client), _read(pair.destination, server)
        latest_ns = max(self.at_ns, (client.first_ns or time.monotonic_ns()) - round(at_client.seconds * 1e9))
        anchor_ns = (self.at_ns + latest_ns) // 2
        return iperf3.Exchange(pair, at_client, at_server, anchor_ns), latest_ns - anchor_ns

    def _usage(self, exchanges: Sequence[iperf3.Exchange]) -> tuple[NodeUsage, ...]:
        reports: dict[str, list[iperf3.ProcessReport]] = {name: [] for name in self._children}
        for exchange in exchanges:
            reports[exchange.pair.source].append(exchange.client)
            reports[exchange.pair.destination].append(exchange.server)
        usage = []
        for name, own in sorted(reports.items()):
            span_us = round(max(each.seconds for each in own) * 1e6) if own else None
            cpu_us = total(each.cpu_us for each in own)
            usage.append(NodeUsage(name, span_us, cpu_us, cpus=self._nodes.facts_of(name).get("cpus")))
        return tuple(usage)


def _read(node: str, ended: ProgramEnd) -> iperf3.ProcessReport:
    try:
        return iperf3.report(ended.output)
    except iperf3.ReportError as error:
        raise NodeError(node, f"iperf3: {error} (exit code {ended.exit_code})") from None
