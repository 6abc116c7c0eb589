"""Which run `rigctl display` shows: the one in progress, the next that begins, or the latest of the store."""

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rigctl.base.errors import InputError, RigctlError
from rigctl.display.folder import Fate, Published, published
from rigctl.display.state import State

if TYPE_CHECKING:
    from rich.text import Text

    from rigctl.records import RunInfo
    from rigctl.store import Store


def of_rig(runs: Sequence[Published], rig: str | None) -> list[Published]:
    return [each for each in runs if rig is None or rig in {each.state.rig, each.state.run}]


class Screen:
    """Which run is shown: the one that was chosen until it is over, then the next that begins."""

    def __init__(self, rig: str | None, store: str | None, process: int | None) -> None:
        self._rig, self._store, self._process = rig, store, process
        self._parent = os.getppid()
        self._shown: Published | None = None
        self._asked = False

    @property
    def going(self) -> bool:
        return self._shown is not None and self._shown.going

    def choose(self) -> None:
        """Raises `InputError` where several runs are in progress."""
        going = [each for each in self._candidates() if each.going]
        if len(going) > 1:
            listed = "\n".join(
                f"  {each.state.rig}  {each.state.run or each.state.scenario}  {each.user}" for each in going
            )
            raise InputError(f"several runs are in progress. Name a rig, or the id of a run:\n{listed}")

    def lines(self, width: int, height: int) -> "Sequence[Text] | None":
        """The screen now. None: it is over, as its run is."""
        from rigctl.display.layout import screen, waiting

        if self._process is not None and os.getppid() != self._parent:
            return None
        self._follow()
        if self._shown is not None:
            return screen(self._shown, width, height, time.monotonic())
        return waiting(["No run yet." if self._process is None else "The run begins.", "q leaves"], width, height)

    def _candidates(self) -> list[Published]:
        runs = of_rig(published(), self._rig)
        return [each for each in runs if self._process in {None, each.state.pid}]

    def _follow(self) -> None:
        """Take up what is new of the run that is shown; where it is over, the run that begins."""
        found = self._candidates()
        if self._shown is not None:
            same = [each for each in found if _key(each) == _key(self._shown)]
            if same:
                self._shown = same[0]
                if self._shown.going:
                    return
        going = [each for each in found if each.going]
        if going:
            self._shown = going[0]
        elif self._shown is None and self._process is None:
            self._shown = self._latest(found)

    def _latest(self, found: Sequence[Published]) -> Published | None:
        """The latest run with results: published ones, or that of the store."""
        ended = [each for each in found if each.state.results is not None]
        stored = None if self._asked else _stored(self._store, self._rig)  # later runs are published
        self._asked = True
        known = [*ended, *([stored] if stored is not None else [])]
        return max(known, key=lambda each: each.state.began_at, default=None)


def _key(each: Published) -> tuple[str, int, int]:
    return each.user, each.state.pid, each.state.started


def _stored(store: str | None, rig: str | None) -> Published | None:
    """The latest run of the store, with its table; None where there is none, or no store."""
    from rigctl.store import open_store

    try:
        with open_store(store, create=False) as opened:
            info = _latest_of(opened, rig)
            if info is None:
                return None
            from rigctl.analysis.views.over_time import sampled
            from rigctl.cli.display_results import results_of
            from rigctl.report.document import document as report

            made = report(info, opened.repetitions(info.run, series=sampled(info.plan)))
            return _as_published(info, results_of(made))
    except RigctlError:
        return None


def _latest_of(opened: "Store", rig: str | None) -> "RunInfo | None":
    ids = opened.run_ids()
    if rig is None or rig in ids:
        return opened.run(rig) if ids else None
    return next((info for info in reversed(opened.runs()) if info.plan.rig_name == rig), None)


def _as_published(info: "RunInfo", results: object) -> Published:
    import getpass

    ended_at = info.ended_at or info.started_at
    outcome = str(info.status) if str(info.status) in {"complete", "partial", "interrupted"} else None
    state = State.model_validate(
        {
            "pid": os.getpid(),
            "started": 0,
            "rig": info.plan.rig_name,
            "scenario": info.plan.scenario_name,
            "title": info.plan.title,
            "run": info.run,
            "began_at": info.started_at,
            "written_at": ended_at,
            "clock_s": time.monotonic(),
            "phase": "ended",
            "outcome": outcome,
            "tests": len(info.plan.cells),
            "done": 0,
            "total": 0,
            "results": results,
        }
    )
    return Published(state, getpass.getuser(), Fate.ENDED)
