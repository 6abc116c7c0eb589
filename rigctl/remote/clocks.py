"""Measures how far the nodes' clocks are ahead of the controller's, by clock exchanges over the control channel.

The exchange with the shortest round trip counts; half its round trip bounds the error of the offset.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rigctl.remote.agent import Agent

LEAST_LEAD_S: Final = 0.01
"""The controller sends the start orders at least this long before the start, so that they arrive in time."""
_MOST_ORDERS_S: Final = 5.0
"""Upper limit of the time reserved to send the start orders to all nodes, which takes 50 to 200 ms with 200 nodes."""
EXCHANGE_S: Final = 0.0002
"""Approximate time that the controller needs for one exchange. With 24 nodes at once, each exchange would wait behind
23 others, and the error bound would grow to milliseconds."""


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """The node's clock minus the controller's, and the bound of its error (half the round trip), both in ns."""

    offset_ns: int
    error_ns: int


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clock offsets of the nodes by name, measured just before the flows start."""

    offsets: dict[str, ClockOffset]
    took_s: float = 0.0  # duration of all clock exchanges together

    @property
    def error_ns(self) -> int:
        """Return the largest error bound of all nodes, in ns."""
        return max(offset.error_ns for offset in self.offsets.values())

    def lead_s(self) -> float:
        """Return how many seconds before the flows start the controller must send the start orders.

        This is `LEAST_LEAD_S`, plus ten error bounds (1 s at most) or half the time of the clock exchanges (5 s at
        most), whichever is longer. Sending the orders takes about a quarter of the time of the exchanges.
        """
        return LEAST_LEAD_S + max(min(_MOST_ORDERS_S, self.took_s / 2), min(1.0, 10 * self.error_ns / 1e9))

    def on_node(self, node: str, controller_ns: int) -> int:
        """Return a time of the controller's clock as a time of the node's clock, in ns."""
        return controller_ns + self.offsets[node].offset_ns


async def estimate_offset(agent: Agent) -> ClockOffset:
    """Return the node's clock offset from the fastest of several exchanges, which waited least in queues."""
    readings = [await agent.clock() for _ in range(8)]
    best = min(readings, key=lambda each: each.received_ns - each.sent_ns)
    round_trip_ns = best.received_ns - best.sent_ns
    return ClockOffset(best.node_ns - (best.sent_ns + round_trip_ns // 2), -(-round_trip_ns // 2))


async def measure_clocks(agents: Mapping[str, Agent]) -> Clocks:
    """Return the clock offsets of all `agents`. Few exchanges run at once, so as not to lengthen the round trips."""
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
