"""The barrier: every flow of a cell starts at one instant, told to each node on its own clock.

Offsets are measured over the control channel by the exchange with the least round trip; half of that bounds the error.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rigctl.records import Cell
from rigctl.remote.agent import Agent
from rigctl.remote.clock import ClockOffset, estimate_offset

LEAST_LEAD_S: Final = 0.03
"""Time between the order to start and the start: it must cover the slowest control channel."""
EXCHANGE_S: Final = 0.0002
"""About what an exchange of clocks keeps the controller busy. Of 24 nodes at once each waits behind 23 others, and what
the least round trip says of the error is milliseconds."""
LEAST_EXCHANGES: Final = 4
MOST_EXCHANGES: Final = 8
EXCHANGES_IN_ALL: Final = 96
"""As many for each of a few nodes, fewer where there are many."""
PER_ORDER: Final = 3.0
"""An order to start is given as long as this number of clock exchanges. With 200 nodes the orders take 0.15 to 0.4 s:
flows that start before the last order has left take the processors that it needs."""
MOST_ORDERS_S: Final = 5.0
LEAST_HOLD_NS: Final = 1_000_000
HOLD_PER_FLOW_NS: Final = 40_000
"""Between a flow's first byte and its first burst, per flow that starts on the same machine: 120 flows on two cores
start within 2 ms then; without, 20 to 60 ms apart, behind each other's bursts."""
HOLD_PER_AGENT_NS: Final = 60_000
"""The same per agent of a virtual rig: a process is slower to wake than a thread. 100 pairs start within 8 ms then;
without, 18 to 28 ms apart."""


def hold_ns(cell: Cell, *, virtual: bool) -> int:
    """How long every flow of `cell` waits after its first byte. All nodes of a virtual rig are one machine."""
    on_one: Counter[str] = Counter()
    for stream in cell.streams:
        for node in stream.ends:
            on_one["" if virtual else node] += cell.parallel
    most = max(on_one.values(), default=0)
    if not virtual:
        return max(LEAST_HOLD_NS, HOLD_PER_FLOW_NS * most)
    agents = len({node for pair in cell.pairs for node in (pair.source, pair.destination)})
    return max(LEAST_HOLD_NS, HOLD_PER_FLOW_NS * (most // 2) + HOLD_PER_AGENT_NS * (agents // 2))


@dataclass(frozen=True, slots=True)
class Clocks:
    """Each node's clock against the controller's, measured just before a start."""

    offsets: dict[str, ClockOffset]
    exchange_s: float = 0.0  # what an exchange kept the controller busy, beyond the wait for the reply

    @property
    def error_ns(self) -> int:
        """The worst node's bound."""
        return max(offset.error_ns for offset in self.offsets.values())

    def lead_s(self, orders: int = 0) -> float:
        """How far ahead a start must be ordered: ten times the worst one-way time and all `orders`, within reason."""
        ordering_s = min(MOST_ORDERS_S, PER_ORDER * orders * self.exchange_s)
        return max(LEAST_LEAD_S, ordering_s) + min(1.0, 10 * self.error_ns / 1e9)

    def on_node(self, node: str, controller_ns: int) -> int:
        """The controller's instant on the node's clock."""
        return controller_ns + self.offsets[node].offset_ns


async def measure_clocks(agents: Mapping[str, Agent]) -> Clocks:
    """The clock offsets of all `agents`: as many at once as don't lengthen each other's round trips."""
    exchanges = min(MOST_EXCHANGES, max(LEAST_EXCHANGES, EXCHANGES_IN_ALL // max(1, len(agents))))
    alone = {node: await estimate_offset(agent, exchanges) for node, agent in list(agents.items())[:1]}
    round_trip_s = sum(2 * offset.error_ns for offset in alone.values()) / 1e9
    gate = asyncio.Semaphore(max(1, round(round_trip_s / EXCHANGE_S)))

    async def one(agent: Agent) -> ClockOffset:
        async with gate:
            return await estimate_offset(agent, exchanges)

    began_s = time.monotonic()
    async with asyncio.TaskGroup() as group:
        tasks = {node: group.create_task(one(agent)) for node, agent in agents.items() if node not in alone}
    queued_s = max(0.0, time.monotonic() - began_s - exchanges * round_trip_s)
    offsets = alone | {node: task.result() for node, task in tasks.items()}
    return Clocks(offsets, queued_s / (exchanges * max(1, len(tasks))))


def start_instant(clocks: Clocks, orders: int) -> int:
    """The instant, on the controller's clock in ns, at which all flows are to start, by that number of orders."""
    return time.monotonic_ns() + round(clocks.lead_s(orders) * 1e9)
