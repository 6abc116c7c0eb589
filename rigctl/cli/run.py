"""`rigctl run`: measure a scenario, print its table, write its report."""

from pathlib import Path
from typing import Annotated

import typer

from rigctl.cli.options import Duration, Repeat, RigFile, Sets, StoreAddress


def run(
    scenario: Annotated[str, typer.Argument(help="A scenario file, or the name of a bundled one.")],
    rig: RigFile = None,
    sets: Sets = None,
    duration: Duration = None,
    repeat: Repeat = None,
    store: StoreAddress = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Where the HTML report goes (default: NAME-RUN.html here).")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the run's id only.")] = False,
) -> int:
    """Measure SCENARIO on its rig; print the run's id, the table and where the report is."""
    from rich.console import Console

    from rigctl.runner.run import measure_run
    from rigctl.scenario.load import Overrides, load_plan
    from rigctl.store import open_store

    plan, inventory = load_plan(scenario, Overrides(rig, tuple(sets or ()), duration, repeat))
    with open_store(store) as opened:
        outcome = measure_run(plan, inventory, opened, Console(stderr=True), quiet=quiet)
        info, repetitions = opened.run(outcome.run), opened.repetitions(outcome.run)

    from rigctl.report.html import write_report
    from rigctl.report.terminal import print_run

    page = report or Path(f"{plan.scenario_name}-{outcome.run}.html")
    write_report(info, repetitions, page)
    if quiet:
        print(outcome.run)
    else:
        print_run(info, repetitions, Console())
        print(f"run    {outcome.run}\nreport {page.resolve()}")
    return outcome.exit_code
