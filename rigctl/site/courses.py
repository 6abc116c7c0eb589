"""The pages of the courses that changed, several at once: each is judged, drawn, and its runs compared."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Final, TypeAlias

from rigctl.analysis.history import night_values
from rigctl.analysis.run_view import RunView
from rigctl.errors import InputError
from rigctl.records import Accepted, Night, RunInfo
from rigctl.site import printing, values
from rigctl.site.course import Summary, judge, summary
from rigctl.site.made import MadeRun
from rigctl.site.manifest import digest
from rigctl.site.names import INDEX, Course
from rigctl.site.neighbours import comparisons, pairs
from rigctl.site.run_pages import processors
from rigctl.site.work import Work

_FEW_RUNS: Final = 60
"""Of all courses together: they are judged sooner than processes start."""
_MANY: Final = 20
"""Runs that are read sooner with all others than one by one."""
Compared: TypeAlias = dict[str, tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class _Changed:
    """A course whose page is to be made."""

    course: Course
    runs: tuple[MadeRun, ...]
    nights: tuple[Night, ...]
    accepted: tuple[Accepted, ...]
    made_from: str


def make_courses(work: Work) -> None:
    """Make the pages of the courses that changed, and bring the manifest up to date."""
    courses: dict[Course, list[MadeRun]] = {}
    for run in sorted(work.manifest.runs.values(), key=lambda own: own.run):
        courses.setdefault(run.course, []).append(run)
    changed = list(_changed(work, courses))
    _read(work, [run.run for own in changed for run in own.runs])
    for own, (made, compared) in zip(changed, _made(work, changed), strict=True):
        work.manifest.courses[own.course.name] = made
        work.manifest.compared |= compared
    names = {course.name for course in courses}
    for name in sorted(work.manifest.courses.keys() - names):
        course = work.manifest.courses.pop(name).course
        work.folder.add(course.page, printing.removed(course.page, f"All runs of {course}", INDEX, "All scenarios"))


def _changed(work: Work, courses: Mapping[Course, Sequence[MadeRun]]) -> Iterator[_Changed]:
    accepted, nights = work.store.history.accepted(), work.store.history.nights()
    for course, runs in courses.items():
        own = tuple(night for night in nights if (night.scenario, night.rig) == (course.scenario, course.rig))
        names = {run.run for run in runs}
        levels = tuple(level for level in accepted if level.run in names)
        made_from = digest(work.maker, [(run.run, run.state) for run in runs], levels, own)
        old = work.manifest.courses.get(course.name)
        if old is None or old.made_from != made_from or not (work.folder.path / course.page).is_file():
            yield _Changed(course, tuple(runs), own, levels, made_from)


def _made(work: Work, changed: Sequence[_Changed]) -> Iterator[tuple[Summary, Compared]]:
    workers = min(processors(), len(changed))
    if workers < 2 or sum(len(own.runs) for own in changed) < _FEW_RUNS or work.store.place == ":memory:":
        yield from (_course(work, own) for own in changed)
        return
    context = get_context("fork")
    with ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(work, changed)) as pool:
        yield from pool.map(_numbered, range(len(changed)))


_here: list[tuple[Work, Sequence[_Changed]]] = []
"""Of a process that was forked for courses: what it has inherited."""


def _begin(work: Work, changed: Sequence[_Changed]) -> None:
    _here.append((work, changed))


def _numbered(number: int) -> tuple[Summary, Compared]:
    work, changed = _here[-1]
    return _course(work, changed[number])


def _course(work: Work, own: _Changed) -> tuple[Summary, Compared]:
    """Make the page of a course and those of its comparisons, and keep its values."""
    infos = [work.infos[run.run] for run in reversed(own.runs) if run.run in work.infos]
    kept = _values(work, own.course, infos)
    judged = judge(work.store, own.course, own.runs, infos, kept.runs, own.nights, own.accepted)
    known = dict(work.manifest.compared)
    comparisons(work.store, work.folder, known, pairs(judged), work.maker)
    made = summary(judged, own.made_from)
    names = {run.run for run in own.runs}
    compared = {page: sides for page, sides in known.items() if {*sides[:2]} <= names}
    pages = {after: page for page, (_, after, _) in compared.items()}
    work.folder.add(own.course.page, printing.course(judged, made, pages))
    values.save(work.folder, own.course, kept)
    return made, compared


def _read(work: Work, runs: Sequence[str]) -> None:
    """Read these runs, as far as they have not been, and can be."""
    if sum(run not in work.infos for run in runs) > _MANY and not work.damaged:
        with suppress(InputError):  # find out which of them cannot be read
            work.infos |= {info.run: info for info in work.store.runs()}
    for run in runs:
        if run not in work.infos and run not in work.damaged:
            try:
                work.infos[run] = work.store.run(run)
            except InputError as error:
                work.damaged[run] = str(error)


def _values(work: Work, course: Course, infos: Sequence[RunInfo]) -> values.Kept:
    """What was kept, with what was read now; of a run that is in neither, its own."""
    kept = values.load(work.folder, course)
    found = {}
    for info in infos:
        own = work.fresh.get(info.run) or kept.runs.get(info.run)
        if own is None:
            own = night_values(RunView(info, work.store.repetitions(info.run, series=False), limits=False))
        found[info.run] = dict(own)
    return values.Kept(found)
