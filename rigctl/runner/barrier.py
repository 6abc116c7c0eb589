"""The barrier: every flow of a cell starts at one instant, told to each node on its own clock.

Offsets are measured over the control channel by the exchange with the least round trip; half of that bounds the error.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from rigctl.records import Cell
from rigctl.remote.agent import Agent
from rigctl.remote.clock import ClockOffset, estimate_offset

LEAST_LEAD_S: Final = 0.01
"""Time between the order to start and the start: it must cover the slowest control channel, and the orders to all."""
EXCHANGE_S: Final = 0.0002
"""About what an exchange of clocks keeps the controller busy. Of 24 nodes at once each waits behind 23 others, and what
the least round trip says of the error is milliseconds."""
LEAST_EXCHANGES: Final = 4
MOST_EXCHANGES: Final = 8
EXCHANGES_IN_ALL: Final = 96
"""As many for each of a few nodes, fewer where there are many."""
MOST_ORDERS_S: Final = 5.0
"""With 200 nodes the orders take 50 to 200 ms: flows that start before the last order has left take the processors that
it needs."""
LEAST_HOLD_NS: Final = 1_000_000
HOLD_PER_FLOW_NS: Final = 40_000
"""Between a flow's first byte and its first burst, per flow that starts on the same machine: 120 flows on two cores
start within 2 ms then; without, 20 to 60 ms apart, behind each other's bursts."""
HOLD_PER_AGENT_NS: Final = 260_000
"""The same per two agents of one machine: a process is slower to wake than a thread. 100 pairs start within 8 to 14 ms
then, with 60 µs within 8 to 27 ms, without within 18 to 28 ms."""


def hold_ns(cell: Cell, machine: Callable[[str], str]) -> int:
    """How long every flow of `cell` waits after its first byte. Nodes may share a `machine`, as namespaces do."""
    flows: Counter[str] = Counter()
    for stream in cell.streams:
        for name in {machine(node) for node in stream.ends}:
            flows[name] += cell.parallel
    agents = Counter(map(machine, {node for stream in cell.streams for node in stream.ends}))
    each = (HOLD_PER_FLOW_NS * flows[name] + HOLD_PER_AGENT_NS * (agents[name] // 2) for name in flows)
    return max(LEAST_HOLD_NS, *each)


@dataclass(frozen=True, slots=True)
class Clocks:
    """Each node's clock against the controller's, measured just before a start."""

    offsets: dict[str, ClockOffset]
    took_s: float = 0.0  # by four or more exchanges with every node, or would be

    @property
    def error_ns(self) -> int:
        """The worst node's bound."""
        return max(offset.error_ns for offset in self.offsets.values())

    def lead_s(self) -> float:
        """How far ahead a start must be ordered: ten times the worst one-way time, within reason.

        The orders take a quarter of the time of the exchanges before them, of which each node had four or more; with
        many nodes or on a busy machine that is long.
        """
        return LEAST_LEAD_S + max(min(MOST_ORDERS_S, self.took_s / 2), min(1.0, 10 * self.error_ns / 1e9))

    def on_node(self, node: str, controller_ns: int) -> int:
        """The controller's instant on the node's clock."""
        return controller_ns + self.offsets[node].offset_ns


async def measure_clocks(agents: Mapping[str, Agent], machine: Callable[[str], str] = str) -> Clocks:
    """The clock offsets of all `agents`: as many at once as don't lengthen each other's round trips.

    Nodes of one `machine` have its clock: the first of them exchanges for all, of the others one exchange must agree.
    """
    began_s = time.monotonic()
    exchanges = min(MOST_EXCHANGES, max(LEAST_EXCHANGES, EXCHANGES_IN_ALL // max(1, len(agents))))
    of_machines: dict[str, str] = {}
    for node in agents:
        of_machines.setdefault(machine(node), node)
    firsts = list(of_machines.values())
    offsets = {node: await estimate_offset(agents[node], exchanges) for node in firsts[:1]}
    round_trip_s = sum(2 * offset.error_ns for offset in offsets.values()) / 1e9
    gate = asyncio.Semaphore(max(1, round(round_trip_s / EXCHANGE_S)))
    asked = len(firsts) * exchanges + len(agents) - len(firsts)

    async def alone(node: str) -> None:
        async with gate:
            offsets[node] = await estimate_offset(agents[node], exchanges)

    async def beside(node: str, first: ClockOffset) -> None:
        nonlocal asked
        async with gate:
            own = await estimate_offset(agents[node], 1)
            if agrees := abs(own.offset_ns - first.offset_ns) <= own.error_ns + first.error_ns:
                offsets[node] = first
        if not agrees:  # a container may have a clock of its own: time_namespaces(7)
            asked += exchanges
            await alone(node)

    async with asyncio.TaskGroup() as group:
        for node in firsts[1:]:
            group.create_task(alone(node))
    async with asyncio.TaskGroup() as group:
        for node in agents.keys() - offsets.keys():
            group.create_task(beside(node, offsets[of_machines[machine(node)]]))
    took_s = (time.monotonic() - began_s) * exchanges * len(agents) / max(1, asked)
    return Clocks({node: offsets[node] for node in agents}, took_s)


def start_instant(clocks: Clocks) -> int:
    """The instant, on the controller's clock in ns, at which all flows are to start."""
    return time.monotonic_ns() + round(clocks.lead_s() * 1e9)
