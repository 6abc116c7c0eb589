"""The pages of runs: each run is read once, for its page, its values and its course."""

from dataclasses import dataclass, replace

from rigctl.analysis.nights.history import Values, night_values
from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.over_time import sampled
from rigctl.findings import Severity
from rigctl.records import RunInfo
from rigctl.report.blocks import Document
from rigctl.report.document import of_view
from rigctl.report.printers.html import Around, page, with_links
from rigctl.report.sections.expectations import unmet
from rigctl.site.folder import Folder
from rigctl.site.made import MadeRun
from rigctl.site.names import Course, page_of_run
from rigctl.store import Store


@dataclass(frozen=True, slots=True)
class Job:
    """A run whose page is to be made."""

    run: str
    course: Course
    made_from: str
    body_from: str
    state: str
    around: Around


@dataclass(frozen=True, slots=True)
class Shown:
    """All that a page was made of."""

    view: RunView
    document: Document


@dataclass(frozen=True, slots=True)
class Page:
    content: bytes
    made: MadeRun
    values: Values
    shown: Shown


def relinked(folder: Folder, job: Job, old: MadeRun | None) -> MadeRun | None:
    """`old` with the page that is there, of which nothing but its links has changed; `None`: it is to be made anew."""
    if old is None or old.body_from != job.body_from:
        return None
    there = folder.page(page_of_run(job.run))
    try:
        content = None if there is None else with_links(there.decode(), job.around)
    except UnicodeDecodeError:
        return None
    if content is None:
        return None
    folder.add(page_of_run(job.run), content.encode())
    return replace(old, made_from=job.made_from)


def made(store: Store, job: Job, info: RunInfo | None = None) -> Page:
    """Make the page of a job; `info` where it has been read."""
    info = info or store.run(job.run)
    view = RunView(info, store.repetitions(info.run, series=sampled(info.plan)))
    document, values = of_view(view), night_values(view)
    first = document.findings[0] if document.findings else None
    return Page(
        page(document, job.around).encode("utf-8", "replace"),
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
