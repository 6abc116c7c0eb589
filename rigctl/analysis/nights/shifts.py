"""Changes of level with what is known of their night."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log

from rigctl.analysis.nights.history import Nights, NightSeries
from rigctl.analysis.nights.setup_changes import SetupChange, setup_changes
from rigctl.model.statistics.changes import Change, Suspicion
from rigctl.records import RunInfo


@dataclass(frozen=True, slots=True)
class Shift:
    """A series that changed. `explains`: changes of the same time that follow from it or that it is the sum of."""

    series: NightSeries
    change: Change
    since: RunInfo  # the first run on the new level
    better: bool
    facts: tuple[SetupChange, ...] = ()  # what changed since the last run on the old level
    explains: tuple["Shift", ...] = ()
    returns: RunInfo | None = None  # the level is again that before this run

    @property
    def ratio(self) -> float:
        return self.change.ratio

    @property
    def confirmed(self) -> bool:
        """Whether the night in which it was found was measured twice."""
        return self.series.points[self.change.found].second is not None

    @property
    def found(self) -> int:
        """The night in which the first of them was found."""
        return min([self.change.found, *(shift.change.found for shift in self.explains)])

    @property
    def weight(self) -> float:
        """Size of the largest of them."""
        return max(abs(log(shift.ratio)) for shift in (self, *self.explains))


@dataclass(frozen=True, slots=True)
class Suspected:
    """A series whose last night differs: one night is not enough to call it a change."""

    series: NightSeries
    suspicion: Suspicion

    @property
    def better(self) -> bool:
        return self.series.better(self.suspicion.ratio)


def shifts_of(series: NightSeries, changes: Sequence[Change], nights: Nights, bound: float) -> Iterator[Shift]:
    """Yield the changes of a series; `bound`: levels that differ by less are the same."""
    runs = nights.runs
    for number, change in enumerate(changes):
        # Nights without a value between the two, of a rig that was being changed, are of neither level.
        last = next((night for night in reversed(range(change.at)) if series.points[night].value is not None), None)
        facts = () if change.gradual or last is None else tuple(setup_changes(runs[last], runs[change.at]))
        same = [own for own in changes[:number] if abs(change.after / own.before - 1) < bound]
        returns = runs[same[-1].at] if same else None
        yield Shift(series, change, runs[change.at], series.better(change.ratio), facts, returns=returns)
