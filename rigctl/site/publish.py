"""The life of a publish, on one page.

1. The folder is opened, for this publisher alone; one of another store is refused (`folder`).
2. The heads of runs tell which have changed since the last publish (`manifest`).
3. Course by course: pages of runs that changed are made (`run_pages`), and their values as nights kept (`values`); a
   course with something new is judged, and its runs compared with those before them (`courses`).
4. The front page, the search and the feed are made from what is known of all courses.
5. All files are put in their places (`Folder.commit`), then what they were made from is kept.

Until 5 the old site is as it was; what ends in 5 is made again by the next publish.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final
from uuid import uuid4

from rigctl.base.errors import InputError
from rigctl.base.texts import printable
from rigctl.records import CONFIRMS
from rigctl.report.printers.html import Around, Place
from rigctl.site import manifest as manifests
from rigctl.site import printing
from rigctl.site.courses import make_courses
from rigctl.site.feed import feed
from rigctl.site.folder import Folder, Mark, opened, where
from rigctl.site.made import MadeRun
from rigctl.site.manifest import digest
from rigctl.site.names import FEED, INDEX, SEARCH, Course, link, page_of_run
from rigctl.site.run_pages import Job, relinked
from rigctl.site.search import index
from rigctl.site.work import Work
from rigctl.store import Store
from rigctl.store.heads import Head

TITLE: Final = "Network tests"


@dataclass(frozen=True, slots=True)
class Published:
    """What was written: pages of runs, of scenarios, of comparisons; `removed`: runs that are in the store no more."""

    index: Path
    written: tuple[str, ...]  # files, relative to the folder
    runs: int
    courses: int
    removed: tuple[str, ...]
    news: int
    answer: str
    damaged: tuple[str, ...]  # a message for each run that cannot be read


def publish(store: Store, path: Path, now: float, title: str | None = None) -> Published:
    """Write the site of `store` into the folder `path`. Raises `InputError`."""
    with opened(path) as folder:
        mark = _claim(folder, store, title)
        return _published(Work(store, folder, manifests.load(folder), manifests.maker(), now), mark, now)


def _claim(folder: Folder, store: Store, title: str | None) -> Mark:
    """Make the folder this store's; refuse the site of another. A store that was moved has all runs of its site."""
    here, known = where(store.place), folder.mark
    if known is not None and known.store != here:
        runs = manifests.load(folder).runs.keys()
        if not runs or runs - set(store.run_ids()):
            raise InputError(
                f"{folder.path}: is the site of another store, {printable(known.store)}; nothing was touched. "
                "Name another folder"
            )
    old_title = TITLE if known is None else known.title
    mark = Mark(uuid4() if known is None else known.site, here, old_title if title is None else title)
    if mark != known:
        folder.set_mark(mark)
    return mark


def _published(work: Work, mark: Mark, now: float) -> Published:
    folder, known = work.folder, work.manifest
    heads = work.store.heads()
    gone = sorted(known.runs.keys() - {head.run for head in heads})
    _read_new(work, heads)
    heads = [head for head in heads if head.run not in work.damaged]
    jobs = [job for job in _jobs(work, heads) if not _relinked(work, job)]
    for run in gone:
        _removed(work, known.runs.pop(run))
    make_courses(work, jobs)
    courses = sorted(known.courses.values(), key=lambda own: own.course)
    runs = list(known.runs.values())
    entries = [entry for own in courses for entry in own.entries]
    latest = max((run.ended_at or run.started_at for run in runs), default=now)
    folder.add(SEARCH, index(runs, printing.script()).encode("utf-8", "replace"))
    folder.add(FEED, feed(mark.site, mark.title, entries, latest))
    folder.add(INDEX, printing.front(mark.title, courses, runs, now))
    written = folder.commit()
    manifests.save(folder, known)
    return Published(
        folder.path / INDEX,
        tuple(written),
        len(runs),
        len(courses),
        tuple(gone),
        len(entries),
        printing.answer(courses),
        tuple(work.damaged.values()),
    )


def _read_new(work: Work, heads: Sequence[Head]) -> None:
    """The runs of which the site knows nothing, so that each has its place among the others; and damaged ones."""
    new = [head.run for head in heads if head.run not in work.manifest.runs]
    if len(new) > len(heads) // 2:
        try:
            work.infos = {info.run: info for info in work.store.runs()}
        except InputError:
            pass  # find out which of them cannot be read
        else:
            return
    for run in new:
        with work.noting(run):
            work.infos[run] = work.store.run(run)


def _jobs(work: Work, heads: Sequence[Head]) -> list[Job]:
    """The runs whose page is to be made: new ones, changed ones, and those that get another neighbour."""
    around = _around(work, heads)
    jobs = []
    for head in heads:
        made_from = digest(head.state, work.maker, around[head.run])
        old = work.manifest.runs.get(head.run)
        if old is None or old.made_from != made_from or not work.folder.has(page_of_run(head.run)):
            course, body_from = _place(work, head.run)[0], digest(head.state, work.maker)
            digests = (made_from, body_from, digest(head.state))
            jobs.append(Job(head.run, course, *digests, around[head.run]))
    return jobs


def _relinked(work: Work, job: Job) -> bool:
    """Whether its page needed other links only: that of the night before a new one."""
    run = relinked(work.folder, job, work.manifest.runs.get(job.run))
    if run is not None:
        work.manifest.runs[job.run] = run
    return run is not None


def _around(work: Work, heads: Iterable[Head]) -> dict[str, Around]:
    """What each run's page links to: its course, and the nights before and after."""
    courses: dict[Course, list[tuple[str, float]]] = {}
    found = {}
    confirmed: dict[str, str] = {}
    for head in heads:
        course, started_at, tags = _place(work, head.run)
        if CONFIRMS in tags:
            confirmed[head.run] = tags[CONFIRMS]
            found[head.run] = (course, started_at)
        else:
            courses.setdefault(course, []).append((head.run, started_at))
    made = {}
    for course, own in courses.items():
        beside = [None, *own, None]
        for before, (run, _), after in zip(beside, own, beside[2:], strict=False):
            places = [None if other is None else _to(run, *other) for other in (before, after)]
            made[run] = Around(Place(str(course), link(page_of_run(run), course.page)), *places)
    for run, (course, _) in found.items():
        home = Place(str(course), link(page_of_run(run), course.page))
        night = confirmed[run]
        made[run] = (
            Around(home, Place("the night it confirms", link(page_of_run(run), page_of_run(night))))
            if night in made
            else Around(home)
        )
    return made


def _to(run: str, other: str, started_at: float) -> Place:
    return Place(f"{datetime.fromtimestamp(started_at):%Y-%m-%d}", link(page_of_run(run), page_of_run(other)))


def _place(work: Work, run: str) -> tuple[Course, float, Mapping[str, str]]:
    info = work.infos.get(run)
    if info is not None:
        return Course(info.plan.scenario_name, info.plan.rig_name), info.started_at, info.tags
    made = work.manifest.runs[run]
    return made.course, made.started_at, made.tags


def _removed(work: Work, run: MadeRun) -> None:
    """Leave a page that says so in the place of a run's page, and of its comparisons."""
    known = work.manifest
    pages = [page_of_run(run.run), *(page for page, own in known.compared.items() if run.run in own[:2])]
    for page in pages:
        known.compared.pop(page, None)
        work.folder.add(page, printing.removed(page, f"Run {run.run}", run.course.page, str(run.course)))
