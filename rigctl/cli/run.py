"""`rigctl run`: measure a scenario, print its table, write its report."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rigctl.cli.options import Duration, Repeat, RigFile, RigSets, Sets, StoreAddress
from rigctl.texts import file_name

if TYPE_CHECKING:
    from rigctl.records import Repetition, RunInfo


def run(
    scenario: Annotated[str, typer.Argument(help="A scenario file, or the name of a bundled one.")],
    rig: RigFile = None,
    rig_sets: RigSets = None,
    sets: Sets = None,
    duration: Duration = None,
    repeat: Repeat = None,
    store: StoreAddress = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Where the HTML report goes (default: NAME-RUN.html here).")
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option("--resume", metavar="RUN", help="Go on with a stored run: measure what is missing or failed."),
    ] = None,
    capture: Annotated[
        list[int] | None,
        typer.Option("--capture", metavar="CELL", help="Keep the frames of this cell, headers only, as pcap files."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the run's id only.")] = False,
) -> int:
    """Measure SCENARIO on its rig; print the run's id, the table and where the report is."""
    from rich.console import Console

    from rigctl.analysis.drawn import drawn_numbers
    from rigctl.runner.resume import check
    from rigctl.runner.run import measure_run, versions
    from rigctl.scenario.load import Overrides, load_plan
    from rigctl.store import open_store

    overrides = Overrides(
        rig, tuple(sets or ()), duration, repeat, captures=tuple(capture or ()), rig_sets=tuple(rig_sets or ())
    )
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
            plan, inventory, opened, Console(stderr=True), quiet=quiet, resumed=resumed, captures=beside
        )
        info = opened.run(outcome.run)
        repetitions = opened.repetitions(outcome.run, series=drawn_numbers(info.plan))

    page = report or Path(f"{file_name(plan.scenario_name)}-{outcome.run}.html")
    _tell(info, repetitions, page, quiet=quiet)
    return outcome.exit_code


def _tell(info: "RunInfo", repetitions: "Sequence[Repetition]", page: Path, *, quiet: bool) -> None:
    """Write the report; print the table and where the report is, or the run's id only."""
    from rich.console import Console

    from rigctl.report.document import document
    from rigctl.report.printers.html import write_page
    from rigctl.report.printers.terminal import print_document

    made = document(info, repetitions)
    write_page(made, page)
    if quiet:
        print(info.run)
        return
    print_document(made, Console())
    print(f"run    {info.run}\nreport {page.resolve()}")
