"""The nights of a scenario on a rig as the calendar shows them: measured, failed or missed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import StrEnum
from typing import Final

from rigctl.analysis.nights.shifts import Shift
from rigctl.records import CONFIRMS, Night, NightOutcome, RunInfo, RunStatus, Unmet
from rigctl.site.names import Course


@dataclass(frozen=True, slots=True)
class MadeRun:
    """A run with a page. `answer`: the sentence on top of it; `unmet`: the missed bounds."""

    info: RunInfo
    course: Course
    answer: str
    unmet: tuple[Unmet, ...] = ()

    @property
    def run(self) -> str:
        return self.info.run

    @property
    def is_night(self) -> bool:
        """True unless the run is a second measurement."""
        return CONFIRMS not in self.info.tags


class State(StrEnum):
    """State of a night, with its sign in the calendar and its words in the legend."""

    sign: str
    words: str

    def __new__(cls, value: str, sign: str, words: str) -> "State":
        made = str.__new__(cls, value)
        made._value_, made.sign, made.words = value, sign, words
        return made

    MEASURED = "measured", "", "measured, nothing new"
    WORSE = "worse", "▼", "worse"  # a change for the worse was found in this night
    BETTER = "better", "▲", "better"
    UNEXPECTED = "unexpected", "!", "not as expected"  # a bound of `expect:` was missed
    NEWS = "news", "?", "news of that night only"  # the nights since do not show the change
    PARTLY = "partly", "~", "measured in part"  # some tests were not measured
    FAILED = "failed", "×", "failed"  # or stopped at its deadline, or the rig was in use
    MISSED = "missed", "–", "missed"
    OPEN = "open", "…", "running, or ended without a result"

    @property
    def whole(self) -> bool:
        """True if all tests were measured."""
        return self in _WHOLE


_WHOLE: Final = frozenset({State.MEASURED, State.WORSE, State.BETTER, State.UNEXPECTED, State.NEWS})
_OUTCOMES: Final[dict[NightOutcome, State]] = {
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
    """One night. `at`: when it was due, or began.

    `since`: the night from which on the scenario was not as expected. Set until the first night that is as expected
    again, that night included.
    """

    at: float
    state: State
    run: str | None
    text: str
    unmet: tuple[Unmet, ...] = ()
    since: date | None = None
    repeated: bool = False  # another attempt on the same date measured

    @property
    def day(self) -> date:
        return datetime.fromtimestamp(self.at).date()

    @property
    def again(self) -> bool:
        """True for the first night that is as expected again."""
        return self.since is not None and self.state.whole and self.state is not State.UNEXPECTED

    @property
    def what(self) -> str:
        """Return `failed: the scenario cannot be read`, `not as expected since 2026-11-03: goodput 812 Mbit/s …`."""
        word, text = self.state.words, f": {self.text}" if self.text else ""
        if self.since is None or (self.state is State.UNEXPECTED and self.since == self.day):
            return f"{word}{text}"
        if self.state is State.UNEXPECTED:
            return f"{word} since {self.since}{text}"
        if self.again:
            return f"{word}{text.rstrip('.')}; as expected again (it was not from {self.since} on)"
        return f"{word}{text.rstrip('.')}; not as expected since {self.since}, when last measured"

    @property
    def label(self) -> str:
        """Return `2026-11-05, failed: the scenario cannot be read`."""
        return f"{self.day}, {self.what}"


def slots(
    runs: Iterable[MadeRun], nights: Iterable[Night], found: Mapping[str, Sequence[Shift]], words: Mapping[str, str]
) -> tuple[Slot, ...]:
    """Return the nights of a course, the earliest first.

    `nights`: the stored nights that a timer started. `found`: the changes that the night of a run showed first, by its
    id; `words`: the sentence on them.
    """
    due = {night.run: night for night in nights if night.run is not None}
    made = [_of_run(run, due.get(run.run), found.get(run.run, ()), words) for run in runs if run.is_night]
    known = {slot.run for slot in made}
    made += [_of_night(night) for night in nights if night.run not in known or night.run is None]
    return tuple(_in_turn(sorted(made, key=lambda slot: (slot.at, slot.run or ""))))


def _of_run(run: MadeRun, night: Night | None, found: Sequence[Shift], words: Mapping[str, str]) -> Slot:
    at = run.info.started_at if night is None else night.due_at
    text = words.get(run.run, "")
    outcome = None if night is None else night.outcome
    unmet = run.unmet if night is None or outcome is None else night.unmet
    if run.info.status is RunStatus.RUNNING:
        return Slot(at, State.OPEN, run.run, text)
    if night is not None and outcome is not None and not _OUTCOMES[outcome].whole:
        return Slot(at, State.PARTLY, run.run, night.reason or "", unmet)
    if run.info.status is not RunStatus.COMPLETE:
        return Slot(at, State.PARTLY, run.run, text, unmet)
    if unmet:
        return Slot(at, State.UNEXPECTED, run.run, _joined(unmet, text), unmet)
    if found:
        return Slot(at, State.BETTER if all(shift.better for shift in found) else State.WORSE, run.run, text)
    news = None if night is None else night.news
    return Slot(at, State.NEWS if news else State.MEASURED, run.run, news or "")


def _of_night(night: Night) -> Slot:
    """Return the slot of a night without a run, or whose run is no longer in the store."""
    state = State.OPEN if night.outcome is None else _OUTCOMES[night.outcome]
    told = night.news or ""
    text = night.reason or (_joined(night.unmet, told) if night.unmet else told)
    return Slot(night.due_at, state, None, text, night.unmet)


def _joined(unmet: Sequence[Unmet], told: str) -> str:
    return " ".join([*(own.text for own in unmet), *([told] if told else [])])


def _in_turn(made: Sequence[Slot]) -> Iterable[Slot]:
    """Yield each slot with earlier attempts on its date, and since when the scenario is not as expected."""
    measured = {slot.day: number for number, slot in enumerate(made) if slot.state.whole}
    last: Slot | None = None  # the last one measured, if not as expected
    attempt: Slot | None = None
    for number, slot in enumerate(made):
        since = None if last is None else last.since
        if not slot.state.whole:
            repeated = measured.get(slot.day, -1) > number
            attempt = replace(slot, repeated=repeated, since=None if repeated else since)
            yield attempt
            continue
        if slot.state is State.UNEXPECTED:
            known = {own.bound for own in last.unmet} if last is not None else set()
            since = since if {own.bound for own in slot.unmet} <= known else slot.day
        text = slot.text
        if attempt is not None and attempt.day == slot.day:
            text = f"{text.rstrip('.')}{'; ' if text else ''}an earlier attempt on this date: {attempt.what}"
        own = replace(slot, since=since, text=text)
        last = own if own.state is State.UNEXPECTED else None
        yield own
