"""The pages of the courses that changed, several at once: each is judged, drawn, and its runs compared."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from typing import Final, TypeAlias

from rigctl.analysis.drawn import sampled
from rigctl.analysis.history import night_values
from rigctl.analysis.run_view import RunView
from rigctl.errors import InputError
from rigctl.records import Accepted, Night, RunInfo
from rigctl.report.blocks import Document
from rigctl.report.document import document
from rigctl.site import printing, values
from rigctl.site.course import Summary, judge, summary
from rigctl.site.made import MadeRun
from rigctl.site.manifest import digest
from rigctl.site.names import INDEX, Course
from rigctl.site.neighbours import comparisons, pairs
from rigctl.site.run_pages import Damaged, Job, Page, made, processors
from rigctl.site.work import Work

_FEW_PAGES: Final = 6
_FEW_RUNS: Final = 60
"""Of all courses together: they are made sooner than processes start."""
_AT_ONCE: Final = 500
"""Runs that are read together."""
Compared: TypeAlias = dict[str, tuple[str, str, str]]


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


@dataclass(frozen=True, slots=True)
class _Done:
    """`summary` None: nothing of the course has changed but pages of its runs."""

    pages: tuple[Page | Damaged, ...]
    summary: Summary | None = None
    compared: Compared = field(default_factory=dict)
    damaged: Mapping[str, str] = field(default_factory=dict)


def make_courses(work: Work, jobs: Sequence[Job]) -> None:
    """Make the pages of the courses that changed and these of their runs, and bring the manifest up to date."""
    courses: dict[Course, dict[str, MadeRun | Job]] = {}
    every: list[MadeRun | Job] = [*work.manifest.runs.values(), *jobs]
    for run in every:
        courses.setdefault(run.course, {})[run.run] = run
    changed = list(_changed(work, courses))
    changed.sort(key=lambda own: -_weight(work, own))
    for own, done in zip(changed, _made(work, changed), strict=True):
        work.damaged |= done.damaged
        for page in done.pages:
            work.take(page)
        work.manifest.compared |= done.compared
        if done.summary is not None:
            work.manifest.courses[own.course.name] = done.summary
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
    return old is not None and old.made_from == made_from and (work.folder.path / course.page).is_file()


def _weight(work: Work, own: _Changed) -> int:
    """Pairs of a run: the largest course is begun first, so that no process waits for it at the end."""
    plans = [work.infos[run].plan for run in own.runs[-1:] if run in work.infos]
    return sum(plan.repeat * len(cell.streams) for plan in plans for cell in plan.cells)


def _made(work: Work, changed: Sequence[_Changed]) -> Iterator[_Done]:
    workers = min(processors(), len(changed))
    pages, runs = sum(len(own.jobs) for own in changed), sum(len(own.runs) for own in changed)
    if workers < 2 or (pages <= _FEW_PAGES and runs < _FEW_RUNS) or work.store.place == ":memory:":
        yield from (_course(work, own) for own in changed)
        return
    context = get_context("fork")
    with ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(work, changed)) as pool:
        yield from pool.map(_numbered, range(len(changed)))


_here: list[tuple[Work, Sequence[_Changed]]] = []
"""Of a process that was forked for courses: what it has inherited."""


def _begin(work: Work, changed: Sequence[_Changed]) -> None:
    _here.append((work, changed))


def _numbered(number: int) -> _Done:
    work, changed = _here[-1]
    return _course(work, changed[number])


def _course(work: Work, own: _Changed) -> _Done:
    """Make the pages of its runs, that of the course and those of its comparisons, and keep its values."""
    _read(work, own.runs)
    pages = tuple(made(work.store, job, work.infos.get(job.run)) for job in own.jobs)
    for page in pages:
        work.take(page)
    light = tuple(page.light if isinstance(page, Page) else page for page in pages)
    runs = tuple(work.manifest.runs[run] for run in own.runs if run in work.manifest.runs)
    made_from = own.made_from(work.maker, runs)
    if not runs or _is_made(work, own.course, made_from):
        return _Done(light, damaged=work.damaged)
    infos = [work.infos[run.run] for run in reversed(runs) if run.run in work.infos]
    kept = _values(work, own.course, infos)
    judged = judge(partial(_document, work), own.course, runs, infos, kept.runs, own.nights, own.accepted, work.now)
    known = dict(work.manifest.compared)
    comparisons(work, known, pairs(judged))
    named = summary(judged, made_from)
    names = {run.run for run in runs}
    compared = {page: sides for page, sides in known.items() if {*sides[:2]} <= names}
    after = {later: page for page, (_, later, _) in compared.items()}
    work.shown.clear()
    work.folder.add(own.course.page, printing.course(judged, named, after))
    values.save(work.folder, own.course, kept)
    return _Done(light, named, compared, work.damaged)


def _document(work: Work, info: RunInfo) -> Document:
    """That of the run's page, where it was made here."""
    if info.run in work.shown:
        return work.shown[info.run].document
    return document(info, work.store.repetitions(info.run, series=sampled(info.plan)))


def _read(work: Work, runs: Sequence[str]) -> None:
    """Read these runs, as far as they have not been, and can be."""
    left = [run for run in runs if run not in work.infos and run not in work.damaged]
    for at in range(0, len(left), _AT_ONCE):
        with suppress(InputError):  # find out which of them cannot be read
            work.infos |= {info.run: info for info in work.store.runs(left[at : at + _AT_ONCE])}
    for run in left:
        if run not in work.infos and run not in work.damaged:
            try:
                work.infos[run] = work.store.run(run)
            except InputError as error:
                work.damaged[run] = str(error)


def _values(work: Work, course: Course, infos: Sequence[RunInfo]) -> values.Kept:
    """What was kept, with what was read now; of a run that is in neither, its own."""
    kept = values.load(work.folder, course)
    # What is the same object is found sooner, among the keys of 400 nights.
    keys = {key: key for key in next(reversed(kept.runs.values()), {})}
    found = {}
    for info in infos:
        own = work.fresh.get(info.run)
        if own is None and info.run in kept.runs:
            found[info.run] = kept.runs[info.run]
            continue
        if own is None:
            own = night_values(RunView(info, work.store.repetitions(info.run, series=False), limits=False))
        found[info.run] = {keys.get(key, key): value for key, value in own.items()}
    return values.Kept(found)
