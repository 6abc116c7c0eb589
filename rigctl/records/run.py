"""Records of a stored run and its repetitions."""

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, TypeAlias

from rigctl.records.measured import Capture, Flow, NodeUsage, PortSeries, Probes
from rigctl.records.plan import RunPlan

Facts: TypeAlias = dict[str, Any]
"""The host facts of a node: plain JSON values by the names in `rigctl.hosts.facts`."""


class Status(StrEnum):
    """The outcome of a repetition. Only repetitions with the status `OK` are in the means."""

    OK = "ok"
    INVALID = "invalid"  # measured, but not valid; `reason` says why
    FAILED = "failed"  # the repetition could not be measured
    INTERRUPTED = "interrupted"  # the user ended the run


class RunStatus(StrEnum):
    RUNNING = "running"
    COMPLETE = "complete"  # all tests were measured
    PARTIAL = "partial"  # some tests failed
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Repetition:
    """One measurement of a test. `attempt` is 2 if the repetition was measured again after an invalid attempt."""

    cell: int  # number of the test (Cell.number)
    repetition: int  # from 1; above RunPlan.repeat for RunPlan.retest and RunPlan.until
    attempt: int
    status: Status
    reason: str | None  # which node or pair failed, and how; for OK, which pairs are missing
    started_at: float  # start of the repetition, Unix time in s
    wall_s: float  # elapsed time, with preparing and collecting
    window_start_ns: int | None = None  # start of the measurement interval
    window_end_ns: int | None = None  # end of the measurement interval
    start_skew_us: float | None = None  # spread of the receivers' first_byte_ns
    clock_error_us: float | None = None  # largest error of `start_skew_us`: half the worst clock exchange's round trip
    goodput_median_bps: float | None = None  # median over intervals of all flows together (rigctl.model.window)
    rate_bps: int | None = None  # rate of each flow in a trial of a search; None: unlimited, or no search
    flows: tuple[Flow, ...] = ()
    nodes: tuple[NodeUsage, ...] = ()
    counters: tuple[PortSeries, ...] = ()  # readings of the switch ports that answered
    counters_missing: tuple[str, ...] = ()  # a sentence for each switch that did not answer, with the reason
    captures: tuple[Capture, ...] = ()
    probes: tuple[Probes, ...] = ()  # of each stream, if Cell.latency_ms requests probes

    @property
    def key(self) -> tuple[int, int, int]:
        """Return the numbers of the test, the repetition and the attempt."""
        return self.cell, self.repetition, self.attempt

    @property
    def window_ns(self) -> tuple[int, int] | None:
        """Return the start and the end of the measurement interval in ns; None without an interval."""
        start_ns, end_ns = self.window_start_ns, self.window_end_ns
        return None if start_ns is None or end_ns is None else (start_ns, end_ns)

    @property
    def window_s(self) -> float | None:
        """Return the length of the measurement interval in s; None without an interval."""
        return (self.window_ns[1] - self.window_ns[0]) / 1e9 if self.window_ns else None


@dataclass(frozen=True)
class RunInfo:
    """A stored run. `facts` maps nodes to host facts; `versions` has rigctl, Python, agent protocol, agent SHA-256."""

    run: str  # id of the run, which sorts by time: 20261120-214501-3f9a
    plan: RunPlan
    status: RunStatus
    started_at: float
    ended_at: float | None
    versions: dict[str, str]
    facts: dict[str, Facts]
    tags: dict[str, str] = field(default_factory=dict)  # values of tags by name

    @cached_property
    def ip_version(self) -> int:
        """Return the IP version (4 or 6) of the nodes' data addresses; if none is known, of the rig file."""
        addresses = [str(facts["data_address"]) for facts in self.facts.values() if facts.get("data_address")]
        return (6 if any(":" in address for address in addresses) else 4) if addresses else self.plan.ip_version
