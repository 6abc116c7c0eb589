"""Measures again the tests whose results changed, for `rigctl regress --confirm` and after each nightly run."""

import time
from dataclasses import replace

from rich.console import Console

from rigctl.analysis.nights.comparison import keys_of_tests
from rigctl.analysis.nights.regressions import Regressions, judge_run
from rigctl.base.errors import InputError, InterruptError
from rigctl.records import CONFIRMS, RunInfo, RunPlan, RunStatus
from rigctl.rig.inventory import Rig
from rigctl.runner.run import measure_run
from rigctl.store import Store


def confirm_night(
    regressions: Regressions, plan: RunPlan, rig: Rig, store: Store, console: Console, wait_s: float
) -> Regressions:
    """Measure tests with a new or suspected change again (run tag `CONFIRMS`); return the regressions judged by both.

    A change that the second measurement contradicts is dropped. `plan` and `rig` are those of the first run, read anew;
    `wait_s` is the longest wait for the rig. Raise `InputError` if `plan` lacks a test or the run is not the latest,
    `RigError` if the rig is unreachable, `InterruptError` on Ctrl-C.
    """
    _check_latest(regressions.run, store)
    tags = {CONFIRMS: regressions.run.run}
    again = reduce_plan(regressions, plan)
    outcome = measure_run(again, rig, store, console, tags=tags, wait_s=wait_s, without_unreachable=True)
    if outcome.status is RunStatus.INTERRUPTED:
        raise InterruptError(f"interrupted while {regressions.run.run} was measured again; nothing is confirmed")
    return judge_run(store, store.run(regressions.run.run), baseline=regressions.given, rules=regressions.rules)


def _check_latest(run: RunInfo, store: Store) -> None:
    """Raise `InputError` if the store has a later run of the scenario on the rig, unless it starts in the future."""
    plan, now_s = run.plan, time.time()
    for other in store.latest_first():
        if other.run == run.run:
            return
        if other.started_at > now_s:
            continue
        same = (other.plan.scenario_name, other.plan.rig_name) == (plan.scenario_name, plan.rig_name)
        if same and CONFIRMS not in other.tags:
            raise InputError(
                f"run {run.run} cannot be confirmed: run {other.run} of the same scenario came after it. "
                "Leave --confirm out, or judge the later run"
            )


def reduce_plan(regressions: Regressions, plan: RunPlan) -> RunPlan:
    """Return `plan` with the tests to confirm, and tests of equal settings, as only their sequence tells them apart."""
    stored = keys_of_tests(regressions.run.plan.cells)
    wanted = {stored[number].partition("#")[0] for number in regressions.to_confirm}
    keys = keys_of_tests(plan.cells)
    cells = tuple(replace(cell, capture=False) for cell in plan.cells if keys[cell.number].partition("#")[0] in wanted)
    if not wanted <= {keys[cell.number].partition("#")[0] for cell in cells}:
        raise InputError(
            f"run {regressions.run.run}: the scenario has changed since this run, so a second measurement would be of "
            "other tests. Run the scenario again and judge the new run"
        )
    return replace(plan, cells=cells, retest=None)
