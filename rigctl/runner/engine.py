"""The interface between a repetition and its engine, which makes and measures the traffic.

`runner.repetition` calls the methods of `Attempt` in the order in which they stand here. Conditions, switch counters,
the measurement interval, the store and the report do not depend on the engine.
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

PREPARE_S: Final = 5.0
"""Longest time in which all flows of a pair must connect; otherwise the pair is unreachable."""
DRAIN_S: Final = 12.0
"""Time after the planned end for queues to drain, and for an agent without end-of-file to give up."""
SALVAGE_S: Final = 1.0
"""Time after a failure in which arriving reports are still stored."""
_MOST_SAMPLES: Final = 3000
_LEAST_INTERVAL_MS: Final = 100


@dataclass(frozen=True, slots=True)
class Bench:
    """Things of the run that a repetition needs: nodes, host settings, switch counters."""

    nodes: Nodes
    conditions: Conditions
    counters: Counters
    captures: Path = Path("capture")  # beginning of the pcap files' names
    blocked: Blocked = field(default_factory=dict)


class Attempt(Protocol):
    """One repetition while an engine measures it. Failures of the rig are raised as `NodeError`."""

    at_ns: int
    """Start of the flows on the controller's clock; 0 before the start."""

    async def prepare(self) -> None:
        """Prepare all flows, without sending traffic. The nodes are open already."""
        ...

    async def traffic(self) -> None:
        """Start all flows at the same time and wait until all have ended. Raise `TimeoutError` naming late nodes."""
        ...

    async def stop(self, reason: str) -> str:
        """Stop all traffic after a failure. Return `reason` with further causes, if known; never raise."""
        ...

    async def collect(self, deadline_s: float) -> Sequence[Measurement]:
        """Return a measurement per order, with what arrives before the deadline; never raise."""
        ...

    async def close(self) -> None:
        """Remove everything from the nodes; never raise."""
        ...


Engine: TypeAlias = Callable[[Sequence[MeasurementOrder], Bench, Progress], Attempt]
"""A class whose instances are attempts. Several orders are traffic classes, which only the agent measures."""


def interval_ms(duration_s: float) -> int:
    """Return the sampling interval in ms: 100, or more if a flow would have more than `_MOST_SAMPLES` samples."""
    return max(_LEAST_INTERVAL_MS, -(-round(duration_s * 1000) // _MOST_SAMPLES))
