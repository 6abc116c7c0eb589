"""Exports the verdicts of a run as JUnit cases or KTAP, and its figures for Bencher and github-action-benchmark.

Formats: Bencher Metric Format (bencher.dev/docs/reference/bencher-metric-format), and the JSON of
github-action-benchmark: a file has either figures for which more is better, or figures for which less is better.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import stdev
from typing import Final, NamedTuple

from rigctl.analysis.run_view import RunView
from rigctl.analysis.views.values import ValuesOfTests
from rigctl.base.errors import InputError
from rigctl.base.values import group_by, total
from rigctl.figures import FIGURES, DataColumn
from rigctl.figures.phases import column_named
from rigctl.findings.text import MOST_NAMED, how_pairs_differ, settings_text
from rigctl.model.repeating import count_planned
from rigctl.records import Cell, RepetitionHead, RunInfo, RunStatus, Status
from rigctl.report.blocks import Verdict
from rigctl.report.printers.junit import Case, CaseOutcome, Suite
from rigctl.report.printers.ktap import Result, ktap
from rigctl.report.sections import expectations
from rigctl.scenario.expectations import OF_KIND


class TestCases(NamedTuple):
    """A test as cases: its own, which passes if the test was measured, those of its repetitions and expectations."""

    test: Cell
    own: Case
    repetitions: tuple[Case, ...]
    expectations: tuple[Case, ...]


def suite_of(view: RunView) -> Suite:
    """Return the JUnit suite: a case per test, which passes if the test was measured, and a case per expectation."""
    cases = [case for each in _cases_of_tests(view) for case in (each.own, *each.expectations)]
    return Suite(_suite_name(view.info), cases, view.info.started_at)


def ktap_of(view: RunView) -> str:
    """Return the run as KTAP: a test is not ok if a repetition failed or an expectation is not met.

    Expectations are subtests. So are the repetitions of a test of which only some failed.
    """
    figures = group_by(_figures(view, _BIGGER | _SMALLER), lambda figure: figure.test)
    streams = [one for one in view.cells if one.counted and not one.cell.in_messages]
    limits = {one.cell.number: one.limit for one in streams}
    results = []
    for each in _cases_of_tests(view):
        number = each.test.number
        in_part = each.own.outcome == "passed" and any(case.outcome != "passed" for case in each.repetitions)
        parts = (*(each.repetitions if in_part else ()), *each.expectations)
        notes = [_note_of(figure) for figure in figures.get(number, ())]
        notes += [f"limit: {limits[number]}"] if number in limits else []
        results.append(Result(each.own, tuple(map(Result, parts)), tuple(notes)))
    return ktap(_suite_name(view.info), results)


def _suite_name(info: RunInfo) -> str:
    return f"{info.plan.title or info.plan.scenario_name} ({info.run})"


def _cases_of_tests(view: RunView) -> Iterator[TestCases]:
    info = view.info
    by_cell = group_by(view.every, lambda repetition: repetition.cell)
    by_test = group_by(expectations.verdicts(view), lambda verdict: verdict.test)
    apart = how_pairs_differ(info.plan.cells)
    group = f"{info.plan.scenario_name} on {info.plan.rig_name}"
    together = Counter(cell.first for cell in info.plan.cells)
    for cell in info.plan.cells:
        repetitions = by_cell.get(cell.number, ())
        name = f"test {cell.number}: {settings_text(cell, apart)}"
        own = _case_of(info, cell, name, group, repetitions)
        # Traffic classes of a test run at the same time, so each class gets an equal share of the test's duration.
        own = replace(own, seconds=own.seconds and own.seconds / together[cell.first])
        verdicts = tuple(_case_of_verdict(verdict, group) for verdict in by_test.get(cell.number, ()))
        yield TestCases(cell, own, tuple(_cases_of_repetitions(info, cell, group, repetitions)), verdicts)


def _case_of_verdict(verdict: Verdict, group: str) -> Case:
    pair = f", {verdict.pair}" if verdict.pair else ""
    name = f"test {verdict.test}{pair}: {verdict.figure} {verdict.expected}"
    text = f"{verdict.figure} {verdict.measured}, expected {verdict.expected}"
    return Case(name, group, "passed" if verdict.met else "failed", text)


def _cases_of_repetitions(
    info: RunInfo, cell: Cell, group: str, repetitions: Sequence[RepetitionHead]
) -> Iterator[Case]:
    """Yield a case for each repetition, which passes if one of its attempts measured all pairs."""
    attempts = group_by(repetitions, lambda repetition: repetition.repetition)
    planned = () if info.status is RunStatus.RUNNING else range(1, count_planned(info.plan, cell) + 1)
    for number in sorted({*attempts, *planned}):
        own = attempts.get(number, ())
        good = any(attempt.status is Status.OK and not attempt.reason for attempt in own)
        reasons = dict.fromkeys(attempt.reason or str(attempt.status) for attempt in own)
        text = "" if good else "\n".join(reasons) or "not measured"
        yield Case(f"repetition {number}", group, "passed" if good else "error", text)


def _case_of(info: RunInfo, cell: Cell, name: str, group: str, repetitions: Sequence[RepetitionHead]) -> Case:
    good = any(repetition.status is Status.OK for repetition in repetitions)
    running = info.status is RunStatus.RUNNING and not repetitions
    outcome: CaseOutcome = "passed" if good else "skipped" if running else "error"
    reasons = [repetition.reason for repetition in repetitions if repetition.reason]
    text = "" if good else "\n".join(dict.fromkeys(reasons[:MOST_NAMED])) or f"test {cell.number} was not measured"
    return Case(name, group, outcome, text, total(repetition.wall_s for repetition in repetitions))


_WATCHED: Final = [figure for figure in FIGURES.values() if figure.watched]
_BIGGER: Final = frozenset(figure.name for figure in _WATCHED if figure.higher_is_better)
_SMALLER: Final = frozenset(figure.name for figure in _WATCHED if not figure.higher_is_better)
_MOST_NAME: Final = 1024
"""Longest benchmark name that Bencher accepts, in characters."""


class CaseFigure(NamedTuple):
    """One figure of a test or pair: the mean (`value`) and the known values (`each`) of its repetitions."""

    test: int
    pair: str  # empty: the whole test, or its only pair
    name: str
    column: DataColumn
    value: float
    each: tuple[float, ...]


def bencher(view: RunView) -> bytes:
    """Return all figures in Bencher Metric Format, with the lowest and highest repetition as bounds."""
    benchmarks: dict[str, dict[str, dict[str, float]]] = {}
    for figure in _figures(view, _BIGGER | _SMALLER):
        metric = {"value": figure.value}
        if len(figure.each) > 1:
            metric |= {"lower_value": min(figure.each), "upper_value": max(figure.each)}
        benchmarks.setdefault(figure.name, {})[figure.column.name.replace("_", "-")] = metric
    return _text(view, benchmarks, "figure")


def benchmark_action(view: RunView, *, smaller: bool = False) -> bytes:
    """Return the JSON list for github-action-benchmark: goodput, or round trips and loss if `smaller`."""
    entries = []
    for figure in _figures(view, _SMALLER if smaller else _BIGGER):
        entry = {"name": f"{figure.name}, {figure.column.name}", "unit": figure.column.unit, "value": figure.value}
        if len(figure.each) > 1:
            entry |= {"range": f"± {stdev(figure.each):.3g}"}
        entries.append(entry | {"extra": f"run {view.info.run}: {figure.column.meaning}"})
    return _text(view, entries, "round trip or loss" if smaller else "goodput")


def has_smaller(view: RunView) -> bool:
    """Tell whether round trips or loss were measured, so that `benchmark_action(smaller=True)` has content."""
    return next(_figures(view, _SMALLER), None) is not None


def _text(view: RunView, content: Sequence[object] | Mapping[str, object], what: str) -> bytes:
    if not content:
        raise InputError(f"export: run {view.info.run} has no measured {what}. `rigctl show` tells why")
    return f"{json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)}\n".encode()


def _figures(view: RunView, wanted: frozenset[str]) -> Iterator[CaseFigure]:
    """Yield the measured figures of the `wanted` columns, in the scenario's order.

    A figure's name has the settings of its test, the same in every run, and the test's number if settings are equal.
    """
    values, apart = ValuesOfTests(view), how_pairs_differ(view.plan.cells)
    settings = {cell.number: settings_text(cell, apart) for cell in view.plan.cells}
    same = Counter(settings.values())
    for cell in view.plan.cells:
        number = f", test {cell.number}" if same[settings[cell.number]] > 1 else ""
        for stream in cell.streams if cell.in_messages else (None,):
            pair = f"{stream}" if stream is not None and len(cell.streams) > 1 else ""
            of_pair = f", {pair}" if pair else ""
            name = f"{view.plan.scenario_name}: {settings[cell.number]}{number}{of_pair}"[:_MOST_NAME]
            for column in OF_KIND[cell.test]:
                value = values.of(cell, stream, column)
                if column in wanted and isinstance(value, int | float):
                    yield CaseFigure(
                        cell.number, pair, name, column_named(column), value, values.each(cell, stream, column)
                    )


def _note_of(figure: CaseFigure) -> str:
    """Return `goodput_mbps 940.6, 939.9 to 941.2 in 4 repetitions`: the name of the column tells the unit."""
    values = [f"{value:.{figure.column.digits or 0}f}" for value in (figure.value, *sorted(figure.each))]
    spread = f", {values[1]} to {values[-1]} in {len(figure.each)} repetitions" if len(figure.each) > 1 else ""
    return f"{figure.pair}{': ' * bool(figure.pair)}{figure.column.name} {values[0]}{spread}"
