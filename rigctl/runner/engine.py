"""The seam between a repetition and its engine: who makes the traffic, and what is measured.

`runner.repetition` leads; an engine is a class with the methods of `Attempt`, in the order in which they are called.
Conditions, switch counters, the cut to the measurement interval, the store and the report know no engine.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from rigctl.runner.conditions import Conditions
from rigctl.runner.counters import Counters
from rigctl.runner.nodes import Nodes
from rigctl.runner.outcome import Measurement
from rigctl.runner.progress import Progress
from rigctl.runner.schedule import Blocked, Order

PREPARE_S: Final = 5.0
"""A pair whose flows are not all connected within this time is unreachable."""
DRAIN_S: Final = 12.0
"""After the planned end: queues drain, and an agent that sees no end-of-file gives up by itself."""
SALVAGE_S: Final = 1.0
"""After a failure: the reports that arrive within this time are stored."""
_MOST_SAMPLES: Final = 3000
_LEAST_INTERVAL_MS: Final = 100


@dataclass(frozen=True, slots=True)
class Bench:
    """Everything that a repetition needs of the run: the nodes, their host settings, the switches' counters."""

    nodes: Nodes
    conditions: Conditions
    counters: Counters
    captures: Path = Path("capture")  # how the names of pcap files begin
    blocked: Blocked = field(default_factory=dict)


class Attempt(Protocol):
    """One repetition while an engine measures it. Failures of the rig are raised as `NodeError`."""

    at_ns: int
    """When the flows were started, on the controller's clock; 0: not yet."""

    async def prepare(self) -> None:
        """Prepare everything that the flows need, short of traffic. The nodes are open."""
        ...

    async def traffic(self) -> None:
        """Start all flows at one instant; wait until all have ended. Raise `TimeoutError` naming the late nodes."""
        ...

    async def stop(self, reason: str) -> str:
        """End all traffic after a failure. Return `reason`, with further causes that became known; never fail."""
        ...

    async def collect(self, deadline_s: float) -> Sequence[Measurement]:
        """Return what was measured of each order, as far as it arrives in time; never fail."""
        ...

    async def close(self) -> None:
        """Leave nothing on the nodes; never fail."""
        ...


class Engine(Protocol):
    """A class whose instances are attempts. Several orders are those of classes, which only the agent measures."""

    def __call__(self, orders: Sequence[Order], bench: Bench, progress: Progress) -> Attempt: ...


def interval_ms(duration_s: float) -> int:
    """Return the time between samples: 100 ms, longer if a flow would have more than `MOST_SAMPLES`."""
    return max(_LEAST_INTERVAL_MS, -(-round(duration_s * 1000) // _MOST_SAMPLES))
