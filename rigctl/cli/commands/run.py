"""Measure SCENARIO on its rig; print the run's id and its table, write the report.

With --against: exit with 1 if the second variant is worse.

Examples:
  rigctl run gigablox --duration 5s
  rigctl run udp --rig mylab.yaml --set pairs=pi1:pi2 --set size=64,1472 --repeat 4
"""

import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from rigctl.base.errors import InputError, InterruptError, RigctlError, RigError
from rigctl.cli.commands.plan import overrides_of, print_plan
from rigctl.cli.options import UNFINISHED, RunOptions, ScenarioArgument, is_stderr_logged, parse_wait, take_options
from rigctl.cli.output import choose_page, find_pages_folder
from rigctl.findings import NOT_MET
from rigctl.records import CONTROL, RunInfo, RunPlan, RunStatus
from rigctl.rig.inventory import Rig
from rigctl.scenario.load import Overrides, find_scenario, load_plan

if TYPE_CHECKING:
    from rigctl.report.blocks import Document
    from rigctl.runner.run import Outcome
    from rigctl.store import Store


@take_options(RunOptions, "options")
def measure_scenario(
    scenario: ScenarioArgument,
    options: RunOptions,
    display: Annotated[
        bool, typer.Option("--display", help="Show the run full screen until the key q is pressed.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, as `show --json` does.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the tests, as `rigctl plan` does.")] = False,
) -> int:
    # Read the scenario before the slow imports of a run, so that a mistake in it is reported at once.
    loaded = None if dry_run or options.resume is not None else load_plan(scenario, overrides_of(options))

    from rigctl.cli.commands.display import publish_results, show_screen
    from rigctl.cli.stored_runs import parse_tags

    tags, waiting_s = parse_tags(options.tag, "--tag"), parse_wait(options.wait)
    if dry_run:
        print_plan(scenario, options, as_json=as_json)
        return 0
    folder = None if options.no_report else find_pages_folder(options.report)
    with show_screen() if display else nullcontext() as screen:
        info, report, worse, outcome = _measure(scenario, options, loaded, folder, tags, waiting_s, quiet=display)
        publish_results(report)
        page = None if folder is None else choose_page(info, options.report, folder)
        if screen is not None:
            _write(info, report, page)
            if outcome.status is not RunStatus.INTERRUPTED:
                with suppress(KeyboardInterrupt):
                    screen.wait()
    _print(info, report, quiet=options.quiet, as_json=as_json)
    if screen is None:
        _write(info, report, page)
    if page is not None and not options.quiet and not as_json:
        print(f"page  {os.path.relpath(page) if page.resolve().is_relative_to(Path.cwd()) else page.resolve()}")
    missed = any(not verdict.met for verdict in report.verdicts)
    return outcome.exit_code or (RigctlError.exit_code if worse or missed else 0)


def _measure(
    scenario: str,
    options: RunOptions,
    loaded: tuple[RunPlan, Rig] | None,
    folder: Path | None,
    tags: Mapping[str, str],
    waiting_s: float,
    *,
    quiet: bool,
) -> tuple[RunInfo, "Document", bool, "Outcome"]:
    """Measure the scenario. Return the run, its report, whether the variant of --against is worse, and the outcome."""
    from rigctl.cli.stored_runs import read_view, store_answer
    from rigctl.runner.resume import check_resumable
    from rigctl.runner.run import measure_run, versions_of_run
    from rigctl.store import open_store

    overrides = overrides_of(options)
    with open_store(options.store, create=loaded is not None) as opened, ExitStack() as screen:
        resumed = None
        if loaded is not None:
            plan, inventory = loaded
        else:
            stored = _find_stored(opened, options.resume, scenario, overrides)
            if not overrides.as_given():  # without options, use the options of the stored run
                overrides = Overrides.from_given(stored.plan.overrides)
            plan, inventory = load_plan(scenario, overrides)
            check_resumable(stored, plan, versions_of_run(), opened.controllers().get(stored.run))
            resumed = stored.run
        if options.control is not None:
            tags = {**tags, CONTROL: _find_control(opened, options.control, plan)}
        captures = Path.cwd() if folder is None else folder.resolve()
        if any(cell.capture for cell in plan.cells):
            captures.mkdir(parents=True, exist_ok=True)
        outcome = measure_run(
            plan,
            inventory,
            opened,
            Console(stderr=True),
            quiet=quiet or options.quiet or is_stderr_logged(),
            resumed=resumed,
            captures=captures,
            tags=tags,
            wait_s=waiting_s,
            without_unreachable=options.without_unreachable,
            screen=screen,
        )
        from rigctl.report.comparison import report_of  # after the run: the import takes half a second

        view = read_view(opened, outcome.run)
        info = view.info
        report, worse = report_of(view, options.bound / 100)
        store_answer(opened, info.run, report)
        return info, report, worse, outcome


def _find_control(store: "Store", reference: str, plan: RunPlan) -> str:
    """Return the id of the control. Raise `InputError` if it has none of the tests of `plan`."""
    from rigctl.analysis.nights.comparison import keys_of_tests

    control = store.run(reference)
    mine, theirs = (set(keys_of_tests(cells).values()) for cells in (plan.cells, control.plan.cells))
    if mine.isdisjoint(theirs):
        raise InputError(
            f"--control {reference}: run {control.run} ({control.plan.scenario_name}) has none of these tests. Name a "
            "run of the same scenario, with the same pairs and settings"
        )
    return control.run


def _find_stored(store: "Store", reference: str | None, scenario: str, overrides: Overrides) -> RunInfo:
    """Return the run to be resumed; print its id if the user did not name it."""
    from rigctl.runner.resume import latest_unfinished

    if reference != UNFINISHED:
        return store.run(reference)
    rig = load_plan(scenario, overrides)[0].rig_name if overrides.as_given() else None
    found = latest_unfinished(store, find_scenario(scenario).stem, rig)
    if not is_stderr_logged():
        began = datetime.fromtimestamp(found.started_at)
        print(f"resuming run {found.run} on {found.plan.rig_name}, started {began:%Y-%m-%d %H:%M}", file=sys.stderr)
    return found


def _write(info: RunInfo, report: "Document", page: Path | None) -> None:
    from rigctl.report.printers.html import write_page

    if page is None:
        return
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        write_page(report, page)
    except (InputError, OSError) as error:
        # `find_pages_folder` checked the path before the run, so this is a fault of the machine (exit code 3).
        kind = InterruptError if info.status is RunStatus.INTERRUPTED else RigError
        raise kind(f"{error}. The run is stored: rigctl report {info.run} -o FILE.html") from error


def _print(info: RunInfo, report: "Document", *, quiet: bool, as_json: bool) -> None:
    """Print the report as a table or as JSON; with `quiet` only the run's id and the unmet expectations."""
    from rigctl.report.printers.json import as_json as document_json
    from rigctl.report.printers.terminal import print_document

    if as_json:
        print(document_json(report), end="")
        return
    if quiet:
        print(info.run)
        for finding in report.findings:
            if finding.code == NOT_MET:
                print(finding.text, file=sys.stderr)
        return
    print_document(report, Console())
