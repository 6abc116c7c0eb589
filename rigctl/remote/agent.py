"""Sends orders (commands) to a running agent and reads its answers and events, as lines of text over any transport.

`running` has a task that reads, and a task that pings: the agent exits if it receives no line for 15 s. When
the stream ends or breaks the protocol, all waiting and all later orders fail with the same `NodeError`.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from rigctl.base.errors import NodeError
from rigctl.protocol import lines, orders
from rigctl.protocol.host_facts import HostReply
from rigctl.protocol.lines import Answer, ReportLine
from rigctl.protocol.report import ROWS_LIMIT, EndpointReport, endpoint_report
from rigctl.remote.host import RemoteProcess
from rigctl.remote.lock import Queue

_ORDER_DEADLINE_S: Final = 5.0
_SETTING_DEADLINE_S: Final = 10.0
"""A card may take its link down to change a setting, and with it this connection. A ping would then fail, too."""
_UNREAD_S: Final = 0.1
"""Time after a deadline to read an answer that has arrived already, in case the controller itself was delayed."""
HELLO_DEADLINE_S: Final = 10.0
PING_AFTER_S: Final = 5.0
_END_DEADLINE_S: Final = 2.0
_BEYOND_WAIT_S: Final = 2.0
"""The agent answers `connect` and `ready` within their `wait_ms`; the controller gives up this much later."""
LOOK_S: Final = 0.5
"""Interval at which an empty line is sent to an agent that has not said hello, to keep its watchdog quiet."""
_BINS_PER_ROW: Final = 20
"""20 bins, or 20 histogram buckets, count as one row against `ROWS_LIMIT` of a report."""
_LEAST_ROWS: Final = 20
"""A line of a report counts as at least this many rows, because a short line takes some 1.5 KB of memory."""
_REPORT_BYTES: Final = 96 * 1024**2
"""Size limit of one report: 10,000,000 bins and a packet capture fit."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One clock exchange: the controller's clock before and after, the node's clock in between, all in ns."""

    sent_ns: int
    node_ns: int
    received_ns: int


class RefusedError(NodeError):
    """The agent understood an order but could not carry it out. `error` is an errno name, as `EADDRNOTAVAIL`."""

    def __init__(self, node: str, verb: str, error: str, message: str) -> None:
        super().__init__(node, f"{verb}: {message} ({error})")
        self.error = error


@dataclass(frozen=True, slots=True)
class Grant:
    """The values of a host setting before and after a change, both as read from the node."""

    old: str
    value: str


@dataclass(slots=True)
class _Pending:
    """An order without its final answer yet. `last` is set to this answer and its arrival time in ns."""

    verb: str
    last: asyncio.Future[tuple[Answer, int]]
    parts: list[ReportLine] = field(default_factory=list)
    rows: int = 0
    size: int = 0  # bytes in the answer's lines so far


class Agent:
    """The agent on `node`, as `running` yields it. `hello` is the first line that the agent sent."""

    hello: lines.Hello
    note: str | None = None  # why the agent is not in its usual folder; None: it is in that folder
    path: str | None = None  # path of the agent's program; only on a Windows node
    place: int | None = None  # agents ahead of this one in the queue for the node's lock; None: it has not waited

    def __init__(self, node: str, process: RemoteProcess, patience: int = 1) -> None:
        self.node = node
        self._patience = patience
        self._process = process
        self._number = 0
        self._pending: dict[int, _Pending] = {}
        self.failure: NodeError | None = None  # why the agent takes no more orders; None: it takes orders
        self._greeting: asyncio.Future[lines.Hello] = asyncio.get_running_loop().create_future()
        self._ends: dict[int, asyncio.Future[lines.EndpointEnd]] = {}
        self._waits_s: dict[int, float] = {}
        self._progress: dict[int, Callable[[int, int], None]] = {}
        self._silent_since_s = time.monotonic()

    @property
    def ended(self) -> bool:
        return self.failure is not None

    async def order(self, order: orders.Order, deadline_s: float = _ORDER_DEADLINE_S) -> Answer:
        """Send `order`; return its final answer. Raise `RefusedError`, or `NodeError` if the agent is late or gone."""
        return (await self._exchange(order, deadline_s))[0]

    async def clock(self) -> Reading:
        """Return the node's clock, with the controller's clock before and after the exchange."""
        sent_ns = time.monotonic_ns()
        answer, received_ns, _ = await self._exchange(orders.Clock(), _ORDER_DEADLINE_S)
        return Reading(sent_ns, self._value(answer, "clock_ns"), received_ns)

    async def listen(self, order: orders.Listen) -> int:
        """Open a receiver on the node and return its port."""
        self._expect(order.endpoint, order.sockets.wait_ms)
        return self._value(await self.order(order), "port")

    async def connect(self, order: orders.Connect) -> None:
        """Open a sender to the receiver at `order`'s address and port; wait until the receiver accepted all flows."""
        self._expect(order.endpoint, order.sockets.wait_ms)
        await self.order(order, self._waits_s[order.endpoint] + _BEYOND_WAIT_S)

    async def ready(self, endpoint: int) -> None:
        """Wait until the receiver `endpoint` has accepted all its flows."""
        await self.order(orders.Ready(endpoint), self._waits_s.get(endpoint, 0.0) + _BEYOND_WAIT_S)

    async def start(self, order: orders.Start) -> None:
        """Start traffic at `at_ns` of the *node's* clock. Each flow sends a few bytes, and goes on `hold_us` later."""
        await self.order(order)

    async def stop(self, endpoint: int) -> None:
        """End the traffic of `endpoint` now."""
        await self.order(orders.Stop(endpoint))

    async def report(self, endpoint: int, *, deadline_s: float = _ORDER_DEADLINE_S) -> EndpointReport:
        """Return the counters of `endpoint`. Raise `RefusedError` (`EBUSY`) while the endpoint has traffic."""
        answer, _, parts = await self._exchange(orders.Report(endpoint), deadline_s)
        report = endpoint_report(self.node, parts, answer)
        if report.endpoint != endpoint:
            raise self._violation(f"a report of endpoint {report.endpoint}, not of {endpoint}")
        return report

    async def close(self, endpoint: int) -> None:
        """Remove `endpoint` from the agent, whatever its state."""
        self._progress.pop(endpoint, None)
        self._waits_s.pop(endpoint, None)
        self._ends.pop(endpoint, None)
        await self.order(orders.Close(endpoint))

    async def set(
        self, kind: str, value: str, *, name: str | None = None, interface: str | None = None, dry: bool = False
    ) -> Grant:
        """Change and verify a host setting; with `dry`, only try. Raise `RefusedError` with the node's message."""
        words = (kind, orders.encode(value), name and orders.encode(name), interface)
        answer = await self.order(orders.Set(*words, dry=dry or None), _SETTING_DEADLINE_S)
        if answer.texts.keys() != {"old", "value"}:
            raise self._violation('an answer whose keys are not "old" and "value"')
        return Grant(answer.texts["old"], answer.texts["value"])

    async def restore(self) -> int:
        """Restore every host setting that the agent changed. Return their number."""
        return self._value(await self.order(orders.Restore(), _SETTING_DEADLINE_S), "restored")

    async def host_facts(self) -> HostReply:
        """Return the host facts that the agent of a Windows node reads."""
        answer = await self.order(orders.AskHost())
        if answer.host is None:
            raise self._violation('an answer without "interfaces"')
        return answer.host

    async def probe(self, order: orders.Probe) -> dict[str, str]:
        """Send probes, and connect by TCP if ordered. Return errors (`refused` for datagrams, `stream` for TCP)."""
        return (await self.order(order)).texts

    async def read_probes(self, *, last: bool = False) -> dict[str, str]:
        """Return received probes (`heard`), ICMP `errors` and TCP connect results (`streams`) since the last call."""
        return (await self.order(orders.Probed(last))).texts

    def on_progress(self, endpoint: int, call: Callable[[int, int], None]) -> None:
        """Call `call` with the node's clock in ns and the bytes so far, four times a second, while `endpoint` runs."""
        self._progress[endpoint] = call

    async def wait_endpoint(self, endpoint: int) -> None:
        """Wait, without a deadline, until all flows of `endpoint` have ended. Raise `NodeError` if a flow failed."""
        end = await asyncio.shield(self._end(endpoint))
        if end.error is not None:
            raise NodeError(self.node, f"{end.message or 'a flow failed'} ({end.error})")

    async def greet(self, queue: Queue | None = None, held_s: float = 0.0) -> None:
        """Wait for the agent's hello; with `queue`, also for the node's lock. Raise `BusyError` or `NodeError`."""
        deadline_s = (HELLO_DEADLINE_S + held_s) * self._patience
        try:
            async with asyncio.timeout(deadline_s + (queue.left_s if queue else 0.0)):
                self.hello = await self._first_line(queue)
        except TimeoutError:
            raise NodeError(self.node, f"the agent sent nothing within {deadline_s:g} s of its start") from None
        except OSError as error:
            raise NodeError(self.node, f"the connection to the agent was lost: {error}") from None
        if self.hello.protocol != lines.VERSION:
            versions = f"protocol {self.hello.protocol}, but rigctl speaks protocol {lines.VERSION}"
            raise NodeError(self.node, f"the agent speaks {versions}. Rebuild the agent: rigctl agent build")

    async def _first_line(self, queue: Queue | None) -> lines.Hello:
        told_place = None
        while True:
            await asyncio.wait({self._greeting}, timeout=LOOK_S)
            failed = not self._greeting.done() or self._greeting.exception() is not None
            if queue is not None and self.place is not None and failed:
                if not queue.left_s:
                    raise await queue.refusal(self.place)
                if self.place != told_place:
                    told_place = self.place
                    await queue.on_move(told_place)
            if self._greeting.done():
                return self._greeting.result()
            self._process.write(b"\n")  # keeps the agent's watchdog quiet

    async def read(self) -> None:
        """Handle the agent's lines until the stream ends or breaks the protocol; then fail all orders. Never raise."""
        failure = NodeError(self.node, "the agent was released")
        try:
            while line := await self._process.readline():
                self._take(lines.parse_line(self.node, line), time.monotonic_ns(), len(line))
            failure = NodeError(self.node, f"the agent ended: {await self._process.last_words()}")
        except NodeError as error:
            failure = error
        except OSError as error:
            failure = NodeError(self.node, f"the connection to the agent was lost: {error}")
        finally:
            self.fail(failure)

    async def keep_awake(self) -> None:
        """Ping the agent after every `PING_AFTER_S` without orders. Fail all orders if the agent does not answer."""
        while not self.ended:
            quiet_s = time.monotonic() - self._silent_since_s
            if quiet_s < PING_AFTER_S:
                await asyncio.sleep(PING_AFTER_S - quiet_s)
                continue
            try:
                await self.order(orders.Ping())
            except NodeError as error:
                self.fail(error)

    def fail(self, failure: NodeError) -> None:
        """Fail all waiting and all later orders with `failure`. Ignore further failures."""
        if self.failure is not None:
            return
        self.failure = failure
        waiting: list[asyncio.Future[Any]] = [pending.last for pending in self._pending.values()]
        waiting += [self._greeting, *self._ends.values()]
        for future in waiting:
            if not future.done():
                future.set_exception(failure)
                future.exception()  # else asyncio logs an error if nobody awaits the future
        self._pending.clear()

    async def _exchange(self, order: orders.Order, deadline_s: float) -> tuple[Answer, int, list[ReportLine]]:
        if self.failure is not None:
            raise self.failure
        self._number += 1
        number = self._number
        try:
            line = order.to_line(number)
        except ValueError as error:
            raise NodeError(self.node, str(error)) from None
        deadline_s *= self._patience
        pending = self._pending[number] = _Pending(order.VERB, asyncio.get_running_loop().create_future())
        try:
            async with asyncio.timeout(deadline_s):
                self._silent_since_s = time.monotonic()
                self._process.write(line)
                await self._process.drain()
                answer, received_ns = await asyncio.shield(pending.last)
        except TimeoutError:
            await asyncio.wait({pending.last}, timeout=_UNREAD_S)
            if not pending.last.done():
                raise NodeError(self.node, f"no answer to {order.VERB} within {deadline_s:g} s") from None
            answer, received_ns = pending.last.result()
        except OSError as error:
            raise NodeError(self.node, f"the connection to the agent was lost: {error}") from None
        finally:
            self._pending.pop(number, None)
        if not answer.ok:
            raise RefusedError(self.node, order.VERB, answer.error or "?", answer.message or "no reason given")
        return answer, received_ns, pending.parts

    def _take(self, message: lines.AgentLine, received_ns: int, size: int) -> None:
        match message:
            case lines.Hello():
                if self._greeting.done():
                    raise self._violation("a second hello")
                self._greeting.set_result(message)
            case lines.Busy():
                self.place = message.place
            case lines.ProgressLine():
                for endpoint, total in message.bytes.items():
                    if endpoint in self._progress:
                        self._progress[endpoint](message.clock_ns, total)
            case lines.EndpointEnd():
                if message.endpoint in self._ends and not self._ends[message.endpoint].done():
                    self._ends[message.endpoint].set_result(message)
            case _:
                self._take_answer(message, received_ns, size)

    def _take_answer(self, message: Answer | ReportLine, received_ns: int, size: int) -> None:
        if message.id > self._number:
            raise self._violation(f"an answer to order {message.id}, which was not sent")
        pending = self._pending.get(message.id)
        if pending is None:
            return  # a late answer: the deadline of its order has passed
        if isinstance(message, Answer):
            del self._pending[message.id]
            pending.last.set_result((message, received_ns))
        else:
            self._take_part(pending, message, size)

    def _take_part(self, pending: _Pending, part: ReportLine, size: int) -> None:
        pending.size += size
        rows = len(part.rows) if isinstance(part, lines.FlowRows) else 0
        rows += len(part.bins) // _BINS_PER_ROW if isinstance(part, lines.FlowBins) else 0
        rows += len(part.buckets) // _BINS_PER_ROW if isinstance(part, lines.FlowBuckets) else 0
        pending.rows += max(_LEAST_ROWS, rows)
        if pending.verb != orders.Report.VERB:
            raise self._violation(f"a flow's report in answer to {pending.verb}")
        if pending.rows > ROWS_LIMIT:
            raise self._violation(f"a report of over {ROWS_LIMIT} rows")
        if pending.size > _REPORT_BYTES:
            raise self._violation(f"a report of over {_REPORT_BYTES:,} bytes")
        pending.parts.append(part)

    def _violation(self, what: str) -> NodeError:
        return NodeError(self.node, f"the agent violated the protocol: {what}")

    def _expect(self, endpoint: int, wait_ms: int) -> None:
        self._waits_s[endpoint] = wait_ms / 1000
        self._ends.pop(endpoint, None)
        self._end(endpoint)

    def _end(self, endpoint: int) -> asyncio.Future[lines.EndpointEnd]:
        if endpoint not in self._ends:
            end = self._ends[endpoint] = asyncio.get_running_loop().create_future()
            if self.failure is not None:
                end.set_exception(self.failure)
                end.exception()  # else asyncio logs an error if nobody awaits the future
        return self._ends[endpoint]

    def _value(self, answer: Answer, name: str) -> int:
        value = answer.numbers.get(name)
        if value is None:
            raise self._violation(f'an answer without "{name}"')
        return value


@asynccontextmanager
async def running(
    node: str, process: RemoteProcess, patience: int = 1, queue: Queue | None = None, held_s: float = 0.0
) -> AsyncIterator[Agent]:
    """Yield the agent after its hello. With `queue`, wait for the node's lock.

    `patience` multiplies its deadlines. `held_s`: longest time for which the node may delay its start.
    """
    agent = Agent(node, process, patience)
    tasks = [asyncio.create_task(agent.read(), name=f"agent {node}: reader")]
    try:
        await agent.greet(queue, held_s)
        tasks.append(asyncio.create_task(agent.keep_awake(), name=f"agent {node}: pings"))
        yield agent
    finally:
        for pinger in tasks[1:]:
            pinger.cancel()
        agent.fail(NodeError(node, "the agent was released"))
        try:
            process.write_eof()
            await asyncio.wait(tasks[:1], timeout=_END_DEADLINE_S)
        except OSError:
            pass  # the connection is lost, so the agent has ended
        finally:
            tasks[0].cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
