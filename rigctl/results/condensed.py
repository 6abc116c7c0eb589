"""Define what is kept of a repetition once it is condensed: figures, evidence, and the few values that are neither.

Limits, sentences, means over repetitions and verdicts are not kept: they are computed on reading, so that old runs get
new rules.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeAlias

from rigctl.limits.rules import Diagnosis, Evidence, diagnose
from rigctl.model.counters.balance import Reconciliation
from rigctl.model.counters.losses import Attribution
from rigctl.model.counters.points import CountingPoint
from rigctl.model.trials import Trial
from rigctl.records import Stream

RepetitionKey: TypeAlias = tuple[int, int, int]
"""Test number, repetition and attempt: `RepetitionHead.key`."""


class FigureValues(Protocol):
    """Values of figures by their name; None if unknown."""

    def get(self, name: str) -> Any: ...  # noqa: ANN401 — figures have values of any type


FiguresOfRepetition: TypeAlias = Mapping[Stream | None, FigureValues]
"""Figures of each stream; the key None has those of the whole test."""


class Gap(NamedTuple):
    """A time in which a stream received nothing. `start_s` counts from the start of the measurement interval."""

    stream: Stream
    start_s: float
    length_s: float


@dataclass(frozen=True, slots=True)
class PhaseFigures:
    """The figures of a traffic class in one phase, by stream and name; the key None has those of all its streams.

    The phase lasts from `start_s` to `end_s` after the start of the test; its figures count for `counted_s`.
    """

    name: str
    start_s: float
    end_s: float
    counted_s: float
    figures: Mapping[Stream | None, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StreamNotes:
    """Values of a stream in one repetition for sentences and tables, besides its figures and its evidence."""

    mss: tuple[int, ...] = ()  # the distinct MSS of its senders, the smallest first
    timestamps: bool | None = None  # True: RFC 7323 timestamps take 12 bytes of every segment; None: unknown, or mixed
    probed: bool = False  # True if the round-trip time was probed during the stream


@dataclass(frozen=True, slots=True)
class Details:
    """The kept parts of a repetition besides its figures."""

    evidence: Mapping[Stream, Evidence] = field(default_factory=dict)  # without streams that lack a flow report
    notes: Mapping[Stream, StreamNotes] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    value: float | None = None  # elapsed time in s (messages) or goodput in bit/s (streams): rigctl.model.repeating
    trial: Trial | None = None  # this repetition as a trial of a search; None: no search
    phases: tuple[PhaseFigures, ...] = ()  # empty unless other traffic classes start or stop during the test


@dataclass(frozen=True, slots=True)
class CounterTotals:
    """Counted against expected octets in one repetition.

    `total` covers the trunk (`where` is "trunk"), or the switch ports of all senders or receivers ("ports"); None if
    some data passed only ports that were not read.
    """

    key: RepetitionKey  # of the first of the traffic classes measured together
    traffic_s: float
    where: str
    total: Reconciliation | None
    lost: tuple[Attribution, ...] = ()
    differs: bool = False  # True if the difference at some interface or port is flagged


@dataclass(frozen=True, slots=True)
class PointTotals:
    """Counted against expected octets at one interface or switch port over the whole run; None if unknown."""

    point: CountingPoint
    balance: Reconciliation
    dropped: int | None = None
    damaged: int | None = None


@dataclass(frozen=True, slots=True)
class RunCounters:
    """Counts of the interfaces and switch ports in a run: in each repetition by time, and over the run by point."""

    each: tuple[CounterTotals, ...] = ()
    whole: tuple[PointTotals, ...] = ()
    ports_read: bool = False  # True if a switch port was read


class CondensedRun:
    """The results kept of a run. `figures` has those of each repetition; the rest is read when first asked for."""

    def __init__(
        self,
        figures: Mapping[RepetitionKey, FiguresOfRepetition],
        details: Callable[[], Mapping[RepetitionKey, Details]],
        counters: Callable[[], RunCounters],
    ) -> None:
        self.figures, self._details, self._counters = figures, details, counters
        self._verdicts: dict[int, tuple[Evidence, Diagnosis]] = {}  # by id() of the evidence, which is kept with it

    @cached_property
    def details(self) -> Mapping[RepetitionKey, Details]:
        return self._details()

    @cached_property
    def counters(self) -> RunCounters:
        return self._counters()

    def verdict(self, seen: Evidence) -> Diagnosis:
        """Return the verdict of the rules on evidence of this run; the same evidence is judged once."""
        if id(seen) not in self._verdicts:
            self._verdicts[id(seen)] = seen, diagnose(seen)
        return self._verdicts[id(seen)][1]
