"""The nodes' clocks against the controller's: exchanges over the control channel, of which the quickest counts.

Half the round trip of an exchange bounds the error of the offset that follows from it.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rigctl.remote.agent import Agent

LEAST_LEAD_S: Final = 0.01
"""Time between the order to start and the start: it must cover the slowest control channel, and the orders to all."""
_MOST_ORDERS_S: Final = 5.0
"""Most time for the orders to all nodes: 50 to 200 ms with 200 nodes."""
EXCHANGE_S: Final = 0.0002
"""About what an exchange keeps the controller busy. Of 24 nodes at once each waits behind 23 others, and what the least
round trip says of the error is milliseconds."""
_EXCHANGES: Final = 8


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """The node's clock minus the controller's, and half the round trip that bounds its error. Both in ns."""

    offset_ns: int
    error_ns: int


@dataclass(frozen=True, slots=True)
class Clocks:
    """Each node's clock against the controller's, measured just before a start."""

    offsets: dict[str, ClockOffset]
    took_s: float = 0.0  # for all exchanges

    @property
    def error_ns(self) -> int:
        """Return the bound of the worst node."""
        return max(offset.error_ns for offset in self.offsets.values())

    def lead_s(self) -> float:
        """Return how far ahead a start must be ordered: ten times the worst one-way time, within reason.

        The orders take a quarter of the time of the exchanges before them, of which each node had eight; with
        many nodes or on a busy machine that is long.
        """
        return LEAST_LEAD_S + max(min(_MOST_ORDERS_S, self.took_s / 2), min(1.0, 10 * self.error_ns / 1e9))

    def on_node(self, node: str, controller_ns: int) -> int:
        """Return the controller's instant on the node's clock."""
        return controller_ns + self.offsets[node].offset_ns


async def estimate_offset(agent: Agent) -> ClockOffset:
    """Return the node's clock against ours, by the exchange with the least round trip: the others waited in queues."""
    readings = [await agent.clock() for _ in range(_EXCHANGES)]
    best = min(readings, key=lambda each: each.received_ns - each.sent_ns)
    round_trip_ns = best.received_ns - best.sent_ns
    return ClockOffset(best.node_ns - (best.sent_ns + round_trip_ns // 2), -(-round_trip_ns // 2))


async def measure_clocks(agents: Mapping[str, Agent]) -> Clocks:
    """Return the clock offsets of all `agents`: as many at once as don't lengthen each other's round trips."""
    began_s = time.monotonic()
    names = list(agents)
    first = await estimate_offset(agents[names[0]])
    gate = asyncio.Semaphore(max(1, round(2 * first.error_ns / 1e9 / EXCHANGE_S)))

    async def offset_of(name: str) -> ClockOffset:
        async with gate:
            return await estimate_offset(agents[name])

    async with asyncio.TaskGroup() as group:
        others = [group.create_task(offset_of(name)) for name in names[1:]]
    offsets = [first, *(task.result() for task in others)]
    return Clocks(dict(zip(names, offsets, strict=True)), time.monotonic() - began_s)
