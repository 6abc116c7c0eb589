"""The tests of a run and their expectations as JUnit cases."""

from collections.abc import Sequence

from rigctl.analysis.run_view import RunView
from rigctl.records import Cell, Repetition, RunInfo, RunStatus, Status
from rigctl.report.blocks import Verdict
from rigctl.report.printers.junit import Case, Outcome, Suite
from rigctl.report.sections import expectations
from rigctl.report.words.text import MOST_NAMED, settings_text, told_apart


def suite_of(view: RunView) -> Suite:
    """Return a case for each test, which passes if it was measured, and one for each expectation."""
    info = view.info
    by_cell: dict[int, list[Repetition]] = {}
    for repetition in view.every:
        by_cell.setdefault(repetition.cell, []).append(repetition)
    by_test: dict[int, list[Verdict]] = {}
    for verdict in expectations.verdicts(view):
        by_test.setdefault(verdict.test, []).append(verdict)
    apart = told_apart(info.plan.cells)
    group = f"{info.plan.scenario_name} on {info.plan.rig_name}"
    cases = []
    for cell in info.plan.cells:
        name = f"test {cell.number}: {settings_text(cell, apart)}"
        cases.append(_measured(info, cell, name, group, by_cell.get(cell.number, ())))
        for verdict in by_test.get(cell.number, ()):
            of = f", {verdict.pair}" if verdict.pair else ""
            name = f"test {verdict.test}{of}: {verdict.figure} {verdict.expected}"
            text = f"{verdict.figure} {verdict.measured}, expected {verdict.expected}"
            cases.append(Case(name, group, "passed" if verdict.met else "failed", text))
    return Suite(f"{info.plan.title or info.plan.scenario_name} ({info.run})", cases, info.started_at)


def _measured(info: RunInfo, cell: Cell, name: str, group: str, repetitions: Sequence[Repetition]) -> Case:
    good = any(repetition.status is Status.OK for repetition in repetitions)
    running = info.status is RunStatus.RUNNING and not repetitions
    outcome: Outcome = "passed" if good else "skipped" if running else "error"
    reasons = [repetition.reason for repetition in repetitions if repetition.reason]
    text = "" if good else "\n".join(dict.fromkeys(reasons[:MOST_NAMED])) or f"test {cell.number} was not measured"
    seconds = sum(repetition.wall_s for repetition in repetitions) if repetitions else None
    return Case(name, group, outcome, text, seconds)
