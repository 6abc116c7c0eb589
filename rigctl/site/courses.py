"""The pages of the courses that changed: each is judged, drawn, and its runs compared."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from rigctl.analysis.nights.history import night_values
from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.over_time import sampled
from rigctl.base.errors import InputError
from rigctl.records import Accepted, Night, RunInfo
from rigctl.report.blocks import Document
from rigctl.report.document import document
from rigctl.site import printing, values
from rigctl.site.course import judge, summary
from rigctl.site.made import MadeRun
from rigctl.site.manifest import digest
from rigctl.site.names import INDEX, Course, page_of_run
from rigctl.site.neighbours import comparisons, pairs
from rigctl.site.run_pages import Job, made
from rigctl.site.work import Work

_SHOWN: Final = 3
"""Runs, the latest, whose page and comparisons are made of what was read once."""
_AT_ONCE: Final = 500
"""Runs that are read together."""


@dataclass(frozen=True, slots=True)
class _Changed:
    """A course of which something may have changed. `runs`: all, the earliest first; `jobs`: pages of some of them."""

    course: Course
    runs: tuple[str, ...]
    jobs: tuple[Job, ...]
    nights: tuple[Night, ...]
    accepted: tuple[Accepted, ...]

    def made_from(self, maker: str, runs: Iterable[MadeRun | Job]) -> str:
        return digest(maker, [(run.run, run.state) for run in runs], self.accepted, self.nights)


def make_courses(work: Work, jobs: Sequence[Job]) -> None:
    """Make the pages of the courses that changed and these of their runs, and bring the manifest up to date."""
    courses: dict[Course, dict[str, MadeRun | Job]] = {}
    every: list[MadeRun | Job] = [*work.manifest.runs.values(), *jobs]
    for run in every:
        courses.setdefault(run.course, {})[run.run] = run
    for own in _changed(work, courses):
        _course(work, own)
    names = {own.course.name for own in work.manifest.runs.values()}
    for name in sorted(work.manifest.courses.keys() - names):
        course = work.manifest.courses.pop(name).course
        work.folder.add(course.page, printing.removed(course.page, f"All runs of {course}", INDEX, "All scenarios"))


def _changed(work: Work, courses: Mapping[Course, Mapping[str, MadeRun | Job]]) -> Iterator[_Changed]:
    accepted = work.store.history.accepted()
    nights = [night for night in work.store.history.nights() if night.due_at <= work.now]
    for course, by_run in courses.items():
        runs = [run for _, run in sorted(by_run.items())]
        nights_of = tuple(night for night in nights if (night.scenario, night.rig) == (course.scenario, course.rig))
        levels = tuple(level for level in accepted if level.run in by_run)
        jobs = tuple(run for run in runs if isinstance(run, Job))
        own = _Changed(course, tuple(run.run for run in runs), jobs, nights_of, levels)
        if jobs or not _is_made(work, course, own.made_from(work.maker, runs)):
            yield own


def _is_made(work: Work, course: Course, made_from: str) -> bool:
    old = work.manifest.courses.get(course.name)
    return old is not None and old.made_from == made_from and work.folder.has(course.page)


def _course(work: Work, own: _Changed) -> None:
    """Make the pages of its runs, that of the course and those of its comparisons, and keep its values."""
    _read(work, own.runs)
    for number, job in enumerate(own.jobs, 1):
        page = None
        with work.noting(job.run):
            page = made(work.store, job, work.infos.get(job.run))
        if page is None:
            continue
        work.folder.add(page_of_run(job.run), page.content)
        work.manifest.runs[job.run] = page.made
        work.fresh[job.run] = page.values
        if number > len(own.jobs) - _SHOWN:
            work.shown[job.run] = page.shown
    runs = tuple(work.manifest.runs[run] for run in own.runs if run in work.manifest.runs)
    made_from = own.made_from(work.maker, runs)
    if not runs or _is_made(work, own.course, made_from):
        return
    readable = [work.infos[run.run] for run in reversed(runs) if run.run in work.infos]
    kept = _values(work, own.course, readable)
    infos = [info for info in readable if info.run in kept.runs]
    judged = judge(partial(_document, work), own.course, runs, infos, kept.runs, own.nights, own.accepted, work.now)
    compared = work.manifest.compared
    comparisons(work, compared, pairs(judged))
    named = summary(judged, made_from)
    names = {run.run for run in runs}
    after = {later: page for page, (earlier, later, _) in compared.items() if {earlier, later} <= names}
    work.shown.clear()
    work.folder.add(own.course.page, printing.course(judged, named, after))
    values.save(work.folder, own.course, kept)
    work.manifest.courses[own.course.name] = named


def _document(work: Work, info: RunInfo) -> Document | None:
    """Return the document of the run's page, also where its page was made earlier; None for a damaged run."""
    if info.run in work.shown:
        return work.shown[info.run].document
    with work.noting(info.run):
        return document(info, work.store.repetitions(info.run, series=sampled(info.plan)))
    return None


def _read(work: Work, runs: Sequence[str]) -> None:
    """Read these runs, as far as they have not been, and can be."""
    left = [run for run in runs if run not in work.infos and run not in work.damaged]
    for at in range(0, len(left), _AT_ONCE):
        with suppress(InputError):  # find out which of them cannot be read
            work.infos |= {info.run: info for info in work.store.runs(left[at : at + _AT_ONCE])}
    for run in left:
        if run not in work.infos:
            with work.noting(run):
                work.infos[run] = work.store.run(run)


def _values(work: Work, course: Course, infos: Sequence[RunInfo]) -> values.Kept:
    """Return what was kept, with what was read now; a run that is in neither is read, and a damaged one left out."""
    kept = values.load(work.folder, course)
    # What is the same object is found sooner, among the keys of 400 nights.
    keys = {key: key for key in next(reversed(kept.runs.values()), {})}
    found = {}
    for info in infos:
        if info.run in work.damaged:
            continue
        own = work.fresh.get(info.run)
        if own is None and info.run in kept.runs:
            found[info.run] = kept.runs[info.run]
            continue
        with work.noting(info.run):
            if own is None:
                own = night_values(RunView(info, work.store.repetitions(info.run, series=False)))
            found[info.run] = {keys.get(key, key): value for key, value in own.items()}
    return values.Kept(found)
