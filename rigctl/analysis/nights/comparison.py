"""Compare two runs, or the two variants of one run, test by test: changes of figures, and of the setup."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.analysis.nights.figures import WATCHED, FigureSubject, RunFigure, figures
from rigctl.analysis.nights.setup_changes import (
    ChangeSource,
    FactValue,
    SetupChange,
    find_setup_changes,
    merge_places,
    sort_by_cause,
)
from rigctl.analysis.rows.cells import ExportRow
from rigctl.analysis.run_view import RunView
from rigctl.base.errors import InputError
from rigctl.figures import Figure
from rigctl.model.statistics.change import BOUND, Change, Comparison, Samples
from rigctl.model.statistics.comparing import compare_samples
from rigctl.records import Against, Cell, RunInfo, Status, Stream
from rigctl.settings import SETTINGS, WINDOW, WINDOW_TOTAL

_IN_EFFECT: Final = {
    setting.name: column.name
    for setting in SETTINGS.values()
    for column in setting.columns
    if setting.effective is not None and (column.name == setting.effective.column or "_effective" in column.name)
}
"""Maps each setting with an effective value to the column that has this value."""
_GRANTED: Final = sorted([*_IN_EFFECT.values(), "mtu"])
_OF_AXIS: Final = {
    **_IN_EFFECT,
    WINDOW_TOTAL.name: _IN_EFFECT[WINDOW.name],
    **{setting.name: setting.stored_as for setting in SETTINGS.values() if setting.stored_as in WATCHED},
}
"""Maps the setting in which two variants differ to the column, or field of a cell, that differs as a consequence."""


@dataclass(frozen=True, slots=True)
class FigureChange:
    """The change of one figure of a test, or of one of its streams. `reason` says why the comparison is invalid."""

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
        """Return the absolute logarithm of the ratio, so that halving and doubling are equally large; -1 if unknown."""
        return -1.0 if self.change.share is None else abs(math.log1p(self.change.share))


@dataclass(frozen=True, slots=True)
class RunComparison:
    """The comparison of two runs or variants; `tests` and `streams` have the largest change first."""

    before: RunInfo
    after: RunInfo
    bound: float
    tests: tuple[FigureChange, ...]  # one change for each test
    streams: tuple[FigureChange, ...]  # one change for each stream, of tests with several streams
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
    """Return the comparison of `after` with `before`. Tests are matched by their settings and pairs.

    Raise `InputError` if the runs have no test in common.
    """
    old = {figure.key: figure for figure in figures(before.frames)}
    new = {figure.key: figure for figure in figures(after.frames)}
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
    """Return the comparison of the two variants of a run with `--against`."""
    every = figures(run.frames)
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
    """Return the tests that only the first run has, in the plan's order."""
    known = {key.test for key in others}
    return tuple({figure.cell.number: figure.cell for key, figure in own.items() if key.test not in known}.values())


def _changes(
    both: Sequence[tuple[RunFigure, RunFigure]], before: RunView, after: RunView, bound: float
) -> tuple[tuple[FigureChange, ...], tuple[FigureChange, ...]]:
    """Return the changes of tests, and of the streams of tests with several streams, both by size."""
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
    """Return why a test has no values to compare; empty if the test has values."""
    if figure.values:
        return "" if min(figure.values) > 0 else "a repetition measured 0"
    own = [repetition for repetition in view.repetitions if repetition.cell == figure.cell.number]
    if not own:
        return "not measured"
    last = own[-1]
    if last.status is Status.OK:
        return f"its {figure.key.metric.name} is unknown"
    return f"{last.status}: {last.reason}"


def _compare_granted(both: Sequence[tuple[RunFigure, RunFigure]], before: RunView, after: RunView) -> list[SetupChange]:
    """Return differences in granted settings, and in the duration and other fields in `WATCHED`, of common tests."""
    tests = {new.cell.number: (old.cell, new.cell) for old, new in both if new.key.stream is None}
    rows = [_rows_by_cell(before), _rows_by_cell(after)]
    found = []
    for number, (old, new) in tests.items():
        where = (str(number),)
        for name in WATCHED:
            if getattr(old, name) != getattr(new, name):
                found.append(SetupChange(ChangeSource.SCENARIO, name, getattr(old, name), getattr(new, name), where))
        for name in _GRANTED:
            if name == "window_effective_bytes" and (new[WINDOW] is None or new.resize):
                continue  # the kernel may change the window during the test
            values = [_distinct_text(rows[0].get(old.number, []), name), _distinct_text(rows[1].get(number, []), name)]
            if values[0] != values[1] and None not in values:
                found.append(SetupChange(ChangeSource.GRANTED, name, values[0], values[1], where))
    return merge_places(found, len(tests))


def _rows_by_cell(view: RunView) -> dict[int, list[ExportRow]]:
    rows: dict[int, list[ExportRow]] = {}
    for row in view.frames.derived.pairs:
        if row["counted"]:
            rows.setdefault(row["cell"], []).append(row)
    return rows


def _distinct_text(rows: Sequence[ExportRow], name: str) -> FactValue:
    """Return the distinct values of a column as text: `cubic`, `1448 1460`; None if all are unknown."""
    values = sorted({str(row[name]) for row in rows if row[name] is not None})
    return " ".join(values) or None
