"""Build time series of figures over nightly runs of a scenario: per test and per pair (`nodes.py`: per node).

A night's value of a figure is the median over the repetitions of the run. A run that confirms a night is not a night
of its own: its medians become the second values of that night.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final, TypeAlias

from rigctl.analysis.nights.comparison import FigureSubject, figure_keys, figures, keys_of_tests
from rigctl.analysis.run_view import RunView
from rigctl.base.errors import InputError
from rigctl.model.statistics.changes import NightPoint, Step
from rigctl.records import CONFIRMS, Cell, RunInfo, RunStatus, Stream
from rigctl.results.read import read_results
from rigctl.store import Store
from rigctl.store.errors import UNREADABLE, of_run

_MOST_NIGHTS: Final = 400  # in a series: a year and a month
NightValues: TypeAlias = Mapping[FigureSubject, float | None]
"""Maps each figure of a run to its median over repetitions; None if unknown."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NightSeries:
    """A figure with one point per night. A node's point is the median over its pairs of value ÷ usual level.

    The series of a node has only those changes that more than half of its pairs share (`nodes.py`).
    """

    subject: FigureSubject
    cell: Cell  # the test, as in the latest run with this figure; for a node, any of its tests
    tests: tuple[int, ...]  # test numbers of this series, as in the latest run with this figure
    points: tuple[NightPoint, ...]
    peers: int = 1  # for a node: number of nodes with a series in the same role

    @property
    def stream(self) -> Stream | None:
        """Return the stream that this series measures; None for a node, or the total of several streams."""
        if self.subject.node is not None:
            return None
        return self.subject.stream or (self.cell.streams[0] if len(self.cell.streams) == 1 else None)

    def better(self, ratio: float) -> bool:
        """Tell whether a change of the level by the factor `ratio` is an improvement."""
        return (ratio > 1) is self.subject.metric.higher_is_better

    def of_figure(self, change: Step) -> Step:
        """Return `change` with `higher_is_better` set as for this series' figure."""
        return replace(change, higher_is_better=self.subject.metric.higher_is_better)


@dataclass(frozen=True, slots=True)
class Nights:
    """The nightly runs of a scenario on a rig, the earliest first. Each series has one point per run in `runs`.

    Series of nodes are added by `judge_nights`, as they need the verdicts on the pairs.
    """

    runs: tuple[RunInfo, ...]
    confirmations: Mapping[str, str]  # maps the id of a run to the id of the run that confirms it
    series: tuple[NightSeries, ...]
    damaged: tuple[str, ...] = ()  # a message for each damaged run


def load_nights(store: Store, run: RunInfo) -> Nights:
    """Return the nightly runs of `run`'s scenario and rig, up to `run`. Raise `InputError` if `run` is damaged."""
    damaged: dict[str, str] = {}
    seen = nights_of(store, run, store.latest_first(damaged), damaged)
    if run.run in damaged:
        raise InputError(damaged[run.run])
    return replace(seen, damaged=tuple(damaged.values()))


def nights_of(store: Store, run: RunInfo, infos: Iterable[RunInfo], damaged: dict[str, str]) -> Nights:
    """Return the nights in `infos` (latest first) up to `run`. Add a message to `damaged` for each damaged run."""
    runs, second = _choose_nights(infos, run)
    return _of_values(runs, second, load_figures(store, [*runs, *second.values()], damaged))


def load_figures(store: Store, infos: Iterable[RunInfo], damaged: dict[str, str]) -> dict[str, NightValues]:
    """Return the figures of runs by run id. Add a message to `damaged` for each run that cannot be read."""
    keys: dict[int, list[FigureSubject]] = {}  # figure keys by id() of the plan, which many nights share
    values: dict[str, NightValues] = {}
    for info in infos:
        if id(info.plan) not in keys:
            keys[id(info.plan)] = keys_of_night(info)
        try:
            values[info.run] = night_values(RunView(read_results(store, info)), keys[id(info.plan)])
        except (InputError, *UNREADABLE) as error:
            damaged[info.run] = of_run(store.place, info.run, error)
    return values


def night_values(view: RunView, keys: Sequence[FigureSubject]) -> NightValues:
    """Return the median of each figure in `keys` over the repetitions of a run."""
    values = {figure.key: figure.values for figure in figures(view.results)}
    return {key: median(values[key]) if values[key] else None for key in keys}


def keys_of_night(info: RunInfo) -> list[FigureSubject]:
    """Return the keys of the figures of a night: of tests, and of streams if a test has several."""
    return [key for cell, key in figure_keys(info.plan.cells) if key.stream is None or len(cell.streams) > 1]


def _of_values(runs: Sequence[RunInfo], second: Mapping[str, RunInfo], values: Mapping[str, NightValues]) -> Nights:
    """Return the `runs` that have values, with their series; `second` maps a night to the run that confirms it."""
    runs = [info for info in runs if info.run in values]
    confirmations = {run: again.run for run, again in second.items() if again.run in values}
    main = [values[info.run] for info in runs]
    again = [values.get(confirmations.get(info.run, ""), {}) for info in runs]
    series = _of_figures(runs, main, again)
    known = (own for own in series if any(point.value is not None for point in own.points))
    return Nights(tuple(runs), confirmations, tuple(known))


def nights_from(seen: Nights, first: int) -> Nights:
    """Return the nights from index `first` on, and this part of each series."""
    first = max(first, 0)
    series = tuple(replace(own, points=own.points[first:]) for own in seen.series)
    return replace(seen, runs=seen.runs[first:], series=series)


def _choose_nights(infos: Iterable[RunInfo], run: RunInfo) -> tuple[list[RunInfo], dict[str, RunInfo]]:
    """Return the nights up to `run`, the earliest first, and the confirming runs by the id of the run they confirm."""
    same: list[RunInfo] = []
    second: dict[str, RunInfo] = {}
    for info in infos:
        if (info.plan.scenario_name, info.plan.rig_name) != (run.plan.scenario_name, run.plan.rig_name):
            continue
        if CONFIRMS in info.tags:
            second.setdefault(info.tags[CONFIRMS], info)  # of several, the latest run counts: it comes first in `infos`
        elif info.run == run.run or (info.run < run.run and info.status is not RunStatus.RUNNING):
            same.append(info)
        if len(same) == _MOST_NIGHTS:
            break
    known = {info.run for info in same}
    return same[::-1], {run: again for run, again in second.items() if run in known}


def _of_figures(
    runs: Sequence[RunInfo], main: Sequence[NightValues], second: Sequence[NightValues]
) -> list[NightSeries]:
    """Return one series for each figure that at least one run has."""
    cells: dict[FigureSubject, Cell] = {}
    for info, values in zip(reversed(runs), reversed(main), strict=True):
        if values.keys() <= cells.keys():
            continue
        keys = keys_of_tests(info.plan.cells)
        tests = {keys[cell.number]: cell for cell in info.plan.cells}
        cells |= {key: tests[key.test] for key in values if key not in cells}
    return [
        NightSeries(
            key,
            cell,
            (cell.number,),
            tuple(NightPoint(values.get(key), again.get(key)) for values, again in zip(main, second, strict=True)),
        )
        for key, cell in cells.items()
    ]
