"""A course as its page shows it: judged once; the list, the charts, the calendar and the feed are made from that."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rigctl.analysis.nights.history import Values, chosen, of_runs
from rigctl.analysis.nights.regressions import Regressions, of_nights
from rigctl.analysis.nights.shifts import Shift
from rigctl.records import CONFIRMS, Accepted, Night, RunInfo, RunStatus
from rigctl.report.blocks import Column, Document, Entry, Table
from rigctl.report.nights import page as words
from rigctl.site import news
from rigctl.site.made import MadeRun
from rigctl.site.names import Course
from rigctl.site.nights import Slot, State, slots

STRIP: Final = 14


@dataclass(frozen=True, slots=True)
class Judged:
    """`regressions` None: no run of the course has ended. `latest`: the document of its latest run."""

    course: Course
    runs: tuple[MadeRun, ...]  # the earliest first
    regressions: Regressions | None
    slots: tuple[Slot, ...]
    entries: tuple[news.Entry, ...]
    accepted: tuple[Accepted, ...]
    latest: Document | None
    next_due_at: float | None = None  # when the schedule has the next night

    @property
    def history(self) -> tuple[Shift, ...]:
        """The changes of level, the earliest first: the list, the charts and the feed have these."""
        return () if self.regressions is None else self.regressions.history


@dataclass(frozen=True, slots=True)
class Summary:
    """What the front page, the feed and the search know of a course; kept, so that only what changed is judged."""

    course: Course
    title: str
    made_from: str
    runs: int
    latest: Slot | None
    strip: tuple[Slot, ...]
    answer: str  # on the latest night
    level: str
    standing: int  # changes for the worse that nobody accepted
    result: str  # rig of the latest run, and the sentence on top of it
    entries: tuple[news.Entry, ...]
    next_due_at: float | None = None


def judge(
    document_of: Callable[[RunInfo], Document | None],
    course: Course,
    runs: Sequence[MadeRun],
    infos: Sequence[RunInfo],
    values: Mapping[str, Values],
    nights: Sequence[Night],
    accepted: Sequence[Accepted],
    now: float,
) -> Judged:
    """Judge a course. `infos`: its stored runs, the latest first; `values`: those of each, by its id.

    Runs that began after `now` were measured by a wrong clock: none is the latest night.
    """
    past = [run for run in runs if run.started_at <= now]
    ended = [info for info in infos if CONFIRMS not in info.tags and info.status is not RunStatus.RUNNING]
    last = next((info for info in ended if info.started_at <= now), None)
    next_due_at = next((night.next_due_at for night in reversed(nights) if night.next_due_at is not None), None)
    if last is None:
        own = slots(past, nights, {}, {})
        told = tuple(news.entries(course, own, {}, {}))
        return Judged(course, tuple(runs), None, _one_a_date(own), told, (), None, next_due_at)
    seen = of_runs(*chosen(infos, last), lambda run: values.get(run, {}))
    made = of_nights(seen, accepted)
    found = news.found_in(made)
    own = slots(past, nights, found, news.headlines(found))
    ends = {run.run: run.ended_at or run.started_at for run in runs}
    known = {info.run for info in seen.runs}
    return Judged(
        course,
        tuple(runs),
        made,
        _one_a_date(own),
        tuple(news.entries(course, own, found, ends)),
        tuple(level for level in accepted if level.run in known),
        document_of(last),
        next_due_at,
    )


def _one_a_date(own: Sequence[Slot]) -> tuple[Slot, ...]:
    """Leave out attempts that were repeated: the night that measured tells of them."""
    return tuple(slot for slot in own if not slot.repeated)


def summary(judged: Judged, made_from: str) -> Summary:
    made = judged.regressions
    first = words.document(made).findings[0] if made is not None else None
    latest = judged.slots[-1] if judged.slots else None
    shown = next((run for run in reversed(judged.runs) if run.is_night), None)
    return Summary(
        course=judged.course,
        title=(shown.title if shown else "") or judged.course.scenario,
        made_from=made_from,
        runs=len(judged.runs),
        latest=latest,
        strip=judged.slots[-STRIP:],
        answer=_answer(latest, first.text if first else "No run has ended."),
        level=str(first.level) if first else "note",
        standing=sum(not shift.better for shift in made.standing) if made else 0,
        result=f"{judged.latest.about[0]}: {judged.latest.answer}" if judged.latest else "",
        entries=judged.entries,
        next_due_at=judged.next_due_at,
    )


def _answer(latest: Slot | None, of_levels: str) -> str:
    """Return the sentence on the latest night: on levels only if it was measured, and as expected."""
    if latest is None or latest.state in {State.MEASURED, State.WORSE, State.BETTER}:
        again = latest.since if latest is not None and latest.again else None
        return of_levels if again is None else f"{of_levels} As expected again: it was not from {again} on."
    return f"{latest.what[0].upper()}{latest.what[1:].rstrip('.')}."


def changes(judged: Judged) -> Table | None:
    """The list of changes, the latest first, with the numbers that the charts have."""
    made = judged.regressions
    if made is None or not made.history:
        return None
    table = words.changes_table(made.history, made, None)
    rows = [
        replace(row, entries=(Entry(str(number), number), *row.entries, Entry(_state(shift, judged))))
        for number, (row, shift) in enumerate(zip(table.rows, made.history, strict=True), 1)
    ]
    columns = (Column("No.", "", "requested"), *table.columns, Column("State", "", "requested", words=True))
    return replace(table, columns=columns, rows=tuple(reversed(rows)), label="Changes of level")


def _state(shift: Shift, judged: Judged) -> str:
    assert judged.regressions is not None
    runs = [info.run for info in judged.regressions.nights.runs]
    after = [level for level in judged.accepted if runs.index(level.run) >= shift.found]
    if after:
        level = min(after, key=lambda own: runs.index(own.run))
        return f"accepted by {level.who}: {level.because}"
    if shift.found == len(runs) - 1:
        return "news"
    standing = {own.series.subject for event in judged.regressions.standing for own in (event, *event.explains)}
    return "not accepted" if shift.series.subject in standing else "over"
