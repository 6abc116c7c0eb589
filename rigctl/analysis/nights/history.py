"""The nights of a scenario on a rig as series: of each test, each pair, and each node as sender and as receiver.

A night's value is the median of its repetitions. Runs that confirm others are no nights: theirs are second values.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from statistics import median
from typing import Final, TypeAlias

from rigctl.analysis.nights.figures import Figure, FigureKey, Metric, figures, keys_of_tests
from rigctl.analysis.nights.night_totals import NightsOfPlan, suffices
from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.mesh import LEAST, Role
from rigctl.base.errors import InputError
from rigctl.model.statistics.changes import Point
from rigctl.records import CONFIRMS, Cell, RunInfo, RunStatus, Stream
from rigctl.store import Store
from rigctl.store.errors import UNREADABLE, of_run

MOST_NIGHTS: Final = 400
"""A year and a month: earlier nights say little about this one."""
Values: TypeAlias = Mapping[FigureKey, float | None]
"""Of a run, the median of each figure."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a series is of: a test, a pair (`stream`) of it, or a node in a role, in tests that differ in pairs only."""

    test: str  # as in FigureKey; of a node the settings without pairs
    metric: Metric
    stream: Stream | None = None
    node: str | None = None
    role: Role | None = None


@dataclass(frozen=True, slots=True)
class NightSeries:
    """A point for each night. `points` of a node are ratios: 1 is its usual level."""

    subject: Subject
    cell: Cell  # a test of the latest run that has it
    tests: tuple[int, ...]  # numbers in that run
    points: tuple[Point, ...]
    peers: int = 1  # of a node, how many are in its role

    def better(self, ratio: float) -> bool:
        """Whether a change by `ratio` is for the better."""
        return (ratio > 1) is self.subject.metric.higher_is_better


@dataclass(frozen=True, slots=True)
class Nights:
    """`runs`: the earliest first; `series` have as many points each."""

    runs: tuple[RunInfo, ...]
    confirmations: Mapping[str, str]  # of a run, by its id, that which confirms it
    series: tuple[NightSeries, ...]
    damaged: tuple[str, ...] = ()  # a message for each run that could be one of them, but cannot be read


def nights(store: Store, run: RunInfo) -> Nights:
    """The nights of the scenario and rig of `run`, up to that one."""
    seen: dict[str, RunInfo] = {}
    damaged: dict[str, str] = {}
    runs, confirmations = chosen(_noted(store.latest_first(run.plan, damaged), seen), run)
    second = [confirmations[info.run] for info in runs if info.run in confirmations]
    values = measured(store, [*runs, *(seen[name] for name in second)], damaged)
    if run.run in damaged:
        raise InputError(damaged[run.run])
    runs = [info for info in runs if info.run in values]
    confirmations = {night: second for night, second in confirmations.items() if second in values}
    return replace(of_runs(runs, confirmations, values.__getitem__), damaged=tuple(damaged.values()))


def _noted(infos: Iterable[RunInfo], seen: dict[str, RunInfo]) -> Iterator[RunInfo]:
    for info in infos:
        seen[info.run] = info
        yield info


def measured(store: Store, infos: Sequence[RunInfo], damaged: dict[str, str]) -> dict[str, Values]:
    """The values of runs, each as a night. Of streams only what they received is read, of many runs at once.

    `damaged` takes a message for each run whose values cannot be read.
    """
    found: dict[str, Values] = {}
    plans: dict[int, NightsOfPlan] = {}
    by_run = {info.run: info for info in infos}
    for run, totals in store.totals([info.run for info in infos if suffices(info.plan)]):
        plan = by_run[run].plan
        if id(plan) not in plans:
            plans[id(plan)] = NightsOfPlan(plan)
        values = None if totals is None else plans[id(plan)].values(totals)
        if values is not None:
            found[run] = values
    # Of messages and probes more is to be read; what is damaged is named by who reads all of it.
    for run, info in by_run.items():
        if run not in found:
            try:
                found[run] = _measured(store, info)
            except (InputError, *UNREADABLE) as error:
                damaged[run] = of_run(store.place, run, error)
    return found


def of_runs(runs: Sequence[RunInfo], confirmations: Mapping[str, str], values: Callable[[str], Values]) -> Nights:
    """The nights `runs`, the earliest first. `values` gives those of a run, by its id."""
    main = [values(info.run) for info in runs]
    second = [values(confirmations[info.run]) if info.run in confirmations else {} for info in runs]
    series = _of_figures(runs, main, second)
    return Nights(tuple(runs), confirmations, (*_of_nodes(series), *_alone(series)))


def since(seen: Nights, first: int) -> Nights:
    """The nights from `first` on, by number."""
    first = max(first, 0)
    series = tuple(replace(own, points=own.points[first:]) for own in seen.series)
    return replace(seen, runs=seen.runs[first:], series=series)


def values_of(store: Store, info: RunInfo) -> dict[Subject, float | None]:
    """Of a run by itself, the medians of its tests and pairs."""
    return {Subject(key.test, key.metric, key.stream): value for key, value in _measured(store, info).items()}


def _measured(store: Store, info: RunInfo) -> Values:
    return night_values(RunView(info, store.repetitions(info.run, series=False)))


def chosen(infos: Iterable[RunInfo], run: RunInfo) -> tuple[list[RunInfo], dict[str, str]]:
    """Of runs, the latest first, the nights up to `run`, the earliest first; and which of the others confirm them."""
    same: list[RunInfo] = []
    confirmations: dict[str, str] = {}
    for info in infos:
        if (info.plan.scenario_name, info.plan.rig_name) != (run.plan.scenario_name, run.plan.rig_name):
            continue
        if CONFIRMS in info.tags:
            confirmations.setdefault(info.tags[CONFIRMS], info.run)  # the latest counts
        elif info.run == run.run or (info.run < run.run and info.status is not RunStatus.RUNNING):
            same.append(info)
        if len(same) == MOST_NIGHTS:
            break
    return same[::-1], confirmations


def night_values(view: RunView) -> dict[FigureKey, float | None]:
    """The values of a run as a night."""
    return {
        figure.key: median(figure.values) if figure.values else None
        for figure in figures(view.frames)
        if not _twice(figure)
    }


def _twice(figure: Figure) -> bool:
    """Whether it is the only pair of its test."""
    return figure.key.stream is not None and len(figure.cell.streams) == 1


def _of_figures(runs: Sequence[RunInfo], main: Sequence[Values], second: Sequence[Values]) -> list[NightSeries]:
    latest: dict[FigureKey, RunInfo] = {}
    for info, values in zip(reversed(runs), reversed(main), strict=True):
        for key in values:
            latest.setdefault(key, info)
    tests = {info.run: _tests(info) for info in {info.run: info for info in latest.values()}.values()}
    made = []
    for key, info in latest.items():
        cell = tests[info.run][key.test]
        points = tuple(Point(values.get(key), again.get(key)) for values, again in zip(main, second, strict=True))
        made.append(NightSeries(Subject(key.test, key.metric, key.stream), cell, (cell.number,), points))
    return made


def _tests(info: RunInfo) -> dict[str, Cell]:
    keys = keys_of_tests(info.plan.cells)
    return {keys[cell.number]: cell for cell in info.plan.cells}


def _alone(series: Iterable[NightSeries]) -> Iterator[NightSeries]:
    """Those of tests and pairs that were ever measured."""
    return (own for own in series if any(point.value is not None for point in own.points))


def _of_nodes(series: Sequence[NightSeries]) -> Iterator[NightSeries]:
    """What the pairs of a node in a role have in common, where it has several."""
    groups: dict[Subject, list[NightSeries]] = {}
    for own in series:
        stream = own.subject.stream or (own.cell.streams[0] if len(own.cell.streams) == 1 else None)
        if stream is None:
            continue
        point = str(replace(own.cell, number=0, pairs=()))
        roles: tuple[tuple[str, Role], ...] = ((stream.sender, "sending"), (stream.receiver, "receiving"))
        for node, role in roles:
            subject = Subject(point, own.subject.metric, node=node, role=role)
            groups.setdefault(subject, []).append(own)
    seen = {subject: own for subject, own in groups.items() if len(_partners(own, subject)) >= LEAST}
    peers = Counter((subject.test, subject.metric, subject.role) for subject in seen)
    for subject, members in seen.items():
        tests = tuple(sorted({number for own in members for number in own.tests}))
        points = common([own.points for own in members])
        yield NightSeries(subject, members[0].cell, tests, points, peers[subject.test, subject.metric, subject.role])


def _partners(members: Iterable[NightSeries], subject: Subject) -> set[str]:
    streams = [own.subject.stream or own.cell.streams[0] for own in members]
    return {stream.receiver if subject.role == "sending" else stream.sender for stream in streams}


def common(members: Sequence[Sequence[Point]]) -> tuple[Point, ...]:
    """Night by night what all did: the median of their ratios to their own levels, of two the smaller change."""
    levels = [median(known) if (known := _known(points)) else None for points in members]
    made = []
    for at in range(len(members[0])):
        nights = [(points[at], level) for points, level in zip(members, levels, strict=True) if level is not None]
        values = [log(point.value / level) for point, level in nights if point.value]
        seconds = [log(point.second / level) for point, level in nights if point.second]
        made.append(Point(_middle(values, len(members)), _middle(seconds, len(members))))
    return tuple(made)


def _known(points: Iterable[Point]) -> list[float]:
    return [point.value for point in points if point.value]


def _middle(values: Sequence[float], members: int) -> float | None:
    if len(values) < max(LEAST, members / 2):
        return None
    return exp(min(values, key=abs) if len(values) == LEAST else median(values))
