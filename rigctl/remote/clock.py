"""A node's clock against the controller's: exchanges over the control channel, the best of which bounds the error."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Reading:
    """One clock exchange: the controller's clock before and after, the node's in between. All in ns."""

    sent_ns: int
    node_ns: int
    received_ns: int


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """The node's clock minus the controller's, and half the round trip that bounds its error. Both in ns."""

    offset_ns: int
    error_ns: int


class HasClock(Protocol):
    """An agent, as far as its clock goes."""

    async def clock(self) -> Reading: ...


async def estimate_offset(agent: HasClock, exchanges: int = 8) -> ClockOffset:
    """The node's clock against ours, from the exchange with the least round trip: the others waited in some queue."""
    readings = [await agent.clock() for _ in range(exchanges)]
    best = min(readings, key=lambda each: each.received_ns - each.sent_ns)
    round_trip_ns = best.received_ns - best.sent_ns
    return ClockOffset(best.node_ns - (best.sent_ns + round_trip_ns // 2), -(-round_trip_ns // 2))
