"""Records of a stored run: its repetitions, tags and acceptance, and the nights that start runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, TypeAlias

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


CONFIRMS: Final = "rigctl.confirms"
"""Tag of a run that confirms the changes of another run; its value is the id of the other run."""
ANSWER: Final = "rigctl.answer"
"""Tag of a run that has ended; its value is the headline in few words, as it was at the end."""
BASELINE: Final = "baseline"
"""Tag of a run with which others are compared; `prune` keeps such runs."""
OWN_TAGS: Final = "rigctl."
"""Prefix of the tags that rigctl sets. Users cannot set tags with this prefix, and tables do not show them."""


def user_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the tags that users set, sorted by name."""
    return {name: value for name, value in sorted(tags.items()) if not name.startswith(OWN_TAGS)}


def tag_text(name: str, value: str) -> str:
    """Return a tag as `firmware=1.2.3`, or only its name if the value is empty."""
    return f"{name}={value}" if value else name


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The record that a user accepted the levels of `run` as normal."""

    run: str
    accepted_at: float  # Unix time in s
    who: str  # user@host who accepted the levels
    because: str


class NightOutcome(StrEnum):
    """How a night ended, in one word for people and programs. The fields of `Night` have the details."""

    QUIET = "quiet"  # measured, without a change to report
    NEWS = "news"  # measured, and a figure changed
    UNEXPECTED = "not-as-expected"  # measured, and a bound of the scenario's `expect:` is not met
    FAILED = "failed"  # all or a part of the run failed
    OVERDUE = "overdue"  # the run was stopped at its deadline
    BUSY = "busy"  # the rig was locked until the waiting time was over
    MISSED = "missed"  # the night did not run, as the next night found


@dataclass(frozen=True, slots=True)
class Unmet:
    """A bound of the scenario's `expect:` that a run did not meet."""

    bound: str  # text of the bound, the same in every run: "goodput >= 930M per pair"
    text: str  # a sentence with the measured value


@dataclass(frozen=True, slots=True)
class Night:
    """One scheduled run of a scenario. A night that began and has no outcome is still running, hung or was killed."""

    scenario: str  # name of the scenario (RunPlan.scenario_name)
    rig: str  # name of the rig (RunPlan.rig_name)
    due_at: float  # time by the schedule, Unix time in s
    began_at: float | None
    ended_at: float | None
    outcome: NightOutcome | None
    run: str | None  # id of the run; None if none was started
    reason: str | None  # a sentence: why not all was measured
    unmet: tuple[Unmet, ...] = ()
    news: str | None = None  # a sentence on the largest change
    next_due_at: float | None = None  # time of the next night by the schedule
    in_part: bool = False  # True if only some tests of the run failed
