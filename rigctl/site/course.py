"""A scenario on a rig, judged once: the list of changes, charts, calendar and feed are made from that."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rigctl.analysis.nights.history import Values, chosen, of_runs
from rigctl.analysis.nights.regressions import Regressions, of_nights
from rigctl.analysis.nights.shifts import Shift
from rigctl.records import Accepted, Night, RunInfo, RunStatus
from rigctl.report.blocks import Column, Document, Entry, Table
from rigctl.report.nights import page as words
from rigctl.site.names import Course
from rigctl.site.news import Entry as News
from rigctl.site.news import entries
from rigctl.site.nights import MadeRun, Slot, State, slots


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
    return words.document(made).answer if made is not None else "No run has ended."


def changes(judged: Judged) -> Table | None:
    """Return the list of changes, the latest first, with the numbers that the charts have."""
    made = judged.regressions
    if made is None or not made.history:
        return None
    table = words.changes_table(made.history, made, None)
    rows = [
        replace(row, entries=(Entry(str(number), number), *row.entries, Entry(_state(shift, made, judged.accepted))))
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
