"""Load a scenario, measure it, and read results: the Python interface of rigctl. See docs/reference/python.md.

Scripts may rely on the names in `__all__`, the columns of docs/reference/columns.md, and the fields of the records.
"""

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from rich.console import Console

from rigctl.analysis.run_view import RunView
from rigctl.base.errors import InputError, NodeError, RigctlError, RigError
from rigctl.records import Cell, Repetition, RunPlan
from rigctl.report.blocks import Document
from rigctl.report.document import document
from rigctl.report.printers.html import write_page
from rigctl.results.frames import Frames
from rigctl.results.read import read_results
from rigctl.results.run_results import RunResults
from rigctl.rig.inventory import Rig
from rigctl.runner.run import measure_run
from rigctl.scenario.load import Overrides, load_plan
from rigctl.store import open_store

__all__ = ["InputError", "NodeError", "RigError", "RigctlError", "Run", "Scenario", "load", "open_run", "run", "runs"]

_MAIN: Final = "rigctl.run needs the main thread, without a running event loop. Call it in a separate process"


@dataclass(frozen=True)
class Scenario:
    """A scenario that is ready to be measured: the plan of its tests, and its rig."""

    plan: RunPlan
    rig: Rig

    @property
    def tests(self) -> tuple[Cell, ...]:
        return self.plan.cells


class Run:
    """A run with its results, as they were in the store when the run was opened."""

    def __init__(self, results: RunResults) -> None:
        self.info = results.info
        self.repetitions: tuple[Repetition, ...] = tuple(results.whole(results.repetitions, samples=True))
        self._results = results

    def __repr__(self) -> str:
        return f"<Run {self.id}: {self.info.plan.scenario_name} on {self.info.plan.rig_name}, {self.info.status}>"

    @property
    def id(self) -> str:
        return self.info.run

    @cached_property
    def frames(self) -> Frames:
        """Return pandas frames: cells, pairs, flows, intervals, bins, histogram, phases (docs/reference/columns.md)."""
        return Frames(self._results)

    @cached_property
    def report(self) -> Document:
        """Return the report: findings, the most important first, and verdicts on the scenario's expectations."""
        return document(RunView(self._results))

    @property
    def as_expected(self) -> bool:
        """Tell whether every expectation of the scenario is met; True if it has none."""
        return all(verdict.met for verdict in self.report.verdicts)

    def write_page(self, path: str | Path) -> None:
        """Write the report as one self-contained HTML file."""
        write_page(self.report, Path(path))


def load(
    scenario: str | Path,
    rig: str | Path | None = None,
    *,
    sets: Sequence[str] = (),
    rig_sets: Sequence[str] = (),
    duration: str | None = None,
    repeat: int | None = None,
) -> Scenario:
    """Return a scenario with its rig. `scenario` is a file or the name of a bundled scenario.

    The other parameters are the options of `rigctl run`; `sets` are the values of `--set`, as in `["window=64K,1M"]`.
    Contacts no node. Raises `InputError`, which lists all mistakes.
    """
    named = None if rig is None else str(rig)
    plan, inventory = load_plan(
        str(scenario), Overrides(named, tuple(sets), duration, repeat, tuple(rig_sets), captures=())
    )
    return Scenario(plan, inventory)


def run(scenario: Scenario, store: str | Path | None = None, *, progress: bool = False) -> Run:
    """Measure a scenario, and store and return the run, even if some tests failed. By default, use rigctl's store.

    Blocks until the run has ended. With `progress`, progress is printed to standard error. Raises `RigError` if nothing
    was measured, `InterruptError` (a `RigctlError`) on Ctrl-C before the first test.
    """
    if threading.current_thread() is not threading.main_thread() or _in_loop():
        raise InputError(_MAIN)
    with open_store(None if store is None else str(store), create=True) as opened:
        outcome = measure_run(scenario.plan, scenario.rig, opened, Console(stderr=True), quiet=not progress)
        return Run(read_results(opened, opened.run(outcome.run)))


def runs(store: str | Path | None = None) -> list[str]:
    """Return the ids of all runs in a store, the earliest first."""
    with open_store(_address(store), create=False) as opened:
        return opened.run_ids()


def open_run(run: str | None = None, store: str | Path | None = None) -> Run:
    """Return a stored run by its id, the beginning of its id, or `latest~N` (default: latest). Raises `InputError`."""
    with open_store(_address(store), create=False) as opened:
        return Run(read_results(opened, opened.run(run)))


def _address(store: str | Path | None) -> str | None:
    return None if store is None else str(store)


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
