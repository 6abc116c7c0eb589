"""The steps of publishing a site, on one page.

1. Open the folder for this publisher only; refuse the site of another store (`folder`).
2. For each scenario, make the pages of runs that are missing or out of date. A page is out of date if the version of
   rigctl, the run, its tags, or the nights before and after have changed (`RunPage`).
3. Evaluate the scenario by the stored figures of its nights (`nights`) and make its page.
4. Make the front page and the feed.
5. Move all changed files into place (`Folder.commit`), then store the manifest.

Until step 5 the old site is unchanged. If step 5 is interrupted, the next publish repeats it.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar
from uuid import uuid4

from pydantic import TypeAdapter, ValidationError

from rigctl.analysis.nights.history import nights_of
from rigctl.analysis.run_view import RunView
from rigctl.base.errors import InputError
from rigctl.base.values import group_by
from rigctl.base.version import __version__
from rigctl.records import CONFIRMS, RunInfo, Unmet
from rigctl.report.blocks import Document
from rigctl.report.comparison import report_of
from rigctl.report.printers.html import Around, SiteLink
from rigctl.report.printers.html import page as html_page
from rigctl.report.regressions import run_day
from rigctl.report.sections.expectations import unmet_bounds
from rigctl.results.read import read_results
from rigctl.site import pages
from rigctl.site.folder import FEED, INDEX, FeedIdentity, Folder, ScenarioOnRig, open_folder, page_link, page_of_run
from rigctl.site.nights import ScenarioNights, SiteRun, judge_scenario, latest_ended
from rigctl.store import Store
from rigctl.store.errors import UNREADABLE, of_run

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class RunPage:
    """A run's page. `state` is the run, rigctl version and linked pages as they were when the page was made."""

    state: str
    scenario: str
    rig: str
    unmet: tuple[Unmet, ...] = ()


_MANIFEST: Final = "manifest.json"
_PAGES: Final = TypeAdapter(dict[str, RunPage])


@dataclass(frozen=True, slots=True)
class Published:
    """Result of `publish`. `written`: paths relative to the folder; `removed`: ids of runs that left the store."""

    index: Path
    written: tuple[str, ...]
    runs: int
    scenarios: int
    removed: tuple[str, ...]
    news: int
    answer: str
    damaged: tuple[str, ...]  # a message for each unreadable run


def publish(store: Store, path: Path, now: float, title: str | None = None) -> Published:
    """Write the site of `store` into the folder `path`; return what was written. Raise `InputError` if that fails."""
    with open_folder(path) as folder:
        known = _read_manifest(folder)
        return _Publish(store, folder, known, now).site(_claim(folder, known, store, title))


def _read_manifest(folder: Folder) -> dict[str, RunPage]:
    with contextlib.suppress(ValidationError):
        return _PAGES.validate_json(folder.kept(_MANIFEST) or b"{}")
    return {}


def _claim(folder: Folder, known: dict[str, RunPage], store: Store, title: str | None) -> FeedIdentity:
    """Mark the folder as a site and return the mark. Raise `InputError` if the folder has the site of another store."""
    if known and not known.keys() & set(store.run_ids()):
        raise InputError(
            f"{folder.path}: is the site of another store: none of its runs is in {store.place}; nothing was touched. "
            "Name another folder"
        )
    former = folder.mark or FeedIdentity(uuid4(), "Network tests")
    mark = former if title is None else FeedIdentity(former.site, title)
    if mark != folder.mark:
        folder.set_mark(mark)
    return mark


class _Publish:
    """One call of `publish`. Nights due after `now` are ignored: they were recorded with a wrong clock."""

    def __init__(self, store: Store, folder: Folder, known: dict[str, RunPage], now: float) -> None:
        self.store, self.folder, self.known, self.now = store, folder, known, now
        self.damaged: dict[str, str] = {}
        self.measured = store.measured()
        self.accepted = store.history.accepted()
        self.nights = [night for night in store.history.nights() if night.due_at <= now]

    def site(self, mark: FeedIdentity) -> Published:
        former = {ScenarioOnRig(run.scenario, run.rig) for run in self.known.values()}
        gone = sorted(self.known.keys() - set(self.store.run_ids()))
        for run in gone:
            known, page = self.known.pop(run), page_of_run(run)
            scenario = ScenarioOnRig(known.scenario, known.rig)
            self.folder.add(page, pages.page_of_removed(page, f"Run {run}", scenario.page, str(scenario)))
        every = reversed(list(self.store.latest_first(self.damaged)))
        infos = group_by(every, lambda info: SiteRun(info).scenario)
        judged = [own for scenario in sorted(infos) if (own := self._scenario(scenario, infos[scenario])) is not None]
        kept = {ScenarioOnRig(run.scenario, run.rig) for run in self.known.values()}
        for scenario in sorted(former - kept):
            page = pages.page_of_removed(scenario.page, f"All runs of {scenario}", INDEX, "All scenarios")
            self.folder.add(scenario.page, page)
        runs = [run for own in judged for run in own.runs]
        news = [entry for own in judged for entry in own.news]
        latest = max((run.info.ended_at or run.info.started_at for run in runs), default=self.now)
        self.folder.add(FEED, pages.feed(mark.site, mark.title, news, latest))
        self.folder.add(INDEX, pages.front(mark.title, judged, self.now))
        written = self.folder.commit()
        self.folder.keep(_MANIFEST, _PAGES.dump_json(self.known))
        return Published(
            index=self.folder.path / INDEX,
            written=tuple(written),
            runs=len(runs),
            scenarios=len(judged),
            removed=tuple(gone),
            news=len(news),
            answer=pages.site_answer(judged),
            damaged=tuple(self.damaged.values()),
        )

    def _scenario(self, scenario: ScenarioOnRig, infos: Sequence[RunInfo]) -> ScenarioNights | None:
        """Add the pages of a scenario and its runs; return its evaluation, or None if no run can be read."""
        around = _links_around(scenario, infos)
        runs = [made for info in infos if (made := self._run(info, scenario, around[info.run])) is not None]
        if not runs:
            return None
        nights = [night for night in self.nights if (night.scenario, night.rig) == (scenario.name, scenario.rig)]
        last, seen, document = latest_ended(runs, self.now), None, None
        if last is not None:
            seen = nights_of(self.store, last, [run.info for run in reversed(runs)], self.damaged)
            document = self._try_to_make(last, lambda: self._document(last))
        judged = judge_scenario(scenario, runs, nights, seen, self.accepted, document, self.now)
        self.folder.add(scenario.page, pages.scenario(judged, self.now))
        return judged

    def _run(self, info: RunInfo, scenario: ScenarioOnRig, around: Around) -> SiteRun | None:
        """Add the page of a run unless it is up to date. Return the run, or None if the run is damaged."""
        of_run = (str(info.status), info.started_at, info.ended_at, sorted(info.tags.items()))
        state = repr((__version__, *of_run, sorted(self.measured.get(info.run, {}).items()), around))
        page, known = page_of_run(info.run), self.known.get(info.run)
        if known is None or known.state != state or not self.folder.has(page):

            def made() -> tuple[RunPage, str]:
                document = self._document(info)
                own = RunPage(state, scenario.name, scenario.rig, unmet_bounds(document.findings))
                return own, html_page(document, around)

            new = self._try_to_make(info, made)
            if new is None:
                return None
            known = self.known[info.run] = new[0]
            self.folder.add(page, new[1])
        return SiteRun(info, known.unmet)

    def _document(self, info: RunInfo) -> Document:
        return report_of(RunView(read_results(self.store, info)))[0]

    def _try_to_make(self, info: RunInfo, make: Callable[[], _T]) -> _T | None:
        """Return the result of `make`. If the run cannot be read or drawn, add it to `damaged` and return None."""
        try:
            return make()
        except (InputError, *UNREADABLE) as error:
            self.damaged[info.run] = of_run(self.store.place, info.run, error)
            return None


def _links_around(scenario: ScenarioOnRig, infos: Sequence[RunInfo]) -> Mapping[str, Around]:
    """Return the links of each run's page: to its scenario, and for a night to the nights before and after."""
    nights = [info for info in infos if CONFIRMS not in info.tags]
    turn = [None, *nights, None]
    neighbours = {info.run: (turn[at], turn[at + 2]) for at, info in enumerate(nights)}
    found = {}
    for info in infos:
        page = page_of_run(info.run)
        home = SiteLink(str(scenario), page_link(page, scenario.page))
        found[info.run] = Around(home, *(_link_to(other, page) for other in neighbours.get(info.run, ())))
    return found


def _link_to(other: RunInfo | None, page: str) -> SiteLink | None:
    return None if other is None else SiteLink(run_day(other), page_link(page, page_of_run(other.run)))
