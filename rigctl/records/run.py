"""Define records of a stored run: repetitions, tags, acceptance of its levels, and the night that started the run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, TypeAlias

from rigctl.records.measured import Capture, Flow, NodeUsage, PortSeries, Probes
from rigctl.records.plan import RunPlan

Facts: TypeAlias = dict[str, Any]
"""Host facts of a node: JSON values by the names in `rigctl.hosts.facts`."""


def host_system(facts: Facts) -> str | None:
    """Return `Linux`, `FreeBSD` or `Windows`, the first word of the fact `kernel`; None if it is unknown."""
    return next(iter(str(facts.get("kernel") or "").split()), None)


class Status(StrEnum):
    """The outcome of a repetition. Means include only repetitions with the status `OK`."""

    OK = "ok"
    INVALID = "invalid"  # measured, but not valid; `reason` says why
    FAILED = "failed"  # the repetition could not be measured
    INTERRUPTED = "interrupted"  # the user stopped the run


class RunStatus(StrEnum):
    RUNNING = "running"
    COMPLETE = "complete"  # all tests were measured
    PARTIAL = "partial"  # some tests failed
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class RepetitionHead:
    """A repetition without its flows, readings of switch ports and probes, which are most of a stored run."""

    cell: int  # number of the test (Cell.number)
    repetition: int  # number from 1; above RunPlan.repeat if `retest` or `until` added the repetition
    attempt: int  # 2 if the first attempt was invalid and rigctl measured again
    status: Status
    reason: str | None  # which node or pair failed, and how; with status OK, which pairs are missing
    started_at: float  # start of the repetition, Unix time in s
    wall_s: float  # elapsed time, including preparing and collecting reports
    window_start_ns: int | None = None  # start of the measurement interval
    window_end_ns: int | None = None  # end of the measurement interval
    start_skew_us: float | None = None  # spread of the times at which receivers got their first byte
    clock_error_us: float | None = None  # largest error of `start_skew_us`, from comparing the clocks
    goodput_median_bps: float | None = None  # median over intervals of the goodput of all flows together
    load: int | None = None  # load of this trial of a search (model.trials); None: without a limit, or no search
    nodes: tuple[NodeUsage, ...] = ()
    counters_missing: tuple[str, ...] = ()  # for each switch that did not answer, a sentence that says why
    captures: tuple[Capture, ...] = ()

    @property
    def key(self) -> tuple[int, int, int]:
        """Return (test number, repetition, attempt)."""
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


@dataclass(frozen=True, slots=True)
class Repetition(RepetitionHead):
    """One measurement of a test, with all that the agents and the switches reported."""

    flows: tuple[Flow, ...] = ()
    counters: tuple[PortSeries, ...] = ()  # readings of switch ports
    probes: tuple[Probes, ...] = ()  # round-trip probes of each stream, if Cell.latency_ms requests probes


@dataclass(frozen=True)
class RunInfo:
    """A stored run. `facts` has the host facts of each node, `versions` those of rigctl, Python, protocol, agents."""

    run: str  # id of the run, such as 20261120-214501-3f9a: ids sort by time
    plan: RunPlan
    status: RunStatus
    started_at: float
    ended_at: float | None
    versions: dict[str, str]
    facts: dict[str, Facts]
    tags: dict[str, str] = field(default_factory=dict)  # tag values by name

    @cached_property
    def ip_version(self) -> int:
        """Return the IP version (4 or 6) of the data addresses that nodes report, else of those in the rig file."""
        addresses = [str(facts["data_address"]) for facts in self.facts.values() if facts.get("data_address")]
        return (6 if any(":" in address for address in addresses) else 4) if addresses else self.plan.ip_version


CONFIRMS: Final = "rigctl.confirms"
"""Tag of a run that measures a changed night again to confirm the change. The value is the id of that night's run."""
CONTROL: Final = "rigctl.control"
"""Tag of a run from whose figures those of another run are subtracted. The value is the id of that run."""
ANSWER: Final = "rigctl.answer"
"""Tag of a run that has ended. The value is the headline of its results in a few words."""
BASELINE: Final = "baseline"
"""Tag of a run with which other runs are compared; `prune` keeps runs with this tag."""
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
    """A user's decision that the levels measured in `run` are normal."""

    run: str
    accepted_at: float  # time of the decision, Unix time in s
    who: str  # user@host who accepted the levels
    because: str


class NightOutcome(StrEnum):
    """How a scheduled run (night) ended, in one word. The fields of `Night` have the details."""

    QUIET = "quiet"  # the run was measured, and there is no change to report
    NEWS = "news"  # the run was measured, and a figure changed
    UNEXPECTED = "not-as-expected"  # the run was measured, and an expectation (`expect:`) is not met
    FAILED = "failed"  # all tests of the run, or some of them, failed
    OVERDUE = "overdue"  # rigctl stopped the run at its deadline
    BUSY = "busy"  # another run held the lock of the rig until the waiting time was over
    MISSED = "missed"  # the run did not start at its time; the next night found this out


@dataclass(frozen=True, slots=True)
class Unmet:
    """An expectation (`expect:` of the scenario) that a run did not meet."""

    bound: str  # text of the expectation, equal in every run: "goodput >= 930M per pair"
    text: str  # a sentence with the measured value


@dataclass(frozen=True, slots=True)
class Night:
    """One scheduled run of a scenario. A night that began but has no outcome still runs, hangs, or was killed."""

    scenario: str  # name of the scenario (RunPlan.scenario_name)
    rig: str  # name of the rig (RunPlan.rig_name)
    due_at: float  # scheduled start, Unix time in s
    began_at: float | None
    ended_at: float | None
    outcome: NightOutcome | None
    run: str | None  # id of the run; None if no run was started
    reason: str | None  # a sentence on why the run was not measured completely
    unmet: tuple[Unmet, ...] = ()
    news: str | None = None  # a sentence on the largest change
    next_due_at: float | None = None  # scheduled start of the next night, Unix time in s
    in_part: bool = False  # True if only some tests of the run failed
