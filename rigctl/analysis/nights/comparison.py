"""Compare the figures (such as goodput) and the setup of two runs, or of the two variants of one run, test by test.

Tests of two runs match if their settings and node pairs are equal: test numbers change when a scenario gets more tests.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from typing import Final

from rigctl.analysis.nights.setup_changes import (
    ChangeSource,
    FactValue,
    SetupChange,
    find_setup_changes,
    merge_places,
    sort_by_cause,
)
from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.mesh import Role
from rigctl.base.errors import InputError
from rigctl.base.values import group_by
from rigctl.figures import FIGURES, Figure
from rigctl.figures.phases import PHASE_FIGURES, in_phase
from rigctl.model.phases import phases_of
from rigctl.model.statistics.comparing import BOUND, Change, Comparison, Samples, compare_samples
from rigctl.records import Against, Cell, RunInfo, Status, Stream
from rigctl.results.rows import ExportRow
from rigctl.results.run_results import RunResults
from rigctl.settings import SETTINGS, WINDOW, WINDOW_TOTAL

WATCHED: Final = ("duration_s", "omit_s", "capture", "bin_us", "latency_ms")
"""Fields that say how long and how closely a test is observed. Tests that differ only in these fields match."""

_OF_PLAN: Final = ("number", "group", "frame_ns")
"""Fields that the plan and its rig give a test: its place, and the speed of its links."""


@dataclass(frozen=True, slots=True)
class FigureSubject:
    """Identifies a figure in all runs: a figure of a test, of one stream of a test, or of a node in one role."""

    test: str  # text of the test's settings and node pairs; for a figure of a node, of the settings only
    metric: Figure[float]
    stream: Stream | None = None
    node: str | None = None
    role: Role | None = None


@dataclass(frozen=True, slots=True)
class RunFigure:
    """A figure of one run. `values` has the known values, one for each repetition that the means include."""

    key: FigureSubject
    cell: Cell
    values: tuple[float, ...]


def keys_of_tests(cells: Sequence[Cell]) -> dict[int, str]:
    """Return for each test number a key that is equal in all runs; `#2` marks the second of two equal tests."""
    seen: Counter[str] = Counter()
    keys = {}
    for cell in cells:
        settings = {name: value for name, value in asdict(cell).items() if name not in (*_OF_PLAN, *WATCHED)}
        for name in ("traffic_class", "part"):
            if settings[name] is None:
                del settings[name]
        if cell.sending_s == cell.duration_s:
            del settings["start_s"], settings["stop_s"]
        text = json.dumps(settings, sort_keys=True, separators=(",", ":"), default=str)
        seen[text] += 1
        keys[cell.number] = text if seen[text] == 1 else f"{text}#{seen[text]}"
    return keys


def figure_keys(cells: Sequence[Cell]) -> Iterator[tuple[Cell, FigureSubject]]:
    """Yield (test, figure key) in the plan's order: for each figure the key of the whole test, then of each stream."""
    tests = keys_of_tests(cells)
    for cell in cells:
        for metric in _metrics(cell, cells):
            for stream in (None, *cell.streams):
                yield cell, FigureSubject(tests[cell.number], metric, stream)


def figures(results: RunResults) -> list[RunFigure]:
    """Return all figures of a run in the order of `figure_keys`; `values` is empty if a figure was not measured."""
    by_cell = group_by((one for one in results.each if one.counted), lambda one: one.cell.number)
    made = []
    for cell, key in figure_keys(results.info.plan.cells):
        known = (one.figure(key.stream, key.metric.name) for one in by_cell.get(cell.number, ()))
        made.append(RunFigure(key, cell, tuple(float(value) for value in known if value is not None)))
    return made


def _metrics(cell: Cell, cells: Sequence[Cell]) -> list[Figure[float]]:
    """Return the figures of a test that are compared between runs, those of its phases included."""
    phases = phases_of(cell, [other for other in cells if other.first == cell.first])
    every = [*FIGURES.values(), *(in_phase(figure, phase.name) for phase in phases for figure in PHASE_FIGURES)]
    return [figure for figure in every if figure.compared is not None and figure.compared.applies(cell)]


_IN_EFFECT: Final = {
    setting.name: column.name
    for setting in SETTINGS.values()
    for column in setting.columns
    if setting.effective is not None and (column.name == setting.effective.column or "_effective" in column.name)
}
"""Maps the name of a setting to the column that has its effective value."""
_GRANTED: Final = sorted([*_IN_EFFECT.values(), "mtu"])
_OF_AXIS: Final = {
    **_IN_EFFECT,
    WINDOW_TOTAL.name: _IN_EFFECT[WINDOW.name],
    **{setting.name: setting.stored_as for setting in SETTINGS.values() if setting.stored_as in WATCHED},
}
"""Maps the setting in which two variants differ to the column, or field of a test, that differs as a consequence."""


@dataclass(frozen=True, slots=True)
class FigureChange:
    """The change of one figure of a test or stream. `reason` says why no verdict is possible; None if there is one."""

    before: RunFigure
    after: RunFigure
    change: Change
    reason: str | None = None

    @property
    def cell(self) -> Cell:
        return self.after.cell

    @property
    def stream(self) -> Stream | None:
        return self.after.key.stream

    @property
    def metric(self) -> Figure[float]:
        return self.after.key.metric

    @property
    def verdict(self) -> Comparison:
        return self.change.verdict

    @property
    def size(self) -> float:
        """Return |ln(after ÷ before)|, so that halving and doubling are equally large; -1 if unknown."""
        return -1.0 if self.change.share is None else abs(math.log1p(self.change.share))


@dataclass(frozen=True, slots=True)
class RunComparison:
    """The comparison of two runs, or of two variants of a run. `tests` and `streams` begin with the largest change."""

    before: RunInfo
    after: RunInfo
    bound: float
    tests: tuple[FigureChange, ...]  # one change for each figure of a test
    streams: tuple[FigureChange, ...]  # one change for each figure of each stream, if a test has several
    only_before: tuple[Cell, ...]
    only_after: tuple[Cell, ...]
    differs: tuple[SetupChange, ...]  # differences of the setup, the likeliest causes first

    @property
    def against(self) -> Against | None:
        """Return which variants of one run are compared; None for a comparison of two runs."""
        return self.after.plan.against if self.before.run == self.after.run else None

    @property
    def worse(self) -> bool:
        """Return True if a test or one of its streams got worse."""
        return any(own.verdict is Comparison.WORSE for own in (*self.tests, *self.streams))

    def with_verdict(self, verdict: Comparison) -> list[FigureChange]:
        return [own for own in self.tests if own.verdict is verdict]


def compare_runs(before: RunView, after: RunView, bound: float = BOUND) -> RunComparison:
    """Return the comparison of `after` with `before`. Raise `InputError` if the runs have no test in common."""
    old = {figure.key: figure for figure in figures(before.results)}
    new = {figure.key: figure for figure in figures(after.results)}
    both = [(old[key], new[key]) for key in old if key in new]
    if not both:
        raise InputError(f"the runs have no test in common: {_name_change(before.info)}; {_name_change(after.info)}")
    return RunComparison(
        before.info,
        after.info,
        bound,
        *_changes(both, before, after, bound),
        _only(old, new),
        _only(new, old),
        tuple(sort_by_cause([*find_setup_changes(before.info, after.info), *_compare_granted(both, before, after)])),
    )


def _name_change(info: RunInfo) -> str:
    return ", ".join([f"{info.plan.scenario_name} on {info.plan.rig_name}", *info.plan.overrides])


def compare_variants(run: RunView, bound: float = BOUND) -> RunComparison:
    """Return the comparison of the two variants of a run that was started with `--against`."""
    every = figures(run.results)
    against = run.plan.against
    twins = dict(against.twins) if against else {}
    places = {(figure.cell.number, figure.key.stream, figure.key.metric): figure for figure in every}
    both = [
        (figure, places[other])
        for figure in every
        if (other := (twins.get(figure.cell.number, 0), figure.key.stream, figure.key.metric)) in places
    ]
    compared_by = _OF_AXIS.get(against.setting) if against else None
    differs = [change for change in sort_by_cause(_compare_granted(both, run, run)) if change.name != compared_by]
    return RunComparison(run.info, run.info, bound, *_changes(both, run, run, bound), (), (), tuple(differs))


def _only(own: Mapping[FigureSubject, RunFigure], others: Mapping[FigureSubject, RunFigure]) -> tuple[Cell, ...]:
    """Return the tests of `own` that `others` lacks, in the plan's order."""
    known = {key.test for key in others}
    return tuple({figure.cell.number: figure.cell for key, figure in own.items() if key.test not in known}.values())


def _changes(
    both: Sequence[tuple[RunFigure, RunFigure]], before: RunView, after: RunView, bound: float
) -> tuple[tuple[FigureChange, ...], tuple[FigureChange, ...]]:
    """Return the changes of whole tests, and of streams if a test has several; in both the largest change is first."""
    wholes = [pair for pair in both if pair[1].key.stream is None]
    parts = [pair for pair in both if pair[1].key.stream is not None and len(pair[1].cell.streams) > 1]
    return _by_size(wholes, before, after, bound), _by_size(parts, before, after, bound)


def _by_size(
    both: Sequence[tuple[RunFigure, RunFigure]], before: RunView, after: RunView, bound: float
) -> tuple[FigureChange, ...]:
    samples = [Samples(old.values, new.values, new.key.metric.higher_is_better) for old, new in both]
    found = []
    for (old, new), change in zip(both, compare_samples(samples, bound), strict=True):
        reason = None
        if change.verdict is Comparison.INVALID:
            sides = (("before", _missing(old, before)), ("after", _missing(new, after)))
            reason = "; ".join(f"{when}: {missing}" for when, missing in sides if missing)
        found.append(FigureChange(old, new, change, reason))
    return tuple(sorted(found, key=lambda own: -own.size))


def _missing(figure: RunFigure, view: RunView) -> str:
    """Return why a figure cannot be compared, such as `not measured`; an empty text if the figure can."""
    if figure.values:
        return "" if min(figure.values) > 0 else "a repetition measured 0"
    own = [repetition for repetition in view.repetitions if repetition.cell == figure.cell.number]
    if not own:
        return "not measured"
    last = own[-1]
    return f"its {figure.key.metric.name} is unknown" if last.status is Status.OK else f"{last.status}: {last.reason}"


def _compare_granted(both: Sequence[tuple[RunFigure, RunFigure]], before: RunView, after: RunView) -> list[SetupChange]:
    """Return how the common tests differ in effective settings, and in how long and how closely they were observed."""
    tests = {new.cell.number: (old.cell, new.cell) for old, new in both if new.key.stream is None}
    counted = ((row for row in view.results.pairs if row["counted"]) for view in (before, after))
    rows_before, rows_after = (group_by(rows, itemgetter("cell")) for rows in counted)
    found = []
    for number, (old, new) in tests.items():
        where = (str(number),)
        for name in WATCHED:
            if getattr(old, name) != getattr(new, name):
                found.append(SetupChange(ChangeSource.SCENARIO, name, getattr(old, name), getattr(new, name), where))
        for name in _GRANTED:
            if name == "window_effective_bytes" and (new[WINDOW] is None or new.resize):
                continue  # the window is not compared: the kernel may change it during the test
            first = _distinct_text(rows_before.get(old.number, ()), name)
            last = _distinct_text(rows_after.get(number, ()), name)
            if first != last and None not in (first, last):
                found.append(SetupChange(ChangeSource.GRANTED, name, first, last, where))
    return merge_places(found, len(tests))


def _distinct_text(rows: Sequence[ExportRow], name: str) -> FactValue:
    """Return the distinct values of a column as text: `cubic`, `1448 1460`; None if all are unknown."""
    return " ".join(sorted({str(row[name]) for row in rows if row[name] is not None})) or None
