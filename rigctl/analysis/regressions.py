"""What is news in a run: changes of level that its night shows for the first time, those that still stand, suspicions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rigctl.analysis.fact_changes import FactChange, fact_changes
from rigctl.analysis.history import Nights, NightSeries, nights
from rigctl.model.changes import Change, Rules, Suspicion, Verdict, judged
from rigctl.records import Accepted, RunInfo
from rigctl.store import Store


@dataclass(frozen=True, slots=True)
class Shift:
    """A series that changed, in which run, with what changed beside it. `explains`: pairs and tests that follow it."""

    series: NightSeries
    change: Change
    since: RunInfo  # the first run on the new level
    better: bool
    facts: tuple[FactChange, ...] = ()
    explains: tuple["Shift", ...] = ()

    @property
    def ratio(self) -> float:
        return self.change.ratio


@dataclass(frozen=True, slots=True)
class Suspected:
    """A series whose last night differs: one night is not enough to call it a change."""

    series: NightSeries
    suspicion: Suspicion
    better: bool


@dataclass(frozen=True, slots=True)
class Regressions:
    """Of one run. The largest change first everywhere; `history` is all changes, the earliest first."""

    run: RunInfo
    nights: Nights
    rules: Rules
    against: str  # in words: what it is compared with
    news: tuple[Shift, ...]
    standing: tuple[Shift, ...]  # found in earlier nights, not accepted since
    suspected: tuple[Suspected, ...]
    history: tuple[Shift, ...]
    accepted: Accepted | None  # the latest one before the run

    @property
    def worse(self) -> tuple[Shift, ...]:
        return tuple(shift for shift in self.news if not shift.better)

    @property
    def better(self) -> tuple[Shift, ...]:
        return tuple(shift for shift in self.news if shift.better)

    @property
    def to_confirm(self) -> tuple[int, ...]:
        """Numbers of the tests, in the run's plan, that a second measurement decides upon."""
        raise NotImplementedError


def news(store: Store, run: RunInfo, *, baseline: str | None = None, rules: Rules | None = None) -> Regressions:
    """Judge `run` by the nights before it.

    `baseline`: a run's id, `TAG=VALUE` or a number of nights, in place of all nights since the last accepted level.
    Runs that confirm `run` (tagged `CONFIRMS`) are taken into account: call it again after `confirmed`.
    """
    raise NotImplementedError
