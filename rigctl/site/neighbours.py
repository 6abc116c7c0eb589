"""Comparisons of a run with the one before it on the same rig."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from rigctl.analysis.nights.comparison import compared
from rigctl.analysis.run_view import RunView
from rigctl.records import RunStatus
from rigctl.report.comparison.page import comparison_document
from rigctl.report.printers.html import Around, Place, page
from rigctl.site.course import Judged
from rigctl.site.made import MadeRun
from rigctl.site.manifest import digest
from rigctl.site.names import link, page_of_comparison, page_of_run
from rigctl.site.work import Work

MOST: Final = 30


def pairs(judged: Judged) -> list[tuple[MadeRun, MadeRun]]:
    """The latest nights, and those with which a level began, each with the night before it."""
    nights = [run for run in judged.runs if run.is_night and run.status is not RunStatus.RUNNING]
    steps = {shift.since.run for event in judged.history for shift in (event, *event.explains)}
    every = list(pairwise(nights))
    return [pair for number, pair in enumerate(every) if number >= len(every) - MOST or pair[1].run in steps]


def comparisons(work: Work, known: dict[str, tuple[str, str, str]], wanted: Sequence[tuple[MadeRun, MadeRun]]) -> None:
    """Make the pages of `wanted` that are not there, or of which a run has changed; `known` is brought up to date."""
    views: dict[str, RunView] = {}
    for before, after in wanted:
        where = page_of_comparison(before.run, after.run)
        made_from = digest(work.maker, before.state, after.state)
        if known.get(where, ("", "", ""))[2] == made_from and work.folder.has(where):
            continue
        old, new = (views.get(run.run) or _view(work, run.run) for run in (before, after))
        views = {} if new is None else {after.run: new}
        if old is None or new is None:
            continue
        around = Around(
            Place(str(after.course), link(where, after.course.page)),
            *(Place(run.run, link(where, page_of_run(run.run))) for run in (before, after)),
        )
        made = None
        with work.noting(after.run):
            made = page(comparison_document(compared(old, new)), around)
        if made is not None:
            work.folder.add(where, made.encode("utf-8", "replace"))
            known[where] = (before.run, after.run, made_from)


def _view(work: Work, run: str) -> RunView | None:
    """Return None for a damaged run."""
    if run in work.shown:
        return work.shown[run].view
    with work.noting(run):
        info = work.infos.get(run) or work.store.run(run)
        return RunView(info, work.store.repetitions(run, series=False))
    return None
