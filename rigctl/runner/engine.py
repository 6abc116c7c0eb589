"""The seam between a repetition and its engine: who makes the traffic, and what of it comes back.

`runner.repetition` leads; an engine is a class with the methods of `Attempt`, in the order in which they are called.
Conditions, switch counters, the cut to the measurement interval, the store and the report know no engine.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from rigctl.runner.conditions import Conditions
from rigctl.runner.counters import Counters
from rigctl.runner.nodes import Nodes
from rigctl.runner.orders import Blocked, Order
from rigctl.runner.outcome import Counted
from rigctl.runner.progress import Progress

PREPARE_S: Final = 5.0
"""A pair whose flows are not all connected by then is unreachable."""
DRAIN_S: Final = 12.0
"""After the planned end: what is queued drains, and an agent that sees no end-of-file gives up by itself."""
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
    blocked: Blocked = field(default_factory=dict)


class Attempt(Protocol):
    """One repetition while an engine measures it. What goes wrong on the rig is raised as `NodeError`."""

    at_ns: int
    """When the flows were started, on the controller's clock; 0: not yet."""

    async def prepare(self) -> None:
        """Everything that the flows need, short of traffic. The nodes are open."""
        ...

    async def traffic(self) -> None:
        """All flows from one instant on, until every one has ended. Raises `TimeoutError` with what it waits for."""
        ...

    async def stop(self, reason: str) -> str:
        """After a failure: end all traffic now. Gives `reason` with what else is known by then; never fails."""
        ...

    async def collect(self, deadline_s: float) -> Counted:
        """What was counted, as far as it can be had in time; never fails."""
        ...

    async def close(self) -> None:
        """Leave nothing on the nodes; never fails."""
        ...


class Engine(Protocol):
    """A class whose instances are attempts."""

    def __call__(self, order: Order, bench: Bench, progress: Progress) -> Attempt: ...


def interval_ms(duration_s: float) -> int:
    """Time between samples: 100 ms, longer where a flow would have more than `MOST_SAMPLES`."""
    return max(LEAST_INTERVAL_MS, -(-round(duration_s * 1000) // MOST_SAMPLES))
