"""The pages of runs: each run is read once, for its page, its values and its course. Many are made in processes."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from rigctl.analysis.drawn import sampled
from rigctl.analysis.history import night_values
from rigctl.analysis.run_view import RunView
from rigctl.errors import InputError
from rigctl.findings import Severity
from rigctl.records import RunInfo
from rigctl.report.blocks import Document
from rigctl.report.document import of_view
from rigctl.report.expectations import unmet
from rigctl.report.printers.html import Around, page, with_links
from rigctl.site.folder import stage, written
from rigctl.site.made import MadeRun
from rigctl.site.names import Course, page_of_run
from rigctl.site.values import Plain, to_plain
from rigctl.store import Store, open_store

_FEW: Final = 3
"""Pages of a course that are made together with its own, which shows more of the same runs."""
_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class Job:
    """A run whose page is to be made into a file of the stage; `site` is named where there is no room."""

    run: str
    course: Course
    made_from: str
    body_from: str
    state: str
    site: Path
    file: Path
    around: Around


@dataclass(frozen=True, slots=True)
class Shown:
    """All that a page was made of."""

    view: RunView
    document: Document


@dataclass(frozen=True, slots=True)
class Page:
    """`shown` only in the process that made it."""

    made: MadeRun
    values: Plain
    shown: Shown | None

    @property
    def light(self) -> "Page":
        return replace(self, shown=None)


@dataclass(frozen=True, slots=True)
class Damaged:
    """A run that cannot be read, with one message."""

    run: str
    message: str


def are_few(jobs: Sequence[Job]) -> bool:
    return max(Counter(job.course for job in jobs).values(), default=0) <= _FEW


def relinked(job: Job, old: MadeRun | None) -> MadeRun | None:
    """`old` with the page that is there, of which nothing but its links has changed; `None`: it is to be made anew."""
    if old is None or old.body_from != job.body_from:
        return None
    try:
        content = with_links((job.site / page_of_run(job.run)).read_bytes().decode(), job.around)
    except (OSError, UnicodeDecodeError):
        return None
    if content is None:
        return None
    with written(job.site):
        stage(job.file, content.encode())
    return replace(old, made_from=job.made_from)


def run_pages(store: Store, address: str | None, jobs: Sequence[Job]) -> Iterator[Page | Damaged]:
    """Make them, in any number of processes; `address` is that of the store."""
    workers = processors()
    if workers < 2 or store.place == ":memory:":
        yield from (_light(made(store, job)) for job in jobs)
        return
    parts = [jobs[at : at + _AT_ONCE] for at in range(0, len(jobs), _AT_ONCE)]
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        for pages in pool.map(_part, [address] * len(parts), parts):
            yield from pages


def processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0))


def _part(address: str | None, jobs: Sequence[Job]) -> list[Page | Damaged]:
    with open_store(address, create=False) as store:
        return [_light(made(store, job)) for job in jobs]


def _light(page: Page | Damaged) -> Page | Damaged:
    return page.light if isinstance(page, Page) else page


def made(store: Store, job: Job, info: RunInfo | None = None) -> Page | Damaged:
    """Make the page of a job; `info` where it has been read."""
    try:
        info = info or store.run(job.run)
        view = RunView(info, store.repetitions(info.run, series=sampled(info.plan)))
        document, values = of_view(view), to_plain(night_values(view))
    except InputError as error:
        return Damaged(job.run, str(error))
    content = page(document, job.around).encode("utf-8", "replace")
    with written(job.site):
        stage(job.file, content)
    first = document.findings[0] if document.findings else None
    return Page(
        MadeRun(
            run=info.run,
            made_from=job.made_from,
            body_from=job.body_from,
            state=job.state,
            scenario=info.plan.scenario_name,
            rig=info.plan.rig_name,
            title=info.plan.title,
            status=info.status,
            started_at=info.started_at,
            ended_at=info.ended_at,
            tests=len(info.plan.cells),
            answer=first.text if first else "",
            level=str(first.level if first else Severity.NOTE),
            tags=dict(info.tags),
            unmet=unmet(document.findings),
        ),
        values,
        Shown(view, document),
    )
