"""A run and its repetitions as stored."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from rigctl.records.measured import Capture, Flow, NodeUsage, PortSeries, Probes
from rigctl.records.plan import RunPlan

Facts: TypeAlias = dict[str, Any]
"""Host facts as nodes give them: plain JSON, keyed by the names in `rigctl.hosts.facts`."""


class Status(StrEnum):
    """The outcome of a repetition. Only `OK` is averaged."""

    OK = "ok"
    INVALID = "invalid"  # measured, but outside the contract; the reason says why
    FAILED = "failed"  # not measured
    INTERRUPTED = "interrupted"  # ended by the user


class RunStatus(StrEnum):
    RUNNING = "running"
    COMPLETE = "complete"  # every cell measured
    PARTIAL = "partial"  # some cell failed
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Repetition:
    """One measurement of a cell, as stored. `attempt` 2 is the one re-measurement after an invalid one."""

    cell: int  # Cell.number
    repetition: int  # 1 … repeat; beyond: wanted by RunPlan.retest or RunPlan.until
    attempt: int
    status: Status
    reason: str | None  # which node or pair, what happened; of OK which pairs are missing, so that sums are unknown
    started_at: float  # Unix time, seconds
    wall_s: float  # what it took in all, preparing and collecting included
    window_start_ns: int | None = None  # the common window: latest start + omit …
    window_end_ns: int | None = None  # … to the earliest end of any flow
    start_skew_us: float | None = None  # spread of first_byte_ns over the flows, receiver side
    clock_error_us: float | None = (
        None  # half the round trip of the worst clock exchange: the bound of that skew's error
    )
    # Interval analysis (model.window): all flows' goodput summed at common instants, median over the intervals.
    goodput_median_bps: float | None = None
    rate_bps: int | None = None  # of each flow in the search for Cell.rate MAX_RATE; None: as fast as it can
    flows: tuple[Flow, ...] = ()
    nodes: tuple[NodeUsage, ...] = ()
    counters: tuple[PortSeries, ...] = ()  # of the switch ports that answered
    counters_missing: tuple[str, ...] = ()  # switches that did not, each with why: one sentence
    captures: tuple[Capture, ...] = ()
    probes: tuple[Probes, ...] = ()  # of each stream, where Cell.latency_ms asks for them

    @property
    def key(self) -> tuple[int, int, int]:
        """Return the numbers of the cell, the repetition and the attempt."""
        return self.cell, self.repetition, self.attempt

    @property
    def window_ns(self) -> tuple[int, int] | None:
        """Return start and end of the measurement interval; None if there was none."""
        start_ns, end_ns = self.window_start_ns, self.window_end_ns
        return None if start_ns is None or end_ns is None else (start_ns, end_ns)

    @property
    def window_s(self) -> float | None:
        """Return the length of the measurement interval."""
        return (self.window_ns[1] - self.window_ns[0]) / 1e9 if self.window_ns else None


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A stored run. `facts` maps node name → host facts; `versions` rigctl, Python, agent protocol, agent SHA-256."""

    run: str  # its id: sorts by time, as 20261120-214501-3f9a
    plan: RunPlan
    status: RunStatus
    started_at: float
    ended_at: float | None
    versions: dict[str, str]
    facts: dict[str, Facts]
    tags: dict[str, str] = field(default_factory=dict)  # given with --tag or `rigctl tag`, by name

    @property
    def ip_version(self) -> int:
        """Return 4 or 6, the IP version of the nodes' data addresses; as the rig file says where none is known."""
        addresses = [str(facts["data_address"]) for facts in self.facts.values() if facts.get("data_address")]
        return (6 if any(":" in address for address in addresses) else 4) if addresses else self.plan.ip_version
