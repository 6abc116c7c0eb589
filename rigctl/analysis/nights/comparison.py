"""Compare two runs test by test, or the two variants of one run: changes of the figures, and of the setup."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rigctl.analysis.nights.figures import WATCHED, Figure, FigureKey, Metric, figures
from rigctl.analysis.nights.setup_changes import SetupChange, Source, Value, by_cause, grouped, setup_changes
from rigctl.analysis.rows.cells import Row
from rigctl.analysis.run_view import RunView
from rigctl.model.statistics.samples import BOUND, Difference, Samples, Verdict
from rigctl.records import Cell, RunInfo, Status, Stream
from rigctl.settings import WINDOW

_GRANTED: Final = ("congestion", "mss_effective", "mtu", "window_effective_bytes")
_OF_AXIS: Final = {
    "mss": "mss_effective",
    "window": "window_effective_bytes",
    "window_total": "window_effective_bytes",
    "latency": "latency_ms",
    "congestion": "congestion",
}
"""Map an axis to the column, or the field of a cell, that follows from it."""


@dataclass(frozen=True, slots=True)
class Change:
    """One figure in both runs: of a test as a whole, or of one of its streams. `reason`: why it is invalid."""

    before: Figure
    after: Figure
    difference: Difference
    reason: str | None = None

    @property
    def cell(self) -> Cell:
        return self.after.cell

    @property
    def stream(self) -> Stream | None:
        return self.after.key.stream

    @property
    def metric(self) -> Metric:
        return self.after.key.metric

    @property
    def size(self) -> float:
        """Size of the change, for sorting, as a logarithm: half and double are equally large. Unknown: -1."""
        change = self.difference.change
        return -1.0 if change is None or change <= -1 else abs(math.log1p(change))


@dataclass(frozen=True, slots=True)
class Comparison:
    """`tests` and `streams` by the size of the change, the largest first."""

    before: RunInfo
    after: RunInfo
    bound: float
    tests: tuple[Change, ...]  # each test as a whole
    streams: tuple[Change, ...]  # each stream of tests with several
    only_before: tuple[Cell, ...]
    only_after: tuple[Cell, ...]
    differs: tuple[SetupChange, ...]  # the likeliest causes first

    @property
    def worse(self) -> bool:
        """True if a test or one of its streams got worse."""
        return any(change.difference.verdict is Verdict.WORSE for change in (*self.tests, *self.streams))

    def with_verdict(self, verdict: Verdict) -> list[Change]:
        return [change for change in self.tests if change.difference.verdict is verdict]


def compared(before: RunView, after: RunView, bound: float = BOUND) -> Comparison:
    """Compare `after` with `before`, test by test. Tests are matched by their settings and pairs."""
    old = {figure.key: figure for figure in figures(before.frames)}
    new = {figure.key: figure for figure in figures(after.frames)}
    both = [(old[key], new[key]) for key in old if key in new]
    return Comparison(
        before.info,
        after.info,
        bound,
        _changes([pair for pair in both if pair[1].key.stream is None], before, after, bound),
        _changes([pair for pair in both if _is_a_part(pair[1])], before, after, bound),
        _only(old, new),
        _only(new, old),
        tuple(by_cause([*setup_changes(before.info, after.info), *_granted(both, before, after)])),
    )


def of_variants(run: RunView, bound: float = BOUND) -> Comparison:
    """Compare the two variants of a run with `--against`."""
    every = figures(run.frames)
    twins = dict(run.plan.against.twins) if run.plan.against else {}
    places = {(figure.cell.number, figure.key.stream, figure.key.metric): figure for figure in every}
    both = [
        (figure, places[other])
        for figure in every
        if (other := (twins.get(figure.cell.number, 0), figure.key.stream, figure.key.metric)) in places
    ]
    wholes = [pair for pair in both if pair[1].key.stream is None]
    parts = [pair for pair in both if _is_a_part(pair[1])]
    tests, streams = (_changes(pairs, run, run, bound) for pairs in (wholes, parts))
    compared_by = _OF_AXIS.get(run.plan.against.setting) if run.plan.against else None
    differs = [change for change in by_cause(_granted(both, run, run)) if change.name != compared_by]
    return Comparison(run.info, run.info, bound, tests, streams, (), (), tuple(differs))


def _is_a_part(figure: Figure) -> bool:
    return figure.key.stream is not None and len(figure.cell.streams) > 1


def _only(own: Mapping[FigureKey, Figure], others: Mapping[FigureKey, Figure]) -> tuple[Cell, ...]:
    """Return the tests of a run that the other run does not have, in the plan's order."""
    known = {key.test for key in others}
    return tuple({figure.cell.number: figure.cell for key, figure in own.items() if key.test not in known}.values())


def _changes(
    both: Sequence[tuple[Figure, Figure]], before: RunView, after: RunView, bound: float
) -> tuple[Change, ...]:
    from rigctl.model.statistics.comparing import differences  # scipy.stats takes half a second

    samples = [Samples(old.values, new.values, new.key.metric.higher_is_better) for old, new in both]
    found = [
        Change(old, new, difference, _reason(old, before, new, after))
        if difference.verdict is Verdict.INVALID
        else Change(old, new, difference)
        for (old, new), difference in zip(both, differences(samples, bound), strict=True)
    ]
    return tuple(sorted(found, key=lambda change: -change.size))


def _reason(old: Figure, before: RunView, new: Figure, after: RunView) -> str:
    """Return why a test has no values to compare: one sentence for each run without."""
    sides = (("before", old, before), ("after", new, after))
    return "; ".join(f"{when}: {reason}" for when, figure, view in sides if (reason := _missing(figure, view)))


def _missing(figure: Figure, view: RunView) -> str:
    if figure.values and min(figure.values) > 0:
        return ""
    own = [repetition for repetition in view.repetitions if repetition.cell == figure.cell.number]
    if figure.values:
        return "a repetition measured 0"
    if not own:
        return "not measured"
    last = own[-1]
    return (
        f"{last.status}: {last.reason}" if last.status is not Status.OK else f"its {figure.key.metric.name} is unknown"
    )


def _granted(both: Sequence[tuple[Figure, Figure]], before: RunView, after: RunView) -> list[SetupChange]:
    """Return differences in the settings that kernels granted to a test, and in how long it was measured."""
    tests = {new.cell.number: (old.cell, new.cell) for old, new in both if new.key.stream is None}
    rows = [_rows_by_cell(before), _rows_by_cell(after)]
    found = []
    for number, (old, new) in tests.items():
        where = (str(number),)
        for name in WATCHED:
            if getattr(old, name) != getattr(new, name):
                found.append(SetupChange(Source.SCENARIO, name, getattr(old, name), getattr(new, name), where))
        for name in _GRANTED:
            if name == "window_effective_bytes" and (new[WINDOW] is None or new.resize):
                continue  # the kernel sizes it as it goes
            values = [_seen(rows[0].get(old.number, []), name), _seen(rows[1].get(number, []), name)]
            if values[0] != values[1] and None not in values:
                found.append(SetupChange(Source.GRANTED, name, values[0], values[1], where))
    return grouped(found, len(tests))


def _rows_by_cell(view: RunView) -> dict[int, list[Row]]:
    rows: dict[int, list[Row]] = {}
    for row in view.frames.derived.pairs:
        if row["counted"]:
            rows.setdefault(row["cell"], []).append(row)
    return rows


def _seen(rows: Sequence[Row], name: str) -> Value:
    """Return the distinct values of a column as text: `cubic`, `1448 1460`."""
    values = sorted({str(row[name]) for row in rows if row[name] is not None})
    return " ".join(values) or None
