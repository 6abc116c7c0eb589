"""The life of a publish, on one page.

1. The folder is opened, for this publisher alone; the site of another store is refused (`folder`).
2. Scenario by scenario, the pages of runs are made: where the page is missing, was made by another version of rigctl,
   or the run, its tags or its neighbours have changed (`manifest`).
3. The scenario is judged by the figures of its nights, which the store keeps (`course`); its page is made, and the
   pages that compare its latest runs with the ones before.
4. The front page, the search and the feed are made.
5. All files that differ from those in place are put there (`Folder.commit`), then the manifest is stored.

Until 5 the old site is as it was. What ends in 5 is made again by the next publish.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeVar
from uuid import uuid4

from rigctl.analysis.nights.comparison import compared
from rigctl.analysis.nights.history import measured
from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.over_time import sampled
from rigctl.base.errors import InputError
from rigctl.base.texts import printable
from rigctl.base.version import __version__
from rigctl.records import CONFIRMS, RunInfo, RunStatus
from rigctl.report.blocks import Document
from rigctl.report.comparison.page import comparison_document
from rigctl.report.document import of_view
from rigctl.report.printers.html import Around, Place
from rigctl.report.printers.html import page as html_page
from rigctl.report.sections.expectations import unmet
from rigctl.site import manifest as manifests
from rigctl.site import printing
from rigctl.site.course import Judged, judge
from rigctl.site.folder import Folder, Mark, opened, where
from rigctl.site.manifest import Manifest, RunPage
from rigctl.site.names import FEED, INDEX, SEARCH, Course, link, page_of_comparison, page_of_run
from rigctl.site.news import feed
from rigctl.site.nights import MadeRun
from rigctl.store import Store
from rigctl.store.errors import UNREADABLE, of_run

TITLE: Final = "Network tests"
MOST_COMPARED: Final = 30
"""Latest nights of a scenario that are compared with the night before."""
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Published:
    """A finished publish. `written`: files, relative to the folder; `removed`: runs that the store no longer has."""

    index: Path
    written: tuple[str, ...]
    runs: int
    courses: int
    removed: tuple[str, ...]
    news: int
    answer: str
    damaged: tuple[str, ...]  # a message for each run that cannot be read


def publish(store: Store, path: Path, now: float, title: str | None = None) -> Published:
    """Write the site of `store` into the folder `path`. Raise `InputError` if the folder cannot be used."""
    with opened(path) as folder:
        mark = _claim(folder, store, title)
        return _Publish(store, folder, manifests.load(folder), now).site(mark)


def _claim(folder: Folder, store: Store, title: str | None) -> Mark:
    """Mark the folder as the site of this store. Refuse the site of another store.

    A store that was moved is recognised: it has all runs of the site.
    """
    here, known = where(store.place), folder.mark
    if known is None:
        known = Mark(uuid4(), here, TITLE)
    elif known.store != here:
        runs = manifests.load(folder).runs.keys()
        if not runs or runs - set(store.run_ids()):
            raise InputError(
                f"{folder.path}: is the site of another store, {printable(known.store)}; nothing was touched. "
                "Name another folder"
            )
    mark = Mark(known.site, here, known.title if title is None else title)
    if mark != folder.mark:
        folder.set_mark(mark)
    return mark


class _Publish:
    """One publish. Nights after `now` are those of a clock that was wrong."""

    def __init__(self, store: Store, folder: Folder, known: Manifest, now: float) -> None:
        self.store, self.folder, self.known, self.now = store, folder, known, now
        self.damaged: dict[str, str] = {}
        self.measured = store.measured()
        self.accepted = store.history.accepted()
        self.nights = [night for night in store.history.nights() if night.due_at <= now]

    def site(self, mark: Mark) -> Published:
        former = {Course(run.scenario, run.rig) for run in self.known.runs.values()}
        gone = sorted(self.known.runs.keys() - set(self.store.run_ids()))
        for run in gone:
            self._remove(run, self.known.runs.pop(run))
        courses: dict[Course, list[RunInfo]] = {}
        for info in reversed(list(self.store.latest_first(self.damaged))):
            courses.setdefault(Course(info.plan.scenario_name, info.plan.rig_name), []).append(info)
        judged = [found for course in sorted(courses) if (found := self._course(course, courses[course])) is not None]
        kept = {Course(run.scenario, run.rig).name for run in self.known.runs.values()}
        for course in sorted(former):
            if course.name not in kept:
                page = printing.removed(course.page, f"All runs of {course}", INDEX, "All scenarios")
                self.folder.add(course.page, page)
        runs = [run for own in judged for run in own.runs]
        entries = [entry for own in judged for entry in own.entries]
        latest = max((run.info.ended_at or run.info.started_at for run in runs), default=self.now)
        self.folder.add(SEARCH, printing.search(runs))
        self.folder.add(FEED, feed(mark.site, mark.title, entries, latest))
        self.folder.add(INDEX, printing.front(mark.title, judged, runs, self.now))
        written = self.folder.commit()
        manifests.save(self.folder, self.known)
        return Published(
            index=self.folder.path / INDEX,
            written=tuple(written),
            runs=len(runs),
            courses=len(judged),
            removed=tuple(gone),
            news=len(entries),
            answer=printing.answer(judged),
            damaged=tuple(self.damaged.values()),
        )

    def _course(self, course: Course, infos: Sequence[RunInfo]) -> Judged | None:
        """Make the pages of a scenario on a rig and of its runs; return None if none of its runs can be read."""
        around = _around(course, infos)
        runs = [made for info in infos if (made := self._run(info, course, around[info.run])) is not None]
        if not runs:
            return None
        judged = judge(
            course,
            runs,
            [night for night in self.nights if (night.scenario, night.rig) == (course.scenario, course.rig)],
            self.accepted,
            self.now,
            lambda infos: measured(self.store, infos, self.damaged),
            lambda info: self._tried(info, lambda: self._document(info)),
        )
        for before, after in _compared(judged):
            self._comparison(course, before, after)
        own = {run.run for run in runs}
        pages = {after: page for page, (before, after, _) in self.known.compared.items() if {before, after} <= own}
        self.folder.add(course.page, printing.course(judged, pages))
        return judged

    def _run(self, info: RunInfo, course: Course, around: Around) -> MadeRun | None:
        """Make the page of a run, if the one in place is not up to date. Return None for a damaged run."""
        of_run = (str(info.status), info.started_at, info.ended_at, sorted(info.tags.items()))
        state = repr((__version__, *of_run, sorted(self.measured.get(info.run, {}).items()), around))
        page, known = page_of_run(info.run), self.known.runs.get(info.run)
        if known is None or known.state != state or not self.folder.has(page):

            def made() -> tuple[RunPage, str]:
                document = self._document(info)
                told = RunPage(state, course.scenario, course.rig, document.answer, unmet(document.findings))
                return told, html_page(document, around)

            found = self._tried(info, made)
            if found is None:
                return None
            known = self.known.runs[info.run] = found[0]
            self.folder.add(page, found[1])
        return MadeRun(info, course, known.answer, known.unmet)

    def _comparison(self, course: Course, before: RunInfo, after: RunInfo) -> None:
        """Make the page that compares two runs, if the one in place is not up to date."""
        page = page_of_comparison(before.run, after.run)
        state = f"{self.known.runs[before.run].state} {self.known.runs[after.run].state}"
        if self.known.compared.get(page, ("", "", ""))[2] == state and self.folder.has(page):
            return
        places = [Place(info.run, link(page, page_of_run(info.run))) for info in (before, after)]
        around = Around(Place(str(course), link(page, course.page)), *places)

        def made() -> str:
            old, new = (RunView(info, self.store.repetitions(info.run, series=False)) for info in (before, after))
            return html_page(comparison_document(compared(old, new)), around)

        text = self._tried(after, made)
        if text is not None:
            self.folder.add(page, text)
            self.known.compared[page] = (before.run, after.run, state)

    def _document(self, info: RunInfo) -> Document:
        return of_view(RunView(info, self.store.repetitions(info.run, series=sampled(info.plan))))

    def _remove(self, run: str, known: RunPage) -> None:
        """Replace the page of a run that the store no longer has, and its comparisons, by one that says so."""
        course = Course(known.scenario, known.rig)
        for page in [page_of_run(run), *(page for page, own in self.known.compared.items() if run in own[:2])]:
            self.known.compared.pop(page, None)
            self.folder.add(page, printing.removed(page, f"Run {run}", course.page, str(course)))

    def _tried(self, info: RunInfo, make: Callable[[], _T]) -> _T | None:
        """Return what `make` returns. Note a run that cannot be read, judged or drawn as damaged; the others go on."""
        try:
            return make()
        except (InputError, *UNREADABLE) as error:
            _log.debug("run %s", info.run, exc_info=error)
            self.damaged[info.run] = of_run(self.store.place, info.run, error)
            return None


def _around(course: Course, infos: Sequence[RunInfo]) -> Mapping[str, Around]:
    """Return the links of each run's page: to its scenario, and to the nights before and after."""

    def place(page: str, other: RunInfo | None, text: str = "") -> Place | None:
        if other is None:
            return None
        return Place(text or f"{datetime.fromtimestamp(other.started_at):%Y-%m-%d}", link(page, page_of_run(other.run)))

    nights = {info.run: info for info in infos if CONFIRMS not in info.tags}
    turn = [None, *nights.values(), None]
    beside = {run: (turn[at], turn[at + 2]) for at, run in enumerate(nights)}
    found = {}
    for info in infos:
        page = page_of_run(info.run)
        home = Place(str(course), link(page, course.page))
        if info.run in nights:
            found[info.run] = Around(home, *(place(page, other) for other in beside[info.run]))
        else:
            found[info.run] = Around(home, place(page, nights.get(info.tags[CONFIRMS]), "the night it confirms"))
    return found


def _compared(judged: Judged) -> list[tuple[RunInfo, RunInfo]]:
    """Return the latest nights, and those with which a level began, each with the night before it."""
    nights = [run.info for run in judged.runs if run.is_night and run.info.status is not RunStatus.RUNNING]
    steps = {shift.since.run for event in judged.history for shift in (event, *event.explains)}
    pairs = list(pairwise(nights))
    return [pair for number, pair in enumerate(pairs) if number >= len(pairs) - MOST_COMPARED or pair[1].run in steps]
