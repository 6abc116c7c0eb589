"""The nights of a scenario on a rig as the calendar shows them: measured, failed or missed; and their months."""

from calendar import monthcalendar
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import StrEnum
from typing import Final, TypeAlias

from rigctl.analysis.nights.shifts import Shift
from rigctl.records import CONFIRMS, Night, NightOutcome, RunInfo, RunStatus, Unmet
from rigctl.report.nights.page import sentence
from rigctl.report.words.text import plural
from rigctl.site.names import Course

MOST_MONTHS: Final = 13


@dataclass(frozen=True, slots=True)
class MadeRun:
    """A run with a page. `unmet`: the missed bounds."""

    info: RunInfo
    course: Course
    unmet: tuple[Unmet, ...] = ()

    @property
    def run(self) -> str:
        return self.info.run

    @property
    def is_night(self) -> bool:
        """True unless the run is a second measurement."""
        return CONFIRMS not in self.info.tags


class State(StrEnum):
    """State of a night, with its sign in the calendar and its words in the legend; the most urgent ones come first."""

    sign: str
    words: str

    def __new__(cls, value: str, sign: str, words: str) -> "State":
        made = str.__new__(cls, value)
        made._value_, made.sign, made.words = value, sign, words
        return made

    UNEXPECTED = "unexpected", "!", "not as expected"  # a bound of `expect:` was missed
    WORSE = "worse", "▼", "worse"  # a change for the worse was found in this night
    NEWS = "news", "?", "news of that night only"  # the nights since do not show the change
    FAILED = "failed", "×", "failed"  # or stopped at its deadline, or the rig was in use
    MISSED = "missed", "–", "missed"
    PARTLY = "partly", "~", "measured in part"  # some tests were not measured
    BETTER = "better", "▲", "better"
    OPEN = "open", "…", "running, or ended without a result"
    MEASURED = "measured", "", "measured, nothing new"

    @property
    def urgency(self) -> int:
        """Return the place among all states; 0 needs the most attention."""
        return list(State).index(self)

    @property
    def whole(self) -> bool:
        """True if all tests were measured."""
        return self in {State.MEASURED, State.WORSE, State.BETTER, State.UNEXPECTED, State.NEWS}


_OUTCOMES: Final[dict[NightOutcome | None, State]] = {
    None: State.OPEN,
    NightOutcome.QUIET: State.MEASURED,
    NightOutcome.NEWS: State.NEWS,
    NightOutcome.UNEXPECTED: State.UNEXPECTED,
    NightOutcome.FAILED: State.FAILED,
    NightOutcome.OVERDUE: State.FAILED,
    NightOutcome.BUSY: State.FAILED,
    NightOutcome.MISSED: State.MISSED,
}


@dataclass(frozen=True, slots=True)
class Slot:
    """One night. `at`: when it was due, or began. `since`: the first night that missed the bounds that this missed."""

    at: float
    state: State
    run: str | None
    text: str
    unmet: tuple[Unmet, ...] = ()
    since: date | None = None

    @property
    def day(self) -> date:
        return datetime.fromtimestamp(self.at).date()

    @property
    def what(self) -> str:
        """Return `failed: the scenario cannot be read`, `not as expected since 2026-11-03: goodput 812 Mbit/s …`."""
        since = "" if self.since in (None, self.day) else f" since {self.since}"
        return f"{self.state.words}{since}{f': {self.text}' if self.text else ''}"

    @property
    def label(self) -> str:
        """Return `2026-11-05, failed: the scenario cannot be read`."""
        return f"{self.day}, {self.what}"


def slots(runs: Iterable[MadeRun], nights: Iterable[Night], found: Mapping[str, Sequence[Shift]]) -> tuple[Slot, ...]:
    """Return the nights of a course, the earliest first.

    `nights`: the stored nights that a timer started. `found`: the changes that the night of a run showed first, by its
    id, the largest first.
    """
    due = {night.run: night for night in nights if night.run is not None}
    made = [_of_run(run, due.get(run.run), found.get(run.run, ())) for run in runs if run.is_night]
    known = {slot.run for slot in made}
    for night in nights:
        if night.run is None or night.run not in known:  # never begun, or no longer in the store
            text = night.reason or _joined(night.unmet, night.news or "")
            made.append(Slot(night.due_at, _OUTCOMES[night.outcome], None, text, night.unmet))
    return tuple(_dated(sorted(made, key=lambda slot: (slot.at, slot.run or ""))))


def _of_run(run: MadeRun, night: Night | None, found: Sequence[Shift]) -> Slot:
    more = f", and {plural(len(found) - 1, 'more change')}" if len(found) > 1 else ""
    words = f"{sentence(found[0])}{more}" if found else ""
    outcome = None if night is None else night.outcome
    unmet = run.unmet if night is None or outcome is None else night.unmet
    news = None if night is None else night.news
    state, text = State.MEASURED, words
    if run.info.status is RunStatus.RUNNING:
        state, unmet = State.OPEN, ()
    elif night is not None and outcome is not None and not _OUTCOMES[outcome].whole:
        state, text = State.PARTLY, night.reason or ""
    elif run.info.status is not RunStatus.COMPLETE:
        state = State.PARTLY
    elif unmet:
        state, text = State.UNEXPECTED, _joined(unmet, words)
    elif found:
        state = State.BETTER if all(shift.better for shift in found) else State.WORSE
    elif news:
        state, text = State.NEWS, news
    return Slot(run.info.started_at if night is None else night.due_at, state, run.run, text, unmet)


def _joined(unmet: Sequence[Unmet], told: str) -> str:
    return " ".join(filter(None, [*(own.text for own in unmet), told]))


def _dated(made: Sequence[Slot]) -> Iterator[Slot]:
    """Yield each slot; those that missed a bound with the night since which no other bound was missed."""
    last: Slot | None = None  # the last one measured
    for slot in made:
        own = slot
        if slot.state is State.UNEXPECTED:
            known = set() if last is None else {own.bound for own in last.unmet}
            goes_on = {own.bound for own in slot.unmet} <= known
            own = replace(slot, since=last.since if last is not None and goes_on else slot.day)
        if slot.state.whole:
            last = own
        yield own


Week: TypeAlias = list[tuple[int, Slot | None]]
"""Seven days from Monday: the day of the month, 0 in another month, and the night that needs the most attention."""


def months(slots: Sequence[Slot]) -> list[tuple[str, list[Week]]]:
    """Return name and weeks of the months from the first night to the last, at most the last `MOST_MONTHS`."""
    urgent: dict[date, Slot] = {}
    for slot in sorted(slots, key=lambda slot: (slot.state.urgency, -slot.at)):
        urgent.setdefault(slot.day, slot)
    if not urgent:
        return []
    first, last = (12 * day.year + day.month - 1 for day in (min(urgent), max(urgent)))
    found = []
    for number in range(max(first, last - MOST_MONTHS + 1), last + 1):
        year, month = number // 12, number % 12 + 1
        weeks = [
            [(day, urgent.get(date(year, month, day)) if day else None) for day in week]
            for week in monthcalendar(year, month)
        ]
        found.append((f"{date(year, month, 1):%B %Y}", weeks))
    return found
