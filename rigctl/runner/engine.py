"""The interface between a repetition and its engine, the program that makes and measures the traffic.

`runner.repetition` calls the methods of `Attempt` in the order in which they are declared here. Conditions, switch
counters, the measurement interval, the store and the report do not depend on the engine.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from rigctl.runner.conditions import Conditions
from rigctl.runner.counters import Counters
from rigctl.runner.nodes import Nodes
from rigctl.runner.outcome import Measurement
from rigctl.runner.progress import Progress
from rigctl.runner.schedule import Blocked, MeasurementOrder

DRAIN_S: Final = 12.0
"""Time after the planned end for queues to drain, and for a receiver that gets no end-of-file to give up (10 s)."""
SALVAGE_S: Final = 1.0
"""Time after a failure in which reports are still accepted."""
_MOST_SAMPLES: Final = 3000
_LEAST_INTERVAL_MS: Final = 100


@dataclass(frozen=True, slots=True)
class Bench:
    """The parts of a run that each repetition uses. `blocked` has the pairs that cannot be measured, with reasons."""

    nodes: Nodes
    conditions: Conditions
    counters: Counters
    captures: Path = Path("capture")  # pcap files: folder and first part of their names
    blocked: Blocked = field(default_factory=dict)


class Attempt(Protocol):
    """One repetition while an engine measures it. The methods raise failures of the rig as `NodeError`."""

    at_ns: int
    """Start of the flows on the controller's clock; 0 before the start."""

    async def prepare(self) -> None:
        """Connect all flows, or start servers, without sending traffic. The nodes are open already."""

    async def traffic(self) -> None:
        """Start all flows at once and wait for their end. Raise `TimeoutError` with the names of late nodes."""

    async def stop(self, reason: str) -> str:
        """Stop all traffic after a failure. Return `reason` with further causes, if known; never raise."""

    async def collect(self, deadline_s: float) -> Sequence[Measurement]:
        """Return a measurement per traffic class, from the reports that arrive within `deadline_s`; never raise."""

    async def close(self) -> None:
        """Remove the sockets and programs of this attempt from the nodes; never raise."""


Engine: TypeAlias = Callable[[Sequence[MeasurementOrder], Bench, Progress], Attempt]
"""A class that implements `Attempt`. It gets an order per traffic class; only `agent` takes more than one."""


def interval_ms(duration_s: float) -> int:
    """Return the sampling interval in ms: 100, or more if a flow would have more than `_MOST_SAMPLES` samples."""
    return max(_LEAST_INTERVAL_MS, -(-round(duration_s * 1000) // _MOST_SAMPLES))
