"""The nights of a scenario on a rig as the calendar shows them: measured, failed or missed; and their months."""

from calendar import monthcalendar
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import StrEnum
from typing import Final, TypeAlias

from rigctl.analysis.nights.history import Values, chosen, of_runs
from rigctl.analysis.nights.regressions import Regressions, of_nights
from rigctl.analysis.nights.shifts import Shift
from rigctl.records import CONFIRMS, Accepted, Night, NightOutcome, RunInfo, RunStatus, Unmet
from rigctl.report.blocks import Column, Document, Entry, Table
from rigctl.report.regressions import changes_table, document, sentence
from rigctl.report.words.text import plural
from rigctl.site.folder import Course, page_of_run

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


@dataclass(frozen=True, slots=True)
class News:
    """One piece of news. `key` identifies it for ever; `page` is the page that it links to."""

    key: str
    at: float  # Unix seconds
    state: State
    title: str
    sentences: tuple[str, ...]
    page: str


def entries(
    course: Course, slots: Sequence[Slot], found: Mapping[str, Sequence[Shift]], ended: Mapping[str, float]
) -> Iterator[News]:
    """Yield the news of `course`, the earliest first. `ended`: when each run ended."""
    for slot in slots:
        shifts = found.get(slot.run or "", ())
        goes_on = slot.state is State.UNEXPECTED and slot.since != slot.day
        if slot.state in {State.OPEN, State.MEASURED} or (goes_on and not shifts):
            continue
        said = [own.text for own in slot.unmet] + [f"{sentence(shift)}." for shift in shifts]
        sentences = tuple(said) or (slot.label.rstrip(".") + ".",)
        key = f"run {slot.run}" if slot.run else f"{course.scenario} {course.rig} {slot.at:.0f}"
        page = page_of_run(slot.run) if slot.run else course.page
        what = slot.text if slot.state in {State.WORSE, State.BETTER} else slot.what
        at = ended.get(slot.run or "", slot.at)
        yield News(key, at, slot.state, f"{course}, {slot.day}: {what}", sentences, page)


@dataclass(frozen=True, slots=True)
class Judged:
    """`regressions` None: no run of the course has ended. `document`: that of its latest run."""

    course: Course
    runs: tuple[MadeRun, ...]  # the earliest first
    regressions: Regressions | None
    slots: tuple[Slot, ...]
    entries: tuple[News, ...]
    accepted: tuple[Accepted, ...]
    document: Document | None
    answer: str  # the sentence on the latest night
    next_due_at: float | None  # when the schedule has the next night

    @property
    def history(self) -> tuple[Shift, ...]:
        """The changes of level, the earliest first, as the list, the charts and the feed show them."""
        return () if self.regressions is None else self.regressions.history

    @property
    def title(self) -> str:
        titles = [run.info.plan.title for run in self.runs if run.is_night]
        return (titles[-1] if titles else "") or self.course.scenario

    @property
    def latest(self) -> Slot | None:
        return self.slots[-1] if self.slots else None

    @property
    def state(self) -> State:
        return State.MEASURED if self.latest is None else self.latest.state

    @property
    def standing(self) -> int:
        """Number of changes for the worse that nobody accepted."""
        return sum(not shift.better for shift in self.regressions.standing) if self.regressions else 0

    @property
    def result(self) -> str:
        """Rig of the latest run, and the sentence on top of its page."""
        return f"{self.document.about[0]}: {self.document.answer}" if self.document else ""


def judge(
    course: Course,
    runs: Sequence[MadeRun],
    nights: Sequence[Night],
    accepted: Sequence[Accepted],
    now: float,
    figures: Callable[[Iterable[RunInfo]], Mapping[str, Values]],
    document_of: Callable[[RunInfo], Document | None],
) -> Judged:
    """Judge a course. `runs`: the earliest first; `figures`: returns those of runs that can be read, by id.

    A run that began after `now` was measured by a wrong clock: it is not the latest night.
    """
    past = [run for run in runs if run.info.started_at <= now]
    ended = [run.info for run in past if run.is_night and run.info.status is not RunStatus.RUNNING]
    last = ended[-1] if ended else None
    made, known = None, set()
    found: dict[str, list[Shift]] = {}
    if last is not None:
        chosen_runs, second = chosen([run.info for run in reversed(runs)], last)
        seen = of_runs(chosen_runs, second, figures([*chosen_runs, *second.values()]))
        known = {info.run for info in seen.runs}
        made = of_nights(seen, accepted) if known else None
        for shift in sorted(made.history if made else (), key=lambda shift: -shift.weight):
            found.setdefault(seen.runs[shift.found].run, []).append(shift)
    every = slots(past, nights, found)
    ends = {run.run: run.info.ended_at or run.info.started_at for run in runs}
    return Judged(
        course,
        tuple(runs),
        made,
        every,
        tuple(entries(course, every, found, ends)),
        tuple(level for level in accepted if level.run in known),
        None if last is None else document_of(last),
        _answer(every[-1] if every else None, made),
        next((night.next_due_at for night in reversed(nights) if night.next_due_at is not None), None),
    )


def _answer(latest: Slot | None, made: Regressions | None) -> str:
    """Return the sentence on the latest night: on levels only if it was measured, and as expected."""
    if latest is not None and latest.state not in {State.MEASURED, State.WORSE, State.BETTER}:
        return f"{latest.what[0].upper()}{latest.what[1:].rstrip('.')}."
    return document(made).answer if made is not None else "No run has ended."


def changes(judged: Judged) -> Table | None:
    """Return the list of changes, the latest first, with the numbers that the charts have."""
    made = judged.regressions
    if made is None or not made.history:
        return None
    table = changes_table(made.history, made, None)
    rows = [
        replace(
            row,
            entries=(Entry(str(number), number), *row.entries, Entry(_state(shift, made, judged.accepted))),
        )
        for number, (row, shift) in enumerate(zip(table.rows, made.history, strict=True), 1)
    ]
    columns = (Column("No.", "", "requested"), *table.columns, Column("State", "", "requested", words=True))
    return replace(table, columns=columns, rows=tuple(reversed(rows)), label="Changes of level")


def _state(shift: Shift, made: Regressions, accepted: Sequence[Accepted]) -> str:
    runs = [info.run for info in made.nights.runs]
    after = [level for level in accepted if runs.index(level.run) >= shift.found]
    if after:
        level = min(after, key=lambda own: runs.index(own.run))
        return f"accepted by {level.who}: {level.because}"
    standing = {own.series.subject for event in made.standing for own in (event, *event.explains)}
    return "not accepted" if shift.series.subject in standing else "over"
