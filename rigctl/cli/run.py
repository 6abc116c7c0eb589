"""`rigctl run`: measure a scenario, print its table, write its report."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rigctl.cli import plan as plan_command
from rigctl.cli.log import on_standard_error
from rigctl.cli.options import (
    Captures,
    Duration,
    NoReport,
    Quiet,
    Repeat,
    ReportFile,
    Resume,
    RigFile,
    RigSets,
    Scenario,
    Sets,
    StoreAddress,
    Wait,
    wait_s,
)
from rigctl.errors import InputError, Interrupted, RigError
from rigctl.records import RunStatus

if TYPE_CHECKING:
    from rigctl.records import Repetition, RunInfo
    from rigctl.runner.run import Outcome
    from rigctl.scenario.load import Overrides


def run(
    scenario: Scenario,
    rig: RigFile = None,
    rig_sets: RigSets = None,
    sets: Sets = None,
    duration: Duration = None,
    repeat: Repeat = None,
    store: StoreAddress = None,
    report: ReportFile = None,
    no_report: NoReport = False,
    resume: Resume = None,
    capture: Captures = None,
    wait: Wait = None,
    quiet: Quiet = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be measured: plan.")] = False,
) -> int:
    """Measure SCENARIO on its rig; print the run's id, the table and where the report is."""
    from rigctl.cli.output import check_page, page_of
    from rigctl.scenario.load import Overrides

    waiting_s = wait_s(wait)
    if dry_run:
        plan_command.plan(scenario, rig, rig_sets, sets, duration, repeat, capture=capture)
        return 0
    overrides = Overrides(
        rig, tuple(sets or ()), duration, repeat, captures=tuple(capture or ()), rig_sets=tuple(rig_sets or ())
    )
    if not no_report:
        check_page(report)
    info, repetitions, outcome = _measured(scenario, overrides, store, report, resume, waiting_s, quiet=quiet)
    _tell(info, repetitions, None if no_report else page_of(info, report), quiet=quiet)
    return outcome.exit_code


def _measured(
    scenario: str,
    overrides: "Overrides",
    store: str | None,
    report: Path | None,
    resume: str | None,
    waiting_s: float,
    *,
    quiet: bool,
) -> "tuple[RunInfo, Sequence[Repetition], Outcome]":
    from rich.console import Console

    from rigctl.analysis.drawn import sampled
    from rigctl.runner.resume import check
    from rigctl.runner.run import measure_run, versions
    from rigctl.scenario.load import Overrides, load_plan
    from rigctl.store import open_store

    # Everything that can be wrong with the input is found before a store is made.
    plan, inventory = load_plan(scenario, overrides) if resume is None else (None, None)
    with open_store(store, create=resume is None) as opened:
        resumed = None
        if plan is None or inventory is None:
            stored = opened.run(resume)
            if not overrides.as_given():  # the options it was started with need not be given again
                overrides = Overrides.from_given(stored.plan.overrides)
            plan, inventory = load_plan(scenario, overrides)
            check(stored, plan, versions(), opened.controller(stored.run))
            resumed = stored.run
        beside = report.resolve().parent if report is not None else Path.cwd()
        outcome = measure_run(
            plan,
            inventory,
            opened,
            Console(stderr=True),
            quiet=quiet or on_standard_error(),
            resumed=resumed,
            captures=beside,
            wait_s=waiting_s,
        )
        info = opened.run(outcome.run)
        return info, opened.repetitions(outcome.run, series=sampled(info.plan)), outcome


def _tell(info: "RunInfo", repetitions: "Sequence[Repetition]", page: Path | None, *, quiet: bool) -> None:
    """Print the table, or the run's id only; then write the report, whose failure loses nothing printed."""
    from rich.console import Console

    from rigctl.report.document import document
    from rigctl.report.printers.html import write_page
    from rigctl.report.printers.terminal import print_document

    made = document(info, repetitions)
    if quiet:
        print(info.run)
    else:
        print_document(made, Console())
        print(f"run    {info.run}")
    if page is None:
        return
    try:
        write_page(made, page)
    except InputError as error:
        # Its place was good before the run: the machine failed, not the user.
        kind = Interrupted if info.status is RunStatus.INTERRUPTED else RigError
        raise kind(f"{error}. The run is stored: rigctl report {info.run} -o FILE.html") from error
    if not quiet:
        print(f"report {page.resolve()}")
