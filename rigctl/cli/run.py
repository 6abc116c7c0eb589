"""`rigctl run`: measure a scenario, print its table, write its report."""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rigctl.cli import plan as plan_command
from rigctl.cli.log import on_standard_error
from rigctl.cli.options import (
    Against,
    Bound,
    Captures,
    Display,
    Duration,
    NoReport,
    Quiet,
    Repeat,
    ReportFile,
    Resume,
    RigFile,
    RigSets,
    RunTags,
    Scenario,
    Sets,
    StoreAddress,
    Wait,
    WithoutUnreachable,
    wait_s,
)
from rigctl.errors import InputError, Interrupted, RigctlError, RigError
from rigctl.records import RunStatus

if TYPE_CHECKING:
    from rigctl.records import Repetition, RunInfo
    from rigctl.report.blocks import Document
    from rigctl.runner.run import Outcome
    from rigctl.scenario.load import Overrides
    from rigctl.store import Store


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
    tag: RunTags = None,
    against: Against = None,
    bound: Bound = 2.0,
    wait: Wait = None,
    without_unreachable: WithoutUnreachable = False,
    quiet: Quiet = False,
    display: Display = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be measured: plan.")] = False,
) -> int:
    """Measure SCENARIO on its rig; print the run's id, the table and where the report is.

    With --against: exit with 1 where the second variant is worse.
    """
    from rigctl.cli.output import check_page, page_of
    from rigctl.cli.run_display import displayed, publish_results
    from rigctl.cli.tags import tags_of
    from rigctl.scenario.load import Overrides

    tags = tags_of(tag, "--tag")
    waiting_s = wait_s(wait)
    if dry_run:
        plan_command.plan(scenario, rig, rig_sets, sets, duration, repeat, capture=capture, against=against)
        return 0
    overrides = Overrides(
        rig, tuple(sets or ()), duration, repeat, tuple(rig_sets or ()), tuple(capture or ()), against
    )
    if not no_report:
        check_page(report)
    with displayed() if display else nullcontext() as screen:
        measure = partial(_measured, scenario, overrides, store, report, resume, tags=tags, quiet=quiet or display)
        info, repetitions, outcome = measure(waiting_s=waiting_s, without_unreachable=without_unreachable)
        made, worse = _document(info, repetitions, bound / 100)
        publish_results(made)
        page = None if no_report else page_of(info, report)
        if screen is not None:
            _write(info, made, page)
            if outcome.status is not RunStatus.INTERRUPTED:
                screen.wait()
    _tell(info, made, quiet=quiet)
    if screen is None:
        _write(info, made, page)
    if page is not None and not quiet:
        print(f"report {page.resolve()}")
    missed = any(not verdict.met for verdict in made.verdicts)
    return outcome.exit_code or (RigctlError.exit_code if worse or missed else 0)


def _measured(
    scenario: str,
    overrides: "Overrides",
    store: str | None,
    report: Path | None,
    resume: str | None,
    *,
    waiting_s: float,
    without_unreachable: bool,
    tags: Mapping[str, str],
    quiet: bool,
) -> "tuple[RunInfo, Sequence[Repetition], Outcome]":
    from rich.console import Console

    from rigctl.analysis.drawn import sampled
    from rigctl.runner.resume import check
    from rigctl.runner.run import measure_run, versions
    from rigctl.scenario.load import Overrides, load_plan

    # Everything that can be wrong with the input is found before a store is made.
    plan, inventory = load_plan(scenario, overrides) if resume is None else (None, None)
    with ExitStack() as stack:

        @cache
        def opened() -> "Store":
            from rigctl.store import open_store

            made = stack.enter_context(open_store(store, create=resume is None))
            stack.enter_context(made.kept_open())
            return made

        if "://" in (store or os.environ.get("RIGCTL_STORE", "")):
            opened()  # a server may let one wait; a file is opened in milliseconds, while nodes are connected
        resumed = None
        if plan is None or inventory is None:
            stored = opened().run(resume)
            if not overrides.as_given():  # the options it was started with need not be given again
                overrides = Overrides.from_given(stored.plan.overrides)
            plan, inventory = load_plan(scenario, overrides)
            check(stored, plan, versions(), opened().controller(stored.run))
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
            tags=tags,
            wait_s=waiting_s,
            without_unreachable=without_unreachable,
            meanwhile=partial(_imports, quiet=quiet),
        )
        info = opened().run(outcome.run)
        return info, opened().repetitions(outcome.run, series=sampled(info.plan)), outcome


def _imports(*, quiet: bool) -> None:
    """Import what is needed when the run is over."""
    import rigctl.report.document
    import rigctl.report.printers.html
    from rigctl.garbage import imported

    if not quiet:
        import rigctl.report.printers.terminal  # noqa: F401
    imported()


def _write(info: "RunInfo", made: "Document", page: Path | None) -> None:
    """Write the report."""
    from rigctl.report.printers.html import write_page

    if page is None:
        return
    try:
        write_page(made, page)
    except InputError as error:
        # Its place was good before the run: the machine failed, not the user.
        kind = Interrupted if info.status is RunStatus.INTERRUPTED else RigError
        raise kind(f"{error}. The run is stored: rigctl report {info.run} -o FILE.html") from error


def _tell(info: "RunInfo", made: "Document", *, quiet: bool) -> None:
    """Print the table, or the run's id only."""
    from rich.console import Console

    from rigctl.findings import Weight
    from rigctl.report.printers.terminal import print_document

    if quiet:
        print(info.run)
        for finding in made.findings:
            if finding.weight is Weight.EXPECTED:  # the reason of exit code 1
                print(finding.text, file=sys.stderr)
        return
    print_document(made, Console())
    print(f"run    {info.run}")


def _document(info: "RunInfo", repetitions: "Sequence[Repetition]", bound: float) -> "tuple[Document, bool]":
    """What is told of a run: of two variants their comparison, and whether the second is worse."""
    if info.plan.against is None:
        from rigctl.report.document import document

        return document(info, repetitions), False
    from rigctl.analysis.comparison import of_variants
    from rigctl.analysis.run_view import RunView
    from rigctl.findings import Weight, by_weight
    from rigctl.report import expectations
    from rigctl.report.comparison import comparison_document

    view = RunView(info, repetitions)
    compared, verdicts = of_variants(view, bound), expectations.verdicts(view)
    missed = [each for each in expectations.findings(info.plan, verdicts) if each.weight is Weight.EXPECTED]
    told = comparison_document(compared)
    return replace(told, verdicts=verdicts, findings=by_weight([*missed, *told.findings])), compared.worse
